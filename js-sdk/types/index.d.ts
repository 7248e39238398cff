/**
 * What `@github/copilot-sdk` and `@tenon/sdk` give: helpers, and every type of the extension contract.
 *
 * `@tenon/sdk` is one module with the extension entry, so `joinSession` can be imported from here too.
 * An extension that should also run under Copilot CLI imports it from `@github/copilot-sdk/extension`.
 */

import type {
  AttributedPermissionResult, PermissionDecisionContext, PermissionHandler, PermissionRequestResult,
} from "./hooks.js";

/**
 * Says yes to permission requests, except to those that an administrator wants a person to decide. For
 * `joinSession({ onPermissionRequest: approveAll })`.
 */
export declare const approveAll: PermissionHandler;

/** A permission together with how it was decided. */
export declare function createAttributedPermissionResult(
  result: PermissionRequestResult | AttributedPermissionResult,
  decisionContext: PermissionDecisionContext,
): AttributedPermissionResult;

/**
 * @deprecated Throws: it would start a Copilot process, which there is none of here. Use the session
 * that `joinSession` gives.
 */
export declare class CopilotClient {
  constructor(options?: object);
}

/** @deprecated Describes ways to a Copilot process, which there is none of here. */
export declare const RuntimeConnection: {
  readonly [Name in "forStdio" | "forTcp" | "forUri" | "forInProcess"]: (...options: any[]) => { kind: string; [key: string]: any };
};

export { convertMcpCallToolResult, defineTool } from "./tools.js";
export type {
  CurrentToolMetadata, HostAbortSignal, JsonValue, McpCallToolResult, McpCallToolResultContent,
  Tool, ToolBinaryResult, ToolHandler, ToolInvocation, ToolResult, ToolResultObject, ToolResultType,
  ToolTelemetry, ZodSchema,
} from "./tools.js";

export {
  Canvas, CanvasError, createCanvas, defineFactory, FactoryResumeError, isFactoryRunTerminal, joinSession,
} from "./extension.js";
export type {
  BearerTokenProvider, CanvasAction, CanvasDeclaration, CanvasHostContext,
  CanvasHostContextCapabilities, CanvasJsonSchema, CanvasOptions, CanvasProviderCloseRequest,
  CanvasProviderInvokeActionRequest, CanvasProviderOpenRequest, CanvasProviderOpenResult,
  CanvasSessionContext, CommandContext, CommandDefinition, CommandHandler, CustomAgentConfig,
  ExtensionInfo, JoinSessionConfig, JoinSessionFlag, McpAuthHandler, McpAuthRequest,
  McpAuthResult, McpAuthToken, MCPHTTPServerConfig, MCPServerConfig, MCPStdioServerConfig,
  NamedProviderConfig, ProviderConfig, ProviderModelConfig, ProviderTokenArgs, SectionOverride,
  SectionOverrideAction, SectionTransformFn, SystemMessageAppendConfig, SystemMessageConfig,
  SystemMessageCustomizeConfig, SystemMessageReplaceConfig, SystemMessageSection, ToolFilter,
} from "./extension.js";

export type {
  FactoryAgentOptions, FactoryAgentSummary, FactoryContext, FactoryDefinition, FactoryHandle, FactoryJsonSchema,
  FactoryLimitOverrides, FactoryLimits, FactoryListRunsOptions, FactoryMeta, FactoryPhaseObservation,
  FactoryPhaseStatus, FactoryPipelineStage, FactoryProgressLine, FactoryProgressPage, FactoryResumeErrorCode,
  FactoryRunDetail, FactoryRunResult, FactoryRunsPage, FactoryRunStatus, FactoryRunSummary, FactoryStepOptions,
  ResumeOptions, RunOptions, SessionFactoryApi,
} from "./factory.js";

export { CopilotSession } from "./session.js";
export type {
  AutoTier, ContextTier, CurrentModel, ElicitationFieldValue, ElicitationParams, ElicitationResult,
  ElicitationSchema, ElicitationSchemaField, LogOptions, MessageAttachment, MessageOptions,
  MessageSource, ModelCapabilitiesOverride, ModelSwitchAutoTierResult, OpenCanvasInstance,
  ReasoningEffort, ReasoningSummary, RpcMethods, SessionCapabilities, SessionRpc,
  SessionUiApi, SetModelOptions, TextPosition, UiInputOptions,
} from "./session.js";

export type {
  AgentStopHandler, AgentStopHookInput, AgentStopHookOutput, AttributedPermissionResult,
  AutoModeSwitchHandler, AutoModeSwitchRequest, AutoModeSwitchResponse, BaseHookInput,
  ElicitationContext, ElicitationHandler, ErrorOccurredHandler, ErrorOccurredHookInput,
  ErrorOccurredHookOutput, ExitPlanModeHandler, ExitPlanModeRequest, ExitPlanModeResult,
  Hook, HookFailure, HookHandler, HookInvocation, HookObject, PermissionDecisionContext, PermissionHandler, PermissionRequest,
  PermissionRequestResult, PostToolUseFailureHandler, PostToolUseFailureHookInput,
  PostToolUseFailureHookOutput, PostToolUseHandler, PostToolUseHookInput, PostToolUseHookOutput,
  PreMcpToolCallHandler, PreMcpToolCallHookInput, PreMcpToolCallHookOutput, PreToolUseHandler,
  PreToolUseHookInput, PreToolUseHookOutput, RequestHandler, SessionEndHandler, SessionEndHookInput,
  SessionEndHookOutput, SessionHooks, SessionStartHandler, SessionStartHookInput,
  SessionStartHookOutput, SubagentStartHandler, SubagentStartHookInput, SubagentStartHookOutput,
  SubagentStopHandler, SubagentStopHookInput, SubagentStopHookOutput, UserInputHandler,
  UserInputRequest, UserInputResponse, UserPromptSubmittedHandler, UserPromptSubmittedHookInput,
  UserPromptSubmittedHookOutput, UserPromptTransformedHandler, UserPromptTransformedHookInput,
  UserPromptTransformedHookOutput,
} from "./hooks.js";

export type * from "./events.js";
