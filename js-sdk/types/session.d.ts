/// <reference lib="esnext.disposable" />
/** The session object that `joinSession` resolves to, and the types its members use. */

import type {
  AbortReason, AssistantMessageEvent, GenericSessionEvent, McpServerStatus, SessionEvent, SessionEventHandler,
  SessionEventType, SessionMode, TypedSessionEventHandler,
} from "./events.js";
import type { Canvas, CommandDefinition } from "./extension.js";
import type { SessionFactoryApi } from "./factory.js";
import type {
  AutoModeSwitchHandler, ElicitationHandler, ExitPlanModeHandler, PermissionDecisionContext, PermissionHandler,
  PermissionRequestResult, SessionHooks, UserInputHandler, UserInputResponse,
} from "./hooks.js";
import type { CurrentToolMetadata, JsonValue, Tool, ToolHandler } from "./tools.js";

// Sending ---------------------------------------------------------------------------------------

/** Who a message is from. */
export type MessageSource = "user" | "system" | `agent-${string}`;

/** Zero-based. */
export interface TextPosition { line: number; character: number }

/** Something sent along with a prompt. A blob's `data` is base64. */
export type MessageAttachment =
  | { type: "file"; path: string; displayName?: string }
  | { type: "directory"; path: string; displayName?: string }
  | { type: "selection"; filePath: string; displayName: string; text?: string; selection?: { start: TextPosition; end: TextPosition } }
  | { type: "blob"; data: string; mimeType: string; displayName?: string };

export interface MessageOptions {
  prompt: string;
  /** Shown in the timeline in place of `prompt`. */
  displayPrompt?: string;
  attachments?: MessageAttachment[];
  /** `enqueue` (default) waits for the running turn; `immediate` steers it. */
  mode?: "enqueue" | "immediate";
  agentMode?: SessionMode | "shell";
  source?: MessageSource;
  requestHeaders?: Record<string, string>;
}

export interface LogOptions {
  /** Defaults to `info`. */
  level?: "info" | "warning" | "error";
  /** Show it, but keep it out of the session's history. */
  ephemeral?: boolean;
}

// Dialogs ---------------------------------------------------------------------------------------

interface FieldText { title?: string; description?: string }
interface FieldTextRules { minLength?: number; maxLength?: number; format?: "email" | "uri" | "date" | "date-time"; default?: string }
interface FieldList extends FieldText { type: "array"; minItems?: number; maxItems?: number; default?: string[] }
interface TitledChoice { const: string; title: string }

/** One field of a form: text, number, yes or no, one of a list, or several of a list. */
export type ElicitationSchemaField =
  | (FieldText & FieldTextRules & { type: "string" })
  | (FieldText & { type: "string"; enum: string[]; enumNames?: string[]; default?: string })
  | (FieldText & { type: "string"; oneOf: TitledChoice[]; default?: string })
  | (FieldText & { type: "number" | "integer"; minimum?: number; maximum?: number; default?: number })
  | (FieldText & { type: "boolean"; default?: boolean })
  | (FieldList & { items: { type: "string"; enum: string[] } })
  | (FieldList & { items: { anyOf: TitledChoice[] } });

export interface ElicitationSchema { type: "object"; properties: Record<string, ElicitationSchemaField>; required?: string[] }
export interface ElicitationParams { message: string; requestedSchema: ElicitationSchema }
export type ElicitationFieldValue = string | number | boolean | string[];

export interface ElicitationResult {
  action: "accept" | "decline" | "cancel";
  /** The form's values, with `accept`. */
  content?: Record<string, ElicitationFieldValue>;
}

export interface UiInputOptions extends FieldText, FieldTextRules {}

/** Check `session.capabilities.ui?.elicitation` first: without it every call rejects. */
export interface SessionUiApi {
  confirm(message: string): Promise<boolean>;
  /** `null` when dismissed. */
  select(message: string, options: string[]): Promise<string | null>;
  /** `null` when dismissed. */
  input(message: string, options?: UiInputOptions): Promise<string | null>;
  /** A form with several fields. */
  elicitation(params: ElicitationParams): Promise<ElicitationResult>;
}

