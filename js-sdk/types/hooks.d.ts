/**
 * Functions the host calls: hooks at fixed points of a session, and handlers that answer its requests.
 *
 * Every hook gets `(input, invocation)` and may return nothing. Hooks of several extensions compose:
 * rewrites chain, and for permissions `deny` beats `ask` beats `allow`.
 *
 * A hook that throws, does not answer in time, or answers with something else than an object, is reported
 * and skipped; see {@link HookFailure} for hooks whose failure must deny. A field that is not listed here
 * has no effect, which is warned about in the extension's log.
 */

import type { ElicitationResult, ElicitationSchema } from "./session.js";
import type { JsonValue, ToolResult, ToolResultObject } from "./tools.js";

/** Second argument of every hook. */
export interface HookInvocation {
  /** The session the extension joined, also when a sub-agent triggered the hook. */
  sessionId: string;
}

/** What a hook's failure means. */
export interface HookFailure {
  /**
   * With `true`, a hook that fails (it throws, is late, answers with what is no answer, or its extension
   * ends) denies what it was asked about: the tool call (`onPreToolUse`, `onPreMcpToolCall`) or the prompt (`onUserPromptSubmitted`). The other hooks
   * decide nothing that could be denied. Without it the hook is skipped, as if it were not there.
   */
  failClosed?: boolean;
}

/** Shape of a hook: plain or async, with an optional answer. */
export interface HookHandler<Input, Output> extends HookFailure {
  (input: Input, invocation: HookInvocation): Promise<Output | void> | Output | void;
}

/** A hook together with what its failure means. */
export interface HookObject<Handler> extends HookFailure {
  handler: Handler;
}

/** A hook as `joinSession({ hooks })` takes it. `false` leaves it out, as in `enabled && handler`. */
export type Hook<Handler> = Handler | HookObject<Handler> | false | null;

/** What every hook input carries. */
export interface BaseHookInput {
  /** The session in which it happened; a sub-agent has its own. */
  sessionId: string;
  /** When it happened. Subtracting and comparing work on milliseconds. */
  timestamp: Date;
  /** The session's working directory. */
  workingDirectory: string;
  /** Same as {@link workingDirectory}, under its older name. */
  cwd: string;
  /** Set inside a sub-agent. */
  agentId?: string;
  agentType?: string;
  parentAgentId?: string;
}

// Session ---------------------------------------------------------------------------------------

export interface SessionStartHookInput extends BaseHookInput {
  source: "startup" | "resume" | "new";
  /** The prompt the session was started with, if any. */
  initialPrompt?: string;
}

export interface SessionStartHookOutput {
  /** Given to the agent before the first prompt. */
  additionalContext?: string;
  /** Part of the contract, without effect here: the session is running already. */
  modifiedConfig?: Record<string, unknown>;
}

export type SessionStartHandler = HookHandler<SessionStartHookInput, SessionStartHookOutput>;

export interface SessionEndHookInput extends BaseHookInput {
  reason: "complete" | "error" | "abort" | "timeout" | "user_exit";
  finalMessage?: string;
  error?: string;
}

export interface SessionEndHookOutput {
  sessionSummary?: string;
  cleanupActions?: string[];
  suppressOutput?: boolean;
}

export type SessionEndHandler = HookHandler<SessionEndHookInput, SessionEndHookOutput>;

export interface ErrorOccurredHookInput extends BaseHookInput {
  error: string;
  errorContext: "model_call" | "tool_execution" | "system" | "user_input";
  recoverable: boolean;
}

export interface ErrorOccurredHookOutput {
  errorHandling?: "retry" | "skip" | "abort";
  /** Upper bound on attempts, with `errorHandling: "retry"`. */
  retryCount?: number;
  /** Shown to the person. */
  userNotification?: string;
  suppressOutput?: boolean;
}

export type ErrorOccurredHandler = HookHandler<ErrorOccurredHookInput, ErrorOccurredHookOutput>;

// Prompt ----------------------------------------------------------------------------------------

export interface UserPromptSubmittedHookInput extends BaseHookInput {
  prompt: string;
}

export interface UserPromptSubmittedHookOutput {
  /** Sent to the agent in place of what was typed. */
  modifiedPrompt?: string;
  /** Added to the prompt; the agent sees it, the person does not. */
  additionalContext?: string;
  /** `block` drops the prompt without a model call. */
  decision?: "block";
  /** Why it was blocked. */
  reason?: string;
  suppressOutput?: boolean;
}

/** Do not await `session.send()` here: it queues behind the prompt being processed. */
export type UserPromptSubmittedHandler = HookHandler<UserPromptSubmittedHookInput, UserPromptSubmittedHookOutput>;

export interface UserPromptTransformedHookInput extends BaseHookInput {
  /** As the person wrote it. */
  prompt: string;
  /** As the agent is about to get it. */
  transformedPrompt: string;
}

