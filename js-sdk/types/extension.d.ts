/**
 * What `@github/copilot-sdk/extension` and `@tenon/sdk/extension` give: the way into the session.
 *
 * ```js
 * import { joinSession } from "@github/copilot-sdk/extension";
 * const session = await joinSession({ tools: [{ name: "hello", description: "Greets", handler: () => "Hi" }] });
 * ```
 */

import type { SessionEventHandler } from "./events.js";
import type { FactoryHandle } from "./factory.js";
import type {
  AutoModeSwitchHandler, ElicitationHandler, ExitPlanModeHandler, PermissionHandler, SessionHooks, UserInputHandler,
} from "./hooks.js";
import type {
  AutoTier, ContextTier, CopilotSession, ModelCapabilitiesOverride, OpenCanvasInstance, ReasoningEffort, ReasoningSummary,
} from "./session.js";
import type { JsonValue, Tool } from "./tools.js";

/**
 * Joins the session that loaded this extension. Call it once, at the top level: a second call replaces
 * what the first one registered, with a warning in the extension's log.
 */
export declare function joinSession(config?: JoinSessionConfig): Promise<CopilotSession>;

export { defineFactory, FactoryResumeError, isFactoryRunTerminal } from "./factory.js";
export type {
  FactoryAgentOptions, FactoryAgentSummary, FactoryContext, FactoryDefinition, FactoryHandle, FactoryJsonSchema,
  FactoryLimitOverrides, FactoryLimits, FactoryListRunsOptions, FactoryMeta, FactoryPhaseObservation, FactoryPhaseStatus,
  FactoryPipelineStage, FactoryProgressLine, FactoryProgressPage, FactoryResumeErrorCode, FactoryRunDetail,
  FactoryRunResult, FactoryRunsPage, FactoryRunStatus, FactoryRunSummary, FactoryStepOptions, ResumeOptions, RunOptions,
  SessionFactoryApi,
} from "./factory.js";
export type { JsonValue };

// Commands --------------------------------------------------------------------------------------

/** One use of a slash command. */
export interface CommandContext {
  sessionId: string;
  /** The whole line, such as `/deploy staging`. */
  command: string;
  /** Without the slash. */
  commandName: string;
  /** What follows the name, as typed. */
  args: string;
}

/** What it returns is not looked at; an error is shown to the person. */
export type CommandHandler = (context: CommandContext) => Promise<void> | void;

/** A slash command for the person. */
export interface CommandDefinition {
  /** Without the slash and without spaces. */
  name: string;
  description?: string;
  handler: CommandHandler;
}

// Canvases --------------------------------------------------------------------------------------

/** JSON Schema, as a plain value. */
export type CanvasJsonSchema = JsonValue;

export interface CanvasHostContextCapabilities { canvases?: boolean }
export interface CanvasHostContext { capabilities?: CanvasHostContextCapabilities }
export interface CanvasSessionContext { workingDirectory?: string }

/** Names the instance a canvas callback is about. */
export interface CanvasProviderCloseRequest {
  sessionId: string;
  extensionId: string;
  canvasId: string;
  /** Opening a known id again brings that instance to the front. */
  instanceId: string;
  host?: CanvasHostContext;
  session?: CanvasSessionContext;
}

/** `input` is what the caller sent; check it. */
export interface CanvasProviderOpenRequest extends CanvasProviderCloseRequest { input?: any }
export interface CanvasProviderInvokeActionRequest extends CanvasProviderOpenRequest { actionName: string }

export interface CanvasProviderOpenResult {
  /** The page to show, mostly a loopback address this extension serves. */
  url?: string;
  title?: string;
  status?: string;
}

/** Something the agent can do to an open canvas. */
export interface CanvasAction {
  /** Unique within the canvas; must not begin with `canvas.`. */
  name: string;
  description?: string;
  inputSchema?: CanvasJsonSchema;
  /** Without one the agent is told so, with the code `canvas_action_no_handler`. */
  handler?: (ctx: CanvasProviderInvokeActionRequest) => Promise<unknown> | unknown;
}

/** The part of a canvas that is sent to the host. */
export interface CanvasDeclaration {
  id: string;
  displayName: string;
  description: string;
  inputSchema?: CanvasJsonSchema;
  actions?: Omit<CanvasAction, "handler">[];
}

export interface CanvasOptions extends Omit<CanvasDeclaration, "actions"> {
  actions?: CanvasAction[];
  /** Called for every open, also of an instance that is open already. */
  open: (ctx: CanvasProviderOpenRequest) => Promise<CanvasProviderOpenResult> | CanvasProviderOpenResult;
  /** The instance is gone. Errors are logged only. */
  onClose?: (ctx: CanvasProviderCloseRequest) => Promise<void> | void;
}