// Models, capabilities, canvases ----------------------------------------------------------------

export type ReasoningEffort = "low" | "medium" | "high" | "xhigh" | "max";
export type ReasoningSummary = "none" | "concise" | "detailed";
export type ContextTier = "default" | "long_context";
export type AutoTier = "efficiency" | "balance" | "intelligence" | "fast";

export interface ModelCapabilitiesOverride {
  supports?: { vision?: boolean; reasoningEffort?: boolean };
  limits?: {
    max_prompt_tokens?: number;
    max_output_tokens?: number;
    max_context_window_tokens?: number;
    vision?: { supported_media_types?: string[]; max_prompt_images?: number; max_prompt_image_size?: number };
  };
}

export interface SetModelOptions {
  reasoningEffort?: ReasoningEffort;
  reasoningSummary?: ReasoningSummary;
  contextTier?: ContextTier;
  modelCapabilities?: ModelCapabilitiesOverride;
  /** Only with the model `auto`; `null` goes back to the default. */
  autoTier?: AutoTier | null;
}

interface AutoTierState { pendingAutoTier?: AutoTier | null; activatingAutoTier?: AutoTier | null }
export interface CurrentModel extends AutoTierState { modelId?: string; reasoningEffort?: string; contextTier?: ContextTier; autoTier?: AutoTier }

/** `pending` only acknowledges the request: it takes effect with a later turn. */
export interface ModelSwitchAutoTierResult extends AutoTierState {
  status: "unchanged" | "pending";
  effectiveAutoTier?: AutoTier;
  supersededAutoTier?: AutoTier | null;
}

/** What the host can do for this session. A missing flag means no. `capabilities.changed` tells of changes. */
export interface SessionCapabilities {
  ui?: { elicitation?: boolean; mcpApps?: boolean; canvases?: boolean };
  extensions?: boolean;
}

/** A canvas that is open now. */
export interface OpenCanvasInstance {
  instanceId: string;
  canvasId: string;
  extensionId: string;
  extensionName?: string;
  title?: string;
  status?: string;
  url?: string;
  icon?: string;
  input?: JsonValue;
}

// Low-level calls -------------------------------------------------------------------------------

/** Calls whose parameters and results are not described here. */
export type RpcMethods<Names extends string> = { [Name in Names]: (params?: object) => Promise<any> };
type Call<Params, Result> = (params: Params) => Promise<Result>;
type Get<Result> = () => Promise<Result>;
type Open<T> = T & { [key: string]: any };