export interface UserPromptTransformedHookOutput {
  modifiedTransformedPrompt?: string;
}

export type UserPromptTransformedHandler = HookHandler<UserPromptTransformedHookInput, UserPromptTransformedHookOutput>;

// Tools -----------------------------------------------------------------------------------------

export interface PreToolUseHookInput extends BaseHookInput {
  /** Copilot's name for the tool (`bash`, `edit`, `create`, `view` ...), whichever agent runs it. */
  toolName: string;
  /** Differ from tool to tool, hence `any`: a hook looks at `toolArgs.command` and the like. */
  toolArgs: any;
  toolCallId?: string;
  /** The agent's own name and arguments, where they differ. */
  nativeToolName?: string;
  nativeToolArgs?: any;
}

export interface PreToolUseHookOutput {
  permissionDecision?: "allow" | "deny" | "ask";
  permissionDecisionReason?: string;
  /** Replaces the arguments for this call and for later hooks. */
  modifiedArgs?: unknown;
  additionalContext?: string;
  suppressOutput?: boolean;
}

export type PreToolUseHandler = HookHandler<PreToolUseHookInput, PreToolUseHookOutput>;

/** Comes after `onPreToolUse`, for tools of an MCP server only. */
export interface PreMcpToolCallHookInput extends BaseHookInput {
  serverName: string;
  /** Without the server's prefix. */
  toolName: string;
  arguments: any;
  toolCallId?: string;
  _meta?: Record<string, unknown>;
}

export interface PreMcpToolCallHookOutput {
  /** The `_meta` to send: an object replaces it, `null` removes it. */
  metaToUse?: Record<string, unknown> | null;
}

export type PreMcpToolCallHandler = HookHandler<PreMcpToolCallHookInput, PreMcpToolCallHookOutput>;

/** Successful calls only; see {@link PostToolUseFailureHookInput} for the rest. `toolArgs` are those that were used. */
export interface PostToolUseHookInput extends PreToolUseHookInput {
  toolResult: ToolResultObject;
}

export interface PostToolUseHookOutput {
  /** Whatever a tool's handler may return; it takes the place of the tool's own result. */
  modifiedResult?: ToolResult | object | number | boolean;
  additionalContext?: string;
  suppressOutput?: boolean;
}

export type PostToolUseHandler = HookHandler<PostToolUseHookInput, PostToolUseHookOutput>;

export interface PostToolUseFailureHookInput extends PreToolUseHookInput {
  error: string;
}

export interface PostToolUseFailureHookOutput {
  additionalContext?: string;
}

export type PostToolUseFailureHandler = HookHandler<PostToolUseFailureHookInput, PostToolUseFailureHookOutput>;

// Agents ----------------------------------------------------------------------------------------

export interface AgentStopHookInput extends BaseHookInput {
  stopReason?: string;
  transcriptPath?: string;
  /** True when the agent is only running because a stop was blocked before. Check it, or loop. */
  stopHookActive?: boolean;
}

export interface AgentStopHookOutput {
  /** `block` keeps the agent going, with `reason` as its next message. */
  decision?: "block";
  reason?: string;
}

export type AgentStopHandler = HookHandler<AgentStopHookInput, AgentStopHookOutput>;

export interface SubagentStartHookInput extends BaseHookInput {
  agentName: string;
  transcriptPath?: string;
}

export interface SubagentStartHookOutput {
  /** Put before the sub-agent's first prompt. */
  additionalContext?: string;
}

export type SubagentStartHandler = HookHandler<SubagentStartHookInput, SubagentStartHookOutput>;

export interface SubagentStopHookInput extends SubagentStartHookInput {
  stopReason?: string;
  /** What the sub-agent is about to return. */
  response?: string;
}

export interface SubagentStopHookOutput {
  /** `block` keeps the sub-agent going, with `reason` as its next message. */
  decision?: "allow" | "block";
  reason?: string;
  /** Returned to the parent agent in place of the sub-agent's answer. */
  modifiedResponse?: string;
}

export type SubagentStopHandler = HookHandler<SubagentStopHookInput, SubagentStopHookOutput>;

/** All hooks, as given to `joinSession({ hooks })`. An unknown name is ignored with a warning. */
export interface SessionHooks {
  onSessionStart?: Hook<SessionStartHandler>;
  onUserPromptSubmitted?: Hook<UserPromptSubmittedHandler>;
  onUserPromptTransformed?: Hook<UserPromptTransformedHandler>;
  onPreToolUse?: Hook<PreToolUseHandler>;
  onPreMcpToolCall?: Hook<PreMcpToolCallHandler>;
  onPostToolUse?: Hook<PostToolUseHandler>;
  onPostToolUseFailure?: Hook<PostToolUseFailureHandler>;
  onAgentStop?: Hook<AgentStopHandler>;
  onErrorOccurred?: Hook<ErrorOccurredHandler>;
  onSessionEnd?: Hook<SessionEndHandler>;
  onSubagentStart?: Hook<SubagentStartHandler>;
  onSubagentStop?: Hook<SubagentStopHandler>;
}