/** Made by {@link createCanvas}, given to `joinSession({ canvases })`. */
export declare class Canvas {
  private constructor();
  readonly declaration: CanvasDeclaration;
  readonly open: CanvasOptions["open"];
  readonly onClose?: CanvasOptions["onClose"];
}

export declare function createCanvas(options: CanvasOptions): Canvas;

/**
 * Throw it from a canvas callback to give the agent a code to act on. Any other error reaches the agent
 * with the code `canvas_handler_error`.
 */
export declare class CanvasError extends Error {
  constructor(code: string, message: string);
  readonly code: string;
  /** For an action nobody handles. */
  static noHandler(): CanvasError;
}

// Agents, MCP servers, instructions --------------------------------------------------------------

interface MCPServerConfigBase {
  /** Tools to offer; `["*"]` for all. */
  tools?: string[];
  /** Milliseconds. */
  timeout?: number;
}

export interface MCPStdioServerConfig extends MCPServerConfigBase {
  type?: "local" | "stdio";
  command: string;
  args?: string[];
  env?: Record<string, string>;
  workingDirectory?: string;
}

export interface MCPHTTPServerConfig extends MCPServerConfigBase { type: "http" | "sse"; url: string; headers?: Record<string, string> }

export type MCPServerConfig = MCPStdioServerConfig | MCPHTTPServerConfig;

export interface CustomAgentConfig {
  name: string;
  displayName?: string;
  description?: string;
  /** Tool names; `null` or nothing means all. */
  tools?: string[] | null;
  prompt: string;
  mcpServers?: Record<string, MCPServerConfig>;
  /** Whether the model may pick the agent by itself. */
  infer?: boolean;
  skills?: string[];
  model?: string;
  reasoningEffort?: ReasoningEffort;
}

export type SystemMessageSection =
  | "preamble" | "identity" | "tone" | "tool_efficiency" | "environment_context" | "code_change_rules" | "guidelines" | "safety"
  | "tool_instructions" | "custom_instructions" | "runtime_instructions" | "last_instructions";

export type SectionTransformFn = (currentContent: string) => string | Promise<string>;
export type SectionOverrideAction = "replace" | "remove" | "append" | "prepend" | "preserve" | SectionTransformFn;
export interface SectionOverride { action: SectionOverrideAction; content?: string }
export interface SystemMessageAppendConfig { mode?: "append"; content?: string }
export interface SystemMessageReplaceConfig { mode: "replace"; content: string }
export interface SystemMessageCustomizeConfig { mode: "customize"; sections?: Partial<Record<SystemMessageSection, SectionOverride>>; content?: string }
export type SystemMessageConfig = SystemMessageAppendConfig | SystemMessageReplaceConfig | SystemMessageCustomizeConfig;

export interface McpAuthRequest {
  requestId: string;
  serverName: string;
  serverUrl: string;
  reason: "initial" | "refresh" | "reauth" | "upscope";
  wwwAuthenticateParams?: { resourceMetadataUrl?: string; scope?: string; error?: string };
  resourceMetadata?: string;
  staticClientConfig?: { clientId: string; clientSecret?: string; grantType?: "client_credentials"; publicClient?: boolean };
}

export interface McpAuthToken { accessToken: string; tokenType?: string; expiresIn?: number }
export type McpAuthResult = ({ kind: "token" } & McpAuthToken) | { kind: "cancelled" };
type McpAuthAnswer = McpAuthResult | McpAuthToken | null | undefined;
export type McpAuthHandler = (request: McpAuthRequest, context: { sessionId: string }) => McpAuthAnswer | Promise<McpAuthAnswer>;

// Providers -------------------------------------------------------------------------------------

export interface ProviderTokenArgs { readonly providerName: string; readonly sessionId: string }
export type BearerTokenProvider = (args: ProviderTokenArgs) => Promise<string>;

/** A model endpoint of one's own. */
export interface ProviderConfig {
  type?: "openai" | "azure" | "anthropic";
  wireApi?: "completions" | "responses";
  transport?: "http" | "websockets";
  baseUrl: string;
  apiKey?: string;
  bearerToken?: string;
  bearerTokenProvider?: BearerTokenProvider;
  azure?: { apiVersion?: string };
  headers?: Record<string, string>;
  modelId?: string;
  wireModel?: string;
  maxPromptTokens?: number;
  maxOutputTokens?: number;
}

export interface NamedProviderConfig extends Omit<ProviderConfig, "transport" | keyof ProviderModelConfig> { name: string }

/** A model of a {@link NamedProviderConfig}, which `provider` names. */
export interface ProviderModelConfig extends Pick<ProviderConfig, "modelId" | "wireModel" | "maxPromptTokens" | "maxOutputTokens"> {
  id: string;
  provider: string;
  name?: string;
  maxContextWindowTokens?: number;
  capabilities?: ModelCapabilitiesOverride;
}

// Config ----------------------------------------------------------------------------------------

export interface ExtensionInfo { source: string; name: string }

