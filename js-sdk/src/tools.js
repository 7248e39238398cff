// Tools: checked when they are registered, run when they are called.

import { describeError, serve, warn } from "ext:tenon/bridge.js";
import { registered } from "ext:tenon/registrations.js";
import { toFailure, toResult } from "ext:tenon/tool-result.js";

const TOOL_NAME = /^[a-zA-Z0-9_-]+$/;

/** The longest tool name every agent accepts. Longer ones work in some and are warned about. */
const MAX_PORTABLE_NAME = 64;

/** Checks the tools of one `joinSession` and returns what the host needs to know of them. */
export function readTools(tools) {
  if (tools === undefined || tools === null) return { declared: [], handlers: new Map() };
  if (!Array.isArray(tools)) throw new TypeError("joinSession: `tools` must be an array");
  const handlers = new Map();
  const declared = tools.map((tool, index) => {
    const declaration = declareTool(tool, index);
    if (handlers.has(declaration.name)) {
      throw new Error(`joinSession: the tool name "${declaration.name}" is used twice; every tool needs a name of its own`);
    }
    handlers.set(declaration.name, tool.handler);
    return declaration;
  });
  return { declared, handlers };
}

function declareTool(tool, index) {
  if (typeof tool !== "object" || tool === null) {
    throw new TypeError(`joinSession: tools[${index}] is not an object`);
  }
  const { name } = tool;
  if (typeof name !== "string" || !TOOL_NAME.test(name)) {
    throw new Error(
      `joinSession: invalid tool name ${JSON.stringify(name)} (tools[${index}]); ` +
        "use letters, digits, hyphens and underscores",
    );
  }
  if (name.length > MAX_PORTABLE_NAME) {
    warn(`the tool name "${name}" is ${name.length} characters long; some agents accept only ${MAX_PORTABLE_NAME}`);
  }
  if (typeof tool.handler !== "function") {
    warn(`the tool "${name}" has no handler; calling it will fail`);
  }
  const declaration = {
    name,
    description: tool.description === undefined ? "" : String(tool.description),
  };
  const parameters = readSchema(tool.parameters, name);
  if (parameters !== undefined) declaration.parameters = parameters;
  for (const flag of ["overridesBuiltInTool", "skipPermission", "isTerminal"]) {
    if (tool[flag] !== undefined) declaration[flag] = Boolean(tool[flag]);
  }
  if (tool.defer !== undefined) declaration.defer = tool.defer;
  if (tool.metadata !== undefined) declaration.metadata = tool.metadata;
  return declaration;
}

/** JSON Schema as it is, or of anything that can turn itself into it, as Zod's schemas can. */
function readSchema(parameters, name) {
  if (parameters === undefined || parameters === null) return undefined;
  if (typeof parameters.toJSONSchema === "function") return parameters.toJSONSchema();
  if (typeof parameters !== "object") {
    throw new TypeError(`joinSession: \`parameters\` of the tool "${name}" must be a JSON Schema object`);
  }
  return parameters;
}

serve("tool", async ({ name, args, toolCallId, sessionId, requestId, agentId, availableTools }, call) => {
  const handler = registered("tools").get(name);
  if (typeof handler !== "function") {
    return toFailure({ message: "Error: the tool has no handler" }, name, args);
  }
  const invocation = {
    sessionId,
    toolCallId,
    toolName: name,
    arguments: args,
    requestId,
    get signal() {
      return call.signal;
    },
  };
  // Not every call comes from a sub-agent or is a search for tools.
  if (agentId !== undefined) invocation.agentId = agentId;
  if (availableTools !== undefined) invocation.availableTools = availableTools;
  try {
    return toResult(await handler(args, invocation), name);
  } catch (error) {
    return toFailure(describeError(error), name, args);
  }
});