/** The calls that extensions commonly make. */
interface DescribedRpc {
  log: Call<LogOptions & { message: string; type?: string; url?: string; tip?: string }, { eventId: string }>;
  send: Call<Open<Omit<MessageOptions, "source">>, { messageId: string }>;
  abort: Call<{ reason?: AbortReason }, { success: boolean; error?: string }>;
  shutdown: Call<{ type?: "routine" | "error"; reason?: string }, void>;
  canvas: {
    listOpen: Get<{ openCanvases: OpenCanvasInstance[] }>;
    open: Call<{ canvasId: string; instanceId: string; extensionId?: string; input?: JsonValue }, OpenCanvasInstance>;
    close: Call<{ instanceId: string }, void>;
    action: { invoke: Call<{ instanceId: string; actionName: string; input?: JsonValue }, JsonValue> };
  };
  commands: { handlePendingCommand: Call<{ requestId: string; error?: string }, { success: boolean }> };
  extensions: { list: Get<{ extensions: Array<{ id: string; name: string; source: string; status: string; pid?: number }> }>; reload: Get<void> };
  gitHubAuth: { getStatus: Get<{ isAuthenticated: boolean; authType?: string; host?: string; login?: string; statusMessage?: string }> };
  mcp: {
    list: Get<{ servers: Open<{ name: string; status: McpServerStatus; error?: string }>[] }>;
    enable: Call<{ serverName: string }, void>;
    disable: Call<{ serverName: string }, void>;
    reload: Get<void>;
  };
  metadata: { snapshot: Get<Open<{ sessionId: string; startTime: string; workingDirectory: string; workspacePath: string | null; currentMode: string }>> };
  mode: { get: Get<SessionMode>; set: Call<Open<{ mode: SessionMode }>, Open<{ status: string; modelChanged: boolean }>> };
  model: {
    list: Get<{ list: Open<{ id: string }>[]; modelPriceCategories: object[]; quotaSnapshots: object }>;
    getCurrent: Get<CurrentModel>;
    switchTo: Call<Open<{ modelId: string }>, Open<{ modelId?: string; status?: string }>>;
    setReasoningEffort: Call<{ reasoningEffort: string }, { reasoningEffort: string }>;
  };
  name: { get: Get<{ name: string | null }>; set: Call<{ name: string }, void> };
  permissions: {
    handlePendingPermissionRequest: Call<{ requestId: string; result: PermissionRequestResult; decisionContext?: PermissionDecisionContext }, { success: boolean }>;
    setApproveAll: Call<{ enabled: boolean; source?: string }, { success: boolean }>;
    paths: { list: Get<{ directories: string[]; primary: string }> } & RpcMethods<"add" | "updatePrimary" | "isPathWithinAllowedDirectories" | "isPathWithinWorkspace">;
  };
  plan: {
    read: Get<{ exists: boolean; content: string | null; path: string | null }>;
    update: Call<{ content: string }, void>;
    delete: Get<void>;
    readSqlTodos: Get<{ rows: { id?: string; title?: string; description?: string; status?: string; createdAt?: string }[] }>;
  };
  skills: { list: Get<{ skills: Open<{ name: string; description: string; enabled: boolean }>[] }>; reload: Get<{ warnings: string[]; errors: string[] }> };
  tasks: {
    startAgent: Call<{ agentType: string; prompt: string; name: string; description?: string; model?: string }, { agentId: string }>;
    list: Get<{ tasks: Open<{ type: string; id: string; status: string }>[] }>;
    cancel: Call<{ id: string }, { cancelled: boolean }>;
    remove: Call<{ id: string }, { removed: boolean }>;
  };
  tools: { getCurrentMetadata: Get<{ tools: CurrentToolMetadata[] | null }> };
  ui: {
    ephemeralQuery: Call<{ question: string }, { answer: string }>;
    elicitation: Call<ElicitationParams, ElicitationResult>;
    handlePendingUserInput: Call<{ requestId: string; response: UserInputResponse }, { success: boolean }>;
  };
  usage: { getMetrics: Get<Open<{ totalPremiumRequestCost: number; totalUserRequests: number; totalApiDurationMs: number; currentModel?: string; modelMetrics: Record<string, any> }>> };
  workspaces: { listFiles: Get<{ files: string[] }>; readFile: Call<{ path: string }, { content: string }>; createFile: Call<{ path: string; content: string }, void> };
}

