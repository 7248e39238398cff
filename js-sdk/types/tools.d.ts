/** Tools: what an extension offers the agent, and what a handler may answer. */

/** Any value that survives `JSON.stringify` unchanged. */
export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue };

/**
 * The platform's `AbortSignal` where the project's libraries declare one (DOM or Node types),
 * otherwise the part of it that handlers need.
 */
export type HostAbortSignal = typeof globalThis extends { AbortSignal: { prototype: infer Signal } }
  ? Signal
  : {
      readonly aborted: boolean;
      readonly reason: any;
      addEventListener(type: "abort", listener: () => void): void;
      removeEventListener(type: "abort", listener: () => void): void;
      throwIfAborted(): void;
    };

/**
 * A schema object that can describe itself as JSON Schema and knows the type it parses to.
 * Zod 4 schemas fit; so does anything else with these two members.
 */
export interface ZodSchema<T = unknown> {
  /** Carries the parsed type for inference. */
  _output: T;
  toJSONSchema(): Record<string, unknown>;
}

/** How a call ended. Everything but `success` is shown as failed; `rejected` also ends the turn. */
export type ToolResultType = "success" | "failure" | "rejected" | "denied" | "timeout";

/** An image or a file handed to the model next to the text. */
export type ToolBinaryResult = {
  /** Base64, without a `data:` prefix. */
  data: string;
  mimeType: string;
  type: "image" | "resource";
  description?: string;
};

/** Free-form measurements, grouped by name. */
export type ToolTelemetry = Record<string, Record<string, JsonValue> | undefined>;

/**
 * A structured answer. An object that lacks a valid `textResultForLlm` and `resultType` is not
 * treated as one: it reaches the model as JSON text.
 */
export type ToolResultObject = {
  /** What the model reads. */
  textResultForLlm: string;
  resultType: ToolResultType;
  binaryResultsForLlm?: ToolBinaryResult[];
  /** Why it failed, shown to the person rather than to the model. */
  error?: string;
  /** A line for the session's timeline. */
  sessionLog?: string;
  toolTelemetry?: ToolTelemetry;
  /** Names of tools to load, for a handler that replaces the tool search. */
  toolReferences?: string[];
};

/** What a handler's return value is turned into. */
export type ToolResult = string | ToolResultObject;

/** A tool the agent can see at the moment of a call. */
export interface CurrentToolMetadata {
  name: string;
  description: string;
  namespacedName?: string;
  mcpServerName?: string;
  mcpToolName?: string;
  input_schema?: { [key: string]: JsonValue | undefined };
  deferLoading?: boolean;
}

/** The call a handler is answering. */
export interface ToolInvocation {
  sessionId: string;
  toolCallId: string;
  toolName: string;
  /** The same value as the handler's first argument. */
  arguments: any;
  /** Fires when the call is cancelled. Pass it on to `fetch` and child processes. */
  signal?: HostAbortSignal;
  /** Id of this request between host and extension. */
  requestId?: string;
  /** Set when a sub-agent made the call. */
  agentId?: string;
  /** Filled for a handler that replaces the tool search. */
  availableTools?: CurrentToolMetadata[];
  traceparent?: string;
  tracestate?: string;
}

/**
 * Runs a call. A string is the result text; `undefined` and `null` are an empty success; any other
 * value that is not a {@link ToolResultObject} is sent as JSON. Throwing makes the call a failure.
 *
 * Arguments described by plain JSON Schema are `any`: no type can be told from such a schema, and
 * with `unknown` not even `({ path }) => ...` would pass. The schema is not enforced by every host, so
 * check what you rely on.
 */
export type ToolHandler<TArgs = any> = (args: TArgs, invocation: ToolInvocation) => Promise<unknown> | unknown;

/** One tool, as listed in `joinSession({ tools })`. */
export interface Tool<TArgs = any> {
  /** Letters, digits, `_` and `-`. Unique across all loaded extensions. */
  name: string;
  /** Tells the model when to use it. */
  description?: string;
  /** JSON Schema of the arguments, or a schema object that can produce one. */
  parameters?: ZodSchema<TArgs> | Record<string, unknown>;
  handler?: ToolHandler<TArgs>;
  /** Must be `true` to take the name of a built-in tool. */
  overridesBuiltInTool?: boolean;
  /** Run without asking the person. */
  skipPermission?: boolean;
  /** `auto` lets the host hold the definition back until it is searched for. */
  defer?: "auto" | "never";
  /** Opaque to the SDK, passed to the host. */
  metadata?: Record<string, unknown>;
  /** A successful call ends the turn. */
  isTerminal?: boolean;
}

/**
 * Builds a {@link Tool}, inferring the handler's arguments from a schema object.
 * With plain JSON Schema they are `any`; annotate the handler's first parameter to have them checked.
 *
 * ```ts
 * defineTool("add", { parameters: z.object({ a: z.number(), b: z.number() }), handler: ({ a, b }) => `${a + b}` });
 * ```
 */
export declare function defineTool<T = any>(name: string, config: Omit<Tool<T>, "name">): Tool<T>;

/** One part of an MCP tool's answer. */
export type McpCallToolResultContent =
  | { type: "text"; text: string }
  | { type: "image"; data: string; mimeType: string }
  | { type: "resource"; resource: { uri: string; mimeType?: string; text?: string; blob?: string } };

/** What an MCP server answers to `tools/call`. */
export type McpCallToolResult = {
  content: McpCallToolResultContent[];
  isError?: boolean;
};

/** Turns an MCP answer into a tool result: texts are joined, images and blobs become binary results. */
export declare function convertMcpCallToolResult(callResult: McpCallToolResult): ToolResultObject;