/** Tool names, or an object that lists them. */
export type ToolFilter = string[] | { toArray(): string[] };

/** Switches of the contract that are plainly on or off. */
export type JoinSessionFlag =
  | "coauthorEnabled" | "continuePendingWork" | "customAgentsLocalOnly" | "enableCitations" | "enableConfigDiscovery"
  | "enableExperimentalMode" | "enableFileChangeTracking" | "enableFileHooks" | "enableHostGitOperations"
  | "enableManagedSettings" | "enableMcpApps" | "enableOnDemandInstructionDiscovery" | "enableSessionStore"
  | "enableSessionTelemetry" | "enableSkills" | "manageScheduleEnabled" | "requestCanvasRenderer" | "requestExtensions"
  | "skipCustomInstructions" | "skipEmbeddingRetrieval" | "suppressResumeEvent";

/**
 * What an extension adds to the session. The first block is what extensions are made of. The rest is
 * taken over from the contract: it would shape a session that is running already, so it is accepted and
 * has no effect. Keys that are not listed are ignored with a warning in the extension's log.
 */
export interface JoinSessionConfig extends Partial<Record<JoinSessionFlag, boolean>> {
  tools?: Tool<any>[];
  hooks?: SessionHooks;
  commands?: CommandDefinition[];
  canvases?: Canvas[];
  /** Called for every event, from before `joinSession` resolves. */
  onEvent?: SessionEventHandler;
  onPermissionRequest?: PermissionHandler;
  onUserInputRequest?: UserInputHandler;
  onElicitationRequest?: ElicitationHandler;
  onExitPlanModeRequest?: ExitPlanModeHandler;
  onAutoModeSwitchRequest?: AutoModeSwitchHandler;
  /**
   * Secrets wanted in `process.env`, by name. They are set before `joinSession` resolves; one that is
   * not granted rejects it.
   */
  requestedEnvironmentVariables?: string[];

  // Not served: accepted without effect, and a warning says so
  onMcpAuthRequest?: McpAuthHandler;
  factories?: FactoryHandle<any, any>[];

  // Agents and instructions
  customAgents?: CustomAgentConfig[];
  mcpServers?: Record<string, MCPServerConfig>;
  systemMessage?: SystemMessageConfig;

  // Model
  model?: string;
  reasoningEffort?: ReasoningEffort;
  reasoningSummary?: ReasoningSummary;
  contextTier?: ContextTier;
  modelCapabilities?: ModelCapabilitiesOverride;
  provider?: ProviderConfig;
  providers?: NamedProviderConfig[];
  models?: ProviderModelConfig[];
  capi?: { autoTier?: AutoTier; enableWebSocketResponses?: boolean };

  // Tools, agents, skills
  availableTools?: ToolFilter;
  excludedTools?: ToolFilter;
  toolSearch?: { enabled?: boolean; deferThreshold?: number };
  largeOutput?: { enabled?: boolean; maxSizeBytes?: number; outputDirectory?: string };
  agent?: string;
  defaultAgent?: { excludedTools?: string[] };
  excludedBuiltinAgents?: string[];
  includedBuiltinSkills?: string[];
  disabledSkills?: string[];
  disabledMcpServers?: string[];
  githubMcpToolConfig?: { enableAllTools?: boolean; additionalToolsets?: string[]; additionalTools?: string[]; enableInsidersMode?: boolean; disableFormDeferral?: boolean };
  mcpOAuthTokenStorage?: "persistent" | "in-memory";
  authClientIdMetadataUrl?: string;
  askUserVariant?: "legacy" | "elicitation";

  // Folders and instructions
  workingDirectory?: string;
  additionalDirectories?: string[];
  configDirectory?: string;
  skillDirectories?: string[];
  pluginDirectories?: string[];
  instructionDirectories?: string[];
  organizationCustomInstructions?: string;

  // Session
  /** `assistant.message_delta` and its like reach whoever subscribes to them, with or without it. */
  streaming?: boolean;
  includeSubAgentStreamingEvents?: boolean;
  clientName?: string;
  extensionInfo?: ExtensionInfo;
  canvasProvider?: { id: string; name?: string };
  openCanvases?: OpenCanvasInstance[];
  infiniteSessions?: { enabled?: boolean; backgroundCompactionThreshold?: number; bufferExhaustionThreshold?: number };
  memory?: { enabled: boolean };
  sessionLimits?: object;
  managedSettings?: { permissions?: { disableBypassPermissionsMode?: string; deny?: string[]; ask?: string[]; allow?: string[] } };
  gitHubToken?: string;
  gitHubTokenProvider?: (args: { host: string; sessionId?: string; reason: string }) => object | Promise<object>;
  createSessionFsProvider?: (session: CopilotSession) => object;
  remoteSession?: "off" | "export" | "on";
  embeddingCacheStorage?: "persistent" | "in-memory";
  featureFlags?: Record<string, boolean>;
}

export {};
