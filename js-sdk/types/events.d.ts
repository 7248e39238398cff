/**
 * Session events, as delivered to `session.on` and returned by `session.getEvents`.
 *
 * {@link SessionEventDataMap} lists the events with a described payload. Other known events have an
 * open payload, and a name that is not listed here at all can still be subscribed to.
 */

import type { PermissionRequest, PermissionRequestResult } from "./hooks.js";
import type { JsonValue, ToolBinaryResult } from "./tools.js";

/** Fields around every event's payload. */
export interface SessionEventEnvelope<Type extends string, Data> {
  type: Type;
  data: Data;
  id: string;
  /** ISO 8601. */
  timestamp: string;
  /** The event before this one; `null` for the first. */
  parentId: string | null;
  /** True for events that are delivered live but not written to the session's history. */
  ephemeral?: boolean;
  /** Set for events of a sub-agent. */
  agentId?: string;
}

export type SessionMode = "interactive" | "plan" | "autopilot";
export type McpServerStatus = "connected" | "failed" | "needs-auth" | "pending" | "disabled" | "stopped" | "not_configured";
export type CompactionTrigger = "threshold" | "context_limit_retry" | "manual" | "memory_pressure" | "model_switch";
export type AbortReason = "user_initiated" | "remote_command" | "user_abort" | "autopilot_credit_limit" | "output_closed";
export type ExitPlanModeAction = "exit_only" | "interactive" | "autopilot" | "autopilot_fleet";

// Messages --------------------------------------------------------------------------------------

export interface UserMessageData {
  content: string;
  /** What the agent received, after hooks and added context. */
  transformedContent?: string;
  messageId?: string;
  attachments?: Array<{ type: string; displayName?: string; [key: string]: any }>;
  /** Who sent it, when it was not the person. */
  source?: string;
  agentMode?: SessionMode | "shell";
  /** Whether it started a turn, steered a running one or waited in the queue. */
  delivery?: "idle" | "steering" | "queued";
  interactionId?: string;
  turnId?: string;
  parentAgentTaskId?: string;
  isAutopilotContinuation?: boolean;
}

export interface AssistantMessageToolRequest {
  toolCallId: string;
  name: string;
  arguments?: JsonValue;
  type?: "function" | "custom";
  toolTitle?: string;
  intentionSummary?: string | null;
  mcpServerName?: string;
  mcpToolName?: string;
}

export interface AssistantMessageData {
  messageId: string;
  /** Empty when the message only asks for tools. */
  content: string;
  toolRequests?: AssistantMessageToolRequest[];
  model?: string;
  reasoningText?: string;
  outputTokens?: number;
  phase?: string;
  originatingMessageId?: string;
  interactionId?: string;
  turnId?: string;
  apiCallId?: string;
  requestId?: string;
  /** The call that started the sub-agent this message belongs to. */
  parentToolCallId?: string;
}

export interface AssistantUsageData {
  /** Not every agent says. */
  model?: string;
  inputTokens?: number;
  outputTokens?: number;
  cacheReadTokens?: number;
  cacheWriteTokens?: number;
  reasoningTokens?: number;
  cost?: number;
  /** Milliseconds. */
  duration?: number;
  timeToFirstTokenMs?: number;
  finishReason?: string;
  initiator?: string;
  reasoningEffort?: string;
  apiCallId?: string;
  parentToolCallId?: string;
}

// Tools -----------------------------------------------------------------------------------------

export interface ToolExecutionStartData {
  toolCallId: string;
  toolName: string;
  arguments?: JsonValue;
  mcpServerName?: string;
  mcpToolName?: string;
  /** What the agent itself calls its tool, and what it was given. Not sent by every host. */
  nativeToolName?: string;
  nativeArguments?: JsonValue;
  shellToolInfo?: { displayCommand?: string; possiblePaths: string[]; hasWriteFileRedirection: boolean };
  model?: string;
  turnId?: string;
  parentToolCallId?: string;
}

export interface ToolExecutionCompleteResult {
  /** What the model got. */
  content: string;
  /** What the person is shown, where it is longer. */
  detailedContent?: string;
  contents?: Array<{ type: string; [key: string]: any }>;
  binaryResultsForLlm?: Array<Partial<ToolBinaryResult> & { [key: string]: any }>;
  structuredContent?: JsonValue;
}

export interface ToolExecutionCompleteData {
  toolCallId: string;
  /** Not sent by every host: match `toolCallId` with the start event to be sure. */
  toolName?: string;
  success: boolean;
  result?: ToolExecutionCompleteResult;
  error?: { message: string; code?: string };
  toolTelemetry?: { [key: string]: JsonValue | undefined };
  isUserRequested?: boolean;
  sandboxed?: boolean;
  model?: string;
  interactionId?: string;
  turnId?: string;
  parentToolCallId?: string;
}