// Request handlers ------------------------------------------------------------------------------

/** Answers a request that would otherwise go to the person. An error in it is reported, and the next one is asked. */
export type RequestHandler<Request, Response> = (
  request: Request,
  invocation: { sessionId: string },
) => Promise<Response> | Response;

interface PermissionRequestBase {
  toolCallId?: string;
  /** An administrator wants a person to decide this one. */
  readonly managedApprovalRequired?: boolean;
  [detail: string]: any;
}

interface PermissionRequestKinds {
  "shell": { fullCommandText: string; intention: string; possiblePaths: string[]; hasWriteFileRedirection: boolean; warning?: string };
  "write": { fileName: string; intention: string; diff: string; newFileContents?: string };
  "read": { path: string; intention: string };
  "url": { url: string; intention: string };
  "mcp": { serverName: string; toolName: string; toolTitle: string; readOnly: boolean; args?: JsonValue };
  "custom-tool": { toolName: string; toolDescription: string; args?: JsonValue; skipPermission?: boolean };
  "hook": { toolName: string; toolArgs?: JsonValue; hookMessage?: string };
  "memory": { fact: string; subject?: string };
  "extension-management": { operation: string; extensionName?: string };
  "extension-permission-access": { extensionName: string; capabilities: string[] };
  "extension-env-access": {};
  "factory": {};
}

/** What the agent wants to do, told apart by `kind`. */
export type PermissionRequest = {
  [Kind in keyof PermissionRequestKinds]: PermissionRequestBase & { kind: Kind } & PermissionRequestKinds[Kind];
}[keyof PermissionRequestKinds];

/** A decision. Handlers mostly need `approve-once`, `reject` and `no-result`, which leaves it to others. */
export type PermissionRequestResult =
  | { kind: "approve-once"; approvedInteractively?: boolean }
  | { kind: "approve-for-session"; approval?: object; domain?: string }
  | { kind: "approve-for-location"; approval: object; locationKey: string }
  | { kind: "approve-permanently"; domain: string }
  | { kind: "reject"; feedback?: string }
  | { kind: "no-result" | "user-not-available" | "approved" }
  | { kind: "approved-for-session"; approval: object }
  | { kind: "approved-for-location"; approval: object; locationKey: string }
  | { kind: "cancelled"; reason?: string }
  | { kind: "denied-by-rules"; rules: object[] }
  | { kind: "denied-no-approval-rule-and-could-not-request-from-user" }
  | { kind: "denied-interactively-by-user"; feedback?: string; forceReject?: boolean }
  | { kind: "denied-by-content-exclusion-policy"; path: string; message: string }
  | { kind: "denied-by-permission-request-hook"; message?: string; interrupt?: boolean };

export interface PermissionDecisionContext {
  outcome: "auto_approved" | "autopilot_denied" | "prompted_user";
  source: "assisted_approval" | "human_response" | "host_policy" | "unattended_fallback" | "authorization_carry_forward";
  surface: "tui" | "prompt_mode" | "copilot_app" | "acp" | "sdk";
  responseCapability?: "interactive" | "headless" | "none";
}

/** A decision that also says how it came about. The host is told the decision alone. */
export interface AttributedPermissionResult {
  kind: "attributed";
  result: PermissionRequestResult;
  decisionContext: PermissionDecisionContext;
}

type PermissionAnswer = PermissionRequestResult | AttributedPermissionResult;
export type PermissionHandler = (
  request: PermissionRequest,
  invocation: { sessionId: string; managedSettingsEnabled?: boolean },
) => Promise<PermissionAnswer> | PermissionAnswer;

export interface UserInputRequest { question: string; choices?: string[]; allowFreeform?: boolean }
export interface UserInputResponse { answer: string; wasFreeform: boolean }
export type UserInputHandler = RequestHandler<UserInputRequest, UserInputResponse>;

export interface ElicitationContext {
  sessionId: string;
  message: string;
  requestedSchema?: ElicitationSchema;
  mode?: "form" | "url";
  url?: string;
  elicitationSource?: string;
}
export type ElicitationHandler = (context: ElicitationContext) => Promise<ElicitationResult> | ElicitationResult;

export interface ExitPlanModeRequest { summary: string; planContent?: string; actions: string[]; recommendedAction: string }
export interface ExitPlanModeResult { approved: boolean; selectedAction?: string; feedback?: string }
export type ExitPlanModeHandler = RequestHandler<ExitPlanModeRequest, ExitPlanModeResult>;

export interface AutoModeSwitchRequest { errorCode?: string; retryAfterSeconds?: number }
export type AutoModeSwitchResponse = "yes" | "yes_always" | "no";
export type AutoModeSwitchHandler = RequestHandler<AutoModeSwitchRequest, AutoModeSwitchResponse>;

export {};