/** Everything else in the contract, by namespace. */
interface OpenRpc {
  agent: RpcMethods<"list" | "setPrompt" | "getCurrent" | "select" | "deselect" | "reload">;
  autopilotObjective: RpcMethods<"getState">;
  canvas: RpcMethods<"list">;
  commands: RpcMethods<"list" | "invoke" | "execute" | "enqueue" | "respondToQueuedCommand">;
  completions: RpcMethods<"getTriggerCharacters" | "request">;
  contentExclusion: RpcMethods<"checkPaths">;
  debug: RpcMethods<"collectLogs">;
  eventLog: RpcMethods<"read" | "tail" | "registerInterest" | "releaseInterest">;
  extensions: RpcMethods<"enable" | "disable" | "sendAttachmentsToMessage">;
  factory: RpcMethods<Exclude<keyof SessionFactoryApi, "waitForRun"> | "log" | "agent"> & { journal: RpcMethods<"get" | "put"> };
  fleet: RpcMethods<"start">;
  gitHubAuth: RpcMethods<"setCredentials">;
  history: RpcMethods<"compact" | "truncate" | "listRewindPoints" | "previewRewind" | "rewind" | "clearContext" | "summarizeForHandoff"
    | "cancelBackgroundCompaction" | "abortManualCompaction">;
  instructions: RpcMethods<"getSources">;
  limitPrediction: RpcMethods<"predict">;
  lsp: RpcMethods<"initialize">;
  mcp: RpcMethods<"listTools" | "startServer" | "restartServer" | "stopServer" | "isServerRunning" | "removeGitHub" | "setEnvValueMode"
    | "moveLoadingToBackground" | "executeSampling" | "cancelSamplingExecution"> & {
    oauth: RpcMethods<"handlePendingRequest" | "authenticationStateChanged" | "login" | "probe" | "respond">;
    headers: RpcMethods<"handlePendingHeadersRefreshRequest">;
    apps: RpcMethods<"readResource" | "listTools" | "callTool" | "setHostContext" | "getHostContext" | "diagnose">;
    resources: RpcMethods<"read" | "list" | "listTemplates">;
  };
  metadata: RpcMethods<"getClientMetadata" | "updateClientMetadata" | "isProcessing" | "activity" | "contextInfo" | "getContextAttribution"
    | "getContextHeaviestMessages" | "recordContextChange" | "setWorkingDirectory" | "recomputeContextTokens">;
  model: RpcMethods<"switchAutoTier" | "setAllowedModels">;
  name: RpcMethods<"setAuto">;
  options: RpcMethods<"update">;
  permissions: RpcMethods<"configure" | "pendingRequests" | "setMode" | "getMode" | "modifyRules" | "setRequired" | "resetSessionApprovals"
    | "notifyPromptShown"> & {
    locations: RpcMethods<"resolve" | "apply" | "addToolApproval">;
    folderTrust: RpcMethods<"isTrusted" | "addTrusted">;
    urls: RpcMethods<"setUnrestrictedMode">;
  };
  plan: RpcMethods<"readSqlTodosWithDependencies">;
  plugins: RpcMethods<"list" | "reload">;
  provider: RpcMethods<"getEndpoint" | "add">;
  queue: RpcMethods<"pendingItems" | "moveItem" | "insertAt" | "removeAt" | "updateText" | "duplicateAt" | "setDrainPaused" | "sendNow"
    | "removeMostRecent" | "clear">;
  remote: RpcMethods<"enable" | "disable" | "notifySteerableChanged">;
  sandbox: RpcMethods<"getEnforcementStatus" | "disableForSession">;
  schedule: RpcMethods<"list" | "stop">;
  shell: RpcMethods<"exec" | "kill" | "executeUserRequested" | "cancelUserRequested">;
  skills: RpcMethods<"getInvoked" | "enable" | "disable" | "ensureLoaded">;
  tasks: RpcMethods<"register" | "update" | "refresh" | "waitForPending" | "getProgress" | "getCurrentPromotable" | "promoteToBackground"
    | "promoteCurrentToBackground" | "sendMessage">;
  telemetry: RpcMethods<"getEngagementId" | "setFeatureOverrides">;
  tools: RpcMethods<"execute" | "getBuiltinDescriptors" | "taskCompleteEventData" | "handlePendingToolCall" | "initializeAndValidate" | "set"
    | "updateSubagentSettings">;
  ui: RpcMethods<"handlePendingElicitation" | "handlePendingSampling" | "handlePendingAutoModeSwitch" | "handlePendingExitPlanMode"
    | "handlePendingSessionLimitsExhausted" | "registerDirectAutoModeSwitchHandler" | "unregisterDirectAutoModeSwitchHandler">;
  visibility: RpcMethods<"get" | "set">;
  workspaces: RpcMethods<"getWorkspace" | "updateMetadata" | "ensure" | "statFile" | "createDirectory" | "removePath" | "renamePath"
    | "listCheckpoints" | "readCheckpoint" | "addSummary" | "truncateSummaries" | "readAutopilotObjective" | "writeAutopilotObjective"
    | "deleteAutopilotObjective" | "autopilotObjectiveExists" | "saveLargePaste" | "diff">;
}