export interface ExternalToolRequestedData { requestId: string; sessionId: string; toolCallId: string; toolName: string; arguments?: JsonValue; workingDirectory?: string }

// Session ---------------------------------------------------------------------------------------

export interface WorkingDirectoryContext { cwd: string; gitRoot?: string; branch?: string; repository?: string; headCommit?: string; baseCommit?: string }

export interface StartData {
  sessionId: string;
  startTime: string;
  version: number;
  producer: string;
  copilotVersion: string;
  selectedModel?: string;
  reasoningEffort?: string;
  context?: WorkingDirectoryContext;
}

export interface ResumeData { resumeTime: string; eventCount: number; selectedModel?: string; reasoningEffort?: string; context?: WorkingDirectoryContext; sessionWasActive?: boolean }

/** The session has nothing left to do. `backgroundTasks` is an older field. */
export interface IdleData { aborted?: boolean; mode?: SessionMode; backgroundTasks?: unknown }

export interface ErrorData { errorType: string; message: string; stack?: string; statusCode?: number; errorCode?: string; url?: string }
export interface WarningData { warningType: string; message: string; url?: string; extensionId?: string; toolCallId?: string }
export interface InfoData { infoType: string; message: string; url?: string; tip?: string; extensionId?: string; toolCallId?: string }

export interface ShutdownData {
  shutdownType: "routine" | "error";
  errorReason?: string;
  /** Unix milliseconds. */
  sessionStartTime: number;
  totalApiDurationMs: number;
  /** An older field. */
  totalPremiumRequests?: number;
  codeChanges: { linesAdded: number; linesRemoved: number; filesModified: string[] };
  modelMetrics: { [model: string]: { requests: { [key: string]: any }; usage: { [key: string]: any } } | undefined };
  currentModel?: string;
  currentTokens?: number;
}

export interface UsageInfoData {
  currentTokens: number;
  tokenLimit: number;
  /** `null` where an agent does not say. */
  messagesLength: number;
  conversationTokens?: number;
  systemTokens?: number;
  toolDefinitionsTokens?: number;
  isInitial?: boolean;
}

export interface ModelChangeData { newModel: string; previousModel?: string; reasoningEffort?: string | null; previousReasoningEffort?: string; cause?: string }
export interface CompactionStartData { trigger?: CompactionTrigger; currentTokens?: number; conversationTokens?: number; tokenLimit?: number; model?: string }

export interface CompactionCompleteData {
  success: boolean;
  error?: string;
  trigger?: CompactionTrigger;
  preCompactionTokens?: number;
  postCompactionTokens?: number;
  tokensRemoved?: number;
  messagesRemoved?: number;
  summaryContent?: string;
  checkpointNumber?: number;
  checkpointPath?: string;
}

export interface CapabilitiesChangedData { ui?: { elicitation?: boolean; mcpApps?: boolean; canvases?: boolean }; extensions?: boolean }
export interface TaskCompleteData { success?: boolean; summary?: string; outcome?: "completed" | "continue" | "blocked"; reason?: string; objectiveId?: number }
export interface CanvasClosedData { instanceId: string; canvasId: string; extensionId: string }
export interface CanvasOpenedData extends CanvasClosedData { extensionName?: string; title?: string; status?: string; url?: string; icon?: string; input?: JsonValue }

// Requests, sub-agents, hooks -------------------------------------------------------------------

export interface PermissionRequestedData {
  requestId: string;
  /** `acp`, if an agent asks by ACP: its request as it came, with the session's own id. */
  permissionRequest: PermissionRequest & { acp?: { [key: string]: any } };
  /** A hook has already decided; nobody will be asked. */
  resolvedByHook?: boolean;
  agentMode?: SessionMode;
}

export interface PermissionCompletedData { requestId: string; result: PermissionRequestResult; toolCallId?: string; decisionSource?: string }
export interface UserInputRequestedData { requestId: string; question: string; choices?: string[]; allowFreeform?: boolean; toolCallId?: string }
export interface ElicitationRequestedData { requestId: string; message: string; mode?: "form" | "url"; requestedSchema?: { [key: string]: any }; url?: string; elicitationSource?: string; toolCallId?: string }
export interface ExitPlanModeRequestedData { requestId: string; summary: string; planContent: string; actions: ExitPlanModeAction[]; recommendedAction: ExitPlanModeAction; model?: string }
export interface ExitPlanModeCompletedData { requestId: string; approved?: boolean; selectedAction?: ExitPlanModeAction; feedback?: string; autoApproveEdits?: boolean }
export interface CommandExecuteData { requestId: string; command: string; commandName: string; args: string }

export interface SubagentStartedData { toolCallId: string; agentName: string; agentDisplayName: string; agentDescription: string; agentType?: string; executionMode?: string; model?: string; parentId?: string }
export interface SubagentCompletedData { toolCallId: string; agentName: string; agentDisplayName: string; cancelled?: boolean; durationMs?: number; totalTokens?: number; totalToolCalls?: number; model?: string }
export interface SubagentFailedData extends Omit<SubagentCompletedData, "cancelled"> { error: string }

export interface HookStartData { hookInvocationId: string; hookType: string; input?: JsonValue; parentToolCallId?: string }
export interface HookEndData { hookInvocationId: string; hookType: string; success: boolean; output?: JsonValue; error?: { message: string; source?: string; stack?: string }; parentToolCallId?: string }

// Agents that speak ACP: not sent by other hosts -------------------------------------------------

export interface PlanEntry { content: string; priority?: "high" | "medium" | "low"; status: "pending" | "in_progress" | "completed"; [key: string]: any }
export interface AgentCommand { name: string; description: string; input?: { hint?: string; [key: string]: any } | null; [key: string]: any }
export interface AgentOption { id: string; name: string; category?: string; currentValue?: JsonValue; [key: string]: any }

export interface ExtensionsLoadedExtension { id: string; name: string; source: "project" | "user" | "plugin" | "session"; status: "running" | "disabled" | "failed" | "starting" }

/** Payload of each described event, by name. */
export interface SessionEventDataMap {
  "session.start": StartData;
  "session.resume": ResumeData;
  "session.idle": IdleData;
  "session.error": ErrorData;
  "session.warning": WarningData;
  "session.info": InfoData;
  "session.shutdown": ShutdownData;
  "session.title_changed": { title: string };
  "session.context_changed": WorkingDirectoryContext;
  "session.usage_info": UsageInfoData;
  "session.model_change": ModelChangeData;
  "session.mode_changed": { newMode: SessionMode; previousMode: SessionMode };
  "session.plan_changed": { operation: "create" | "update" | "delete" };
  "session.workspace_file_changed": { operation: "create" | "update"; path: string };
  "session.compaction_start": CompactionStartData;
  "session.compaction_complete": CompactionCompleteData;
  "session.task_complete": TaskCompleteData;
  "capabilities.changed": CapabilitiesChangedData;
  "session.tools_updated": { model: string };
  "session.extensions_loaded": { extensions: ExtensionsLoadedExtension[] };
  "session.mcp_servers_loaded": { servers: Array<{ name: string; status: McpServerStatus; error?: string; displayName?: string }> };
  "session.mcp_server_status_changed": { serverName: string; status: McpServerStatus; error?: string };
  "session.canvas.opened": CanvasOpenedData;
  "session.canvas.closed": CanvasClosedData;
  "user.message": UserMessageData;
  "assistant.turn_start": { turnId: string; interactionId?: string; model?: string };
  "assistant.turn_end": { turnId: string; model?: string };
  "assistant.intent": { intent: string };
  "assistant.plan": { entries: PlanEntry[] };
  "assistant.reasoning": { reasoningId: string; content: string };
  "assistant.reasoning_delta": { reasoningId: string; deltaContent: string };
  "assistant.message": AssistantMessageData;
  "assistant.message_start": { messageId: string; phase?: string };
  "assistant.message_delta": { messageId: string; deltaContent: string; parentToolCallId?: string };
  "assistant.streaming_delta": { totalResponseSizeBytes: number };
  "assistant.usage": AssistantUsageData;
  "assistant.idle": { aborted?: boolean };
  "abort": { reason: AbortReason };
  "tool.execution_start": ToolExecutionStartData;
  "tool.execution_partial_result": { toolCallId: string; partialOutput: string };
  "tool.execution_progress": { toolCallId: string; progressMessage: string };
  "tool.execution_complete": ToolExecutionCompleteData;
  "external_tool.requested": ExternalToolRequestedData;
  "external_tool.completed": { requestId: string };
  "command.queued": { requestId: string; command: string };
  "command.execute": CommandExecuteData;
  "command.completed": { requestId: string };
  "permission.requested": PermissionRequestedData;
  "permission.completed": PermissionCompletedData;
  "user_input.requested": UserInputRequestedData;
  "user_input.completed": { requestId: string; answer?: string; wasFreeform?: boolean };
  "elicitation.requested": ElicitationRequestedData;
  "elicitation.completed": { requestId: string; action?: "accept" | "decline" | "cancel"; content?: { [key: string]: any } };
  "exit_plan_mode.requested": ExitPlanModeRequestedData;
  "exit_plan_mode.completed": ExitPlanModeCompletedData;
  "subagent.started": SubagentStartedData;
  "subagent.completed": SubagentCompletedData;
  "subagent.failed": SubagentFailedData;
  "subagent.selected": { agentName: string; agentDisplayName: string; tools: string[] | null };
  "subagent.deselected": {};
  "hook.start": HookStartData;
  "hook.end": HookEndData;
  "skill.invoked": { name: string; path: string; content: string; description?: string; source?: string };
  "system.message": { role: "system" | "developer"; content: string; name?: string; interactionId?: string };
  "system.notification": { content: string; kind: { type: string; [key: string]: any } };
  "agent.commands_changed": { commands: AgentCommand[] };
  "agent.options_changed": { configOptions: AgentOption[] };
  "acp.update": { update: { sessionUpdate: string; [key: string]: any } };
}