export type SessionRpc = DescribedRpc & OpenRpc
  & RpcMethods<"suspend" | "sendMessages" | "interruptMainTurn" | "cancelAllBackgroundAgents">;

// The session -----------------------------------------------------------------------------------

/**
 * Made by `joinSession`. What the host cannot serve rejects with an error that says so, and after
 * {@link disconnect} everything does.
 */
export declare class CopilotSession {
  private constructor();
  readonly sessionId: string;
  /** Folder with `plan.md`, `files/` and `checkpoints/`. */
  readonly workspacePath: string | undefined;
  /** Always current. */
  readonly capabilities: SessionCapabilities;
  readonly ui: SessionUiApi;
  readonly rpc: SessionRpc;
  /** Not served: every member rejects. */
  readonly factory: SessionFactoryApi;
  /** Always current, and a copy: changing it changes nothing. */
  readonly openCanvases: OpenCanvasInstance[];
  /** @deprecated Private in the original. A method `session.a.b` is the same as `session.rpc.a.b`. */
  readonly connection: { sendRequest(method: string, params?: object): Promise<any> };

  /** Writes a line to the session's timeline. */
  log(message: string, options?: LogOptions): Promise<void>;
  /** Queues a prompt and resolves to its message id, without waiting for the answer. */
  send(prompt: string): Promise<string>;
  send(options: MessageOptions): Promise<string>;
  /**
   * Sends, waits for `session.idle`, and resolves to the last message of the agent. Rejects on
   * `session.error`, and after `timeout` milliseconds (default 60000) without stopping the agent.
   */
  sendAndWait(prompt: string, timeout?: number): Promise<AssistantMessageEvent | undefined>;
  sendAndWait(options: MessageOptions, timeout?: number): Promise<AssistantMessageEvent | undefined>;
  /** Stops the running turn. The session stays usable. */
  abort(): Promise<void>;

  /**
   * Subscribes to one event, to all, or to a name not listed here. Returns the function that
   * unsubscribes. Handlers run in the order of their subscription; an error in one is written to the
   * extension's log and stops nothing.
   */
  on<K extends SessionEventType>(eventType: K, handler: TypedSessionEventHandler<K>): () => void;
  on(handler: SessionEventHandler): () => void;
  on<K extends string>(eventType: K extends SessionEventType ? never : K, handler: (event: GenericSessionEvent<K>) => void): () => void;
  /** The history so far, without ephemeral events. */
  getEvents(): Promise<SessionEvent[]>;
  /** @deprecated Older name of {@link getEvents}. */
  getMessages(): Promise<SessionEvent[]>;

  /** Takes effect with the next message. */
  setModel(model: string, options?: SetModelOptions): Promise<void>;
  setAutoTier(autoTier: AutoTier | null): Promise<ModelSwitchAutoTierResult>;

  /** Leaves the session: handlers are dropped, files stay. Doing it twice is fine. */
  disconnect(): Promise<void>;
  /** @deprecated Older name of {@link disconnect}. */
  destroy(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;

  getToolHandler(name: string): ToolHandler | undefined;

  // Not served: each throws. Pass these to `joinSession`.
  registerTools(tools?: Tool<any>[]): void;
  registerCommands(commands?: CommandDefinition[]): void;
  registerCanvases(canvases?: Canvas[]): void;
  registerHooks(hooks?: SessionHooks): void;
  registerPermissionHandler(handler?: PermissionHandler): void;
  registerUserInputHandler(handler?: UserInputHandler): void;
  registerElicitationHandler(handler?: ElicitationHandler): void;
  registerExitPlanModeHandler(handler?: ExitPlanModeHandler): void;
  registerAutoModeSwitchHandler(handler?: AutoModeSwitchHandler): void;
}

export {};