/** Known events whose payload is left open. */
export type OpenSessionEventType =
  | `factory.run_${"started" | "updated" | "settled"}`
  | `mcp.${"oauth_required" | "oauth_completed" | "headers_refresh_required" | "headers_refresh_completed"}`
  | `mcp.${"tools" | "resources" | "prompts"}.list_changed`
  | `model.${string}`
  | `permission.${"assentDetected" | "carriedForward" | "contextualAuthorization"}`
  | `permission.messageAuthorization${"" | "Degraded" | "Read"}`
  | `session.canvas.${"registry_changed" | "unavailable" | "recorded" | "removed"}`
  | `session.fusion_${"route_started" | "route_failed" | "resolved" | "completed"}`
  | `session.managed_settings_${"resolved" | "enforced"}`
  | `session.schedule_${"created" | "cancelled" | "rearmed"}`
  | `assistant.fusion_phase_${"started" | "activity" | "completed" | "failed"}`
  | `${"sampling" | "auto_mode_switch" | "session_limits_exhausted"}.${"requested" | "completed"}`
  | "assistant.server_tool_progress" | "assistant.tool_call_delta" | "commands.changed"
  | "hook.progress" | "mcp_app.tool_call_complete" | "pending_messages.modified" | "subagent.configured"
  | "session.auto_mode_resolved" | "session.auto_tier_recommendation" | "session.auto_tier_switch_failed"
  | "session.autopilot_objective_changed" | "session.background_tasks_changed" | "session.binary_asset"
  | "session.completion_receipt" | "session.context_cleared" | "session.custom_agents_updated"
  | "session.custom_notification" | "session.extensions.attachments_pushed" | "session.handoff"
  | "session.mcp_server_needs_reconnect" | "session.mcp_server_removed" | "session.mode_notice_delivered"
  | "session.permissions_changed" | "session.remote_steerable_changed" | "session.session_limits_changed"
  | "session.skills_loaded" | "session.snapshot_rewind" | "session.todos_changed" | "session.truncation"
  | "session.usage_checkpoint" | "tool.user_requested" | "tool_search.activated" | "ui.ephemeral_query";

/** Fallback: an event about which only the envelope is known. */
export type GenericSessionEvent<Type extends string = string> = SessionEventEnvelope<Type, { [key: string]: any }>;

/** Every event, told apart by `type`. */
export type SessionEvent =
  | { [Type in keyof SessionEventDataMap]: SessionEventEnvelope<Type, SessionEventDataMap[Type]> }[keyof SessionEventDataMap]
  | GenericSessionEvent<OpenSessionEventType>;

export type SessionEventType = SessionEvent["type"];

/** The event with a given name. */
export type SessionEventPayload<T extends SessionEventType> = T extends keyof SessionEventDataMap
  ? SessionEventEnvelope<T, SessionEventDataMap[T]>
  : GenericSessionEvent<T>;

export type TypedSessionEventHandler<T extends SessionEventType> = (event: SessionEventPayload<T>) => void;
export type SessionEventHandler = (event: SessionEvent) => void;

export type AssistantMessageEvent = SessionEventPayload<"assistant.message">;
export type UserMessageEvent = SessionEventPayload<"user.message">;
export type ToolExecutionStartEvent = SessionEventPayload<"tool.execution_start">;
export type ToolExecutionCompleteEvent = SessionEventPayload<"tool.execution_complete">;
export type PermissionRequestedEvent = SessionEventPayload<"permission.requested">;
export type IdleEvent = SessionEventPayload<"session.idle">;
export type ErrorEvent = SessionEventPayload<"session.error">;
export type ShutdownEvent = SessionEventPayload<"session.shutdown">;
