// What `@github/copilot-sdk/extension` gives to an extension.

import { request, warn } from "ext:tenon/bridge.js";
import { Canvas, CanvasError, createCanvas } from "ext:tenon/canvas.js";
import { CopilotSession } from "ext:tenon/session.js";
import { readTools, useHandlers } from "ext:tenon/tools.js";

export { Canvas, CanvasError, createCanvas };

const HOOKS = [
  "onSessionStart",
  "onUserPromptSubmitted",
  "onUserPromptTransformed",
  "onPreToolUse",
  "onPreMcpToolCall",
  "onPostToolUse",
  "onPostToolUseFailure",
  "onAgentStop",
  "onErrorOccurred",
  "onSessionEnd",
  "onSubagentStart",
  "onSubagentStop",
];

/** Handlers that the host calls when it needs an answer. */
const REQUEST_HANDLERS = [
  "onPermissionRequest",
  "onUserInputRequest",
  "onElicitationRequest",
  "onExitPlanModeRequest",
  "onAutoModeSwitchRequest",
  "onMcpAuthRequest",
  "onEvent",
];

/** Keys of the public contract that shape an agent's session. An extension joins one that is already
 * shaped, so they are taken note of and nothing more. */
const SESSION_KEYS = [
  "additionalDirectories", "agent", "askUserVariant", "authClientIdMetadataUrl", "availableTools",
  "canvasProvider", "capi", "clientName", "coauthorEnabled", "configDirectory", "contextTier", "continuePendingWork",
  "createSessionFsProvider", "customAgents", "customAgentsLocalOnly", "defaultAgent", "disabledMcpServers",
  "disabledSkills", "embeddingCacheStorage", "enableCitations", "enableConfigDiscovery",
  "enableExperimentalMode", "enableFileChangeTracking", "enableFileHooks", "enableHostGitOperations",
  "enableManagedSettings", "enableMcpApps", "enableOnDemandInstructionDiscovery", "enableSessionStore",
  "enableSessionTelemetry", "enableSkills", "excludedBuiltinAgents", "excludedTools", "extensionInfo",
  "extensionSdkPath", "featureFlags", "gitHubToken", "gitHubTokenProvider", "githubMcpToolConfig",
  "includeSubAgentStreamingEvents", "includedBuiltinSkills", "infiniteSessions", "instructionDirectories",
  "largeOutput", "manageScheduleEnabled", "managedSettings", "mcpOAuthTokenStorage", "mcpServers", "memory",
  "model", "modelCapabilities", "models", "openCanvases", "organizationCustomInstructions", "pluginDirectories", "provider",
  "providers", "reasoningEffort", "reasoningSummary", "remoteSession", "requestCanvasRenderer",
  "requestExtensions", "sessionLimits", "skillDirectories", "skipCustomInstructions", "skipEmbeddingRetrieval",
  "streaming", "suppressResumeEvent", "systemMessage", "toolSearch", "workingDirectory",
];

const KNOWN_KEYS = new Set([
  "tools", "hooks", "commands", "canvases", "factories", "requestedEnvironmentVariables",
  ...REQUEST_HANDLERS,
  ...SESSION_KEYS,
]);

/** Joins the session that this extension was loaded for. */
export async function joinSession(config = {}) {
  if (typeof config !== "object" || config === null) {
    throw new TypeError("joinSession: the configuration must be an object");
  }
  for (const key of Object.keys(config)) {
    if (!KNOWN_KEYS.has(key)) warn(`joinSession: unknown key "${key}" is ignored`);
  }
  const tools = readTools(config.tools);
  // Calls may come as soon as the host has agreed, which is before this function goes on.
  const takeBack = useHandlers(tools.handlers);
  const info = await request("session.join", {
    tools: tools.declared,
    hooks: readHooks(config.hooks),
    commands: readCommands(config.commands),
    canvases: readCanvases(config.canvases),
    handlers: REQUEST_HANDLERS.filter((name) => typeof config[name] === "function"),
    requestedEnvironmentVariables: readNames(config.requestedEnvironmentVariables),
  }).catch((error) => {
    takeBack();
    throw error;
  });
  return new CopilotSession(info);
}

function readHooks(hooks) {
  if (hooks === undefined || hooks === null) return [];
  if (typeof hooks !== "object") throw new TypeError("joinSession: `hooks` must be an object");
  for (const name of Object.keys(hooks)) {
    if (!HOOKS.includes(name)) warn(`joinSession: unknown hook "${name}" is ignored`);
  }
  return HOOKS.filter((name) => typeof hooks[name] === "function");
}

function readCommands(commands) {
  if (commands === undefined || commands === null) return [];
  if (!Array.isArray(commands)) throw new TypeError("joinSession: `commands` must be an array");
  return commands.map((command, index) => {
    if (typeof command?.name !== "string" || command.name === "") {
      throw new Error(`joinSession: commands[${index}] has no name`);
    }
    return { name: command.name.replace(/^\//, ""), description: String(command.description ?? "") };
  });
}

function readCanvases(canvases) {
  if (canvases === undefined || canvases === null) return [];
  if (!Array.isArray(canvases)) throw new TypeError("joinSession: `canvases` must be an array");
  return canvases.map((canvas, index) => {
    if (!(canvas instanceof Canvas)) {
      throw new TypeError(`joinSession: canvases[${index}] was not made by createCanvas`);
    }
    return JSON.parse(JSON.stringify(canvas.declaration));
  });
}

function readNames(names) {
  if (names === undefined || names === null) return [];
  if (!Array.isArray(names) || names.some((name) => typeof name !== "string")) {
    throw new TypeError("joinSession: `requestedEnvironmentVariables` must be an array of names");
  }
  return names;
}

/** Factories are durable workflows of the original's own; they are declared but not run here. */
export function defineFactory(definition) {
  return Object.freeze({ ...definition });
}

export class FactoryResumeError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "FactoryResumeError";
    this.code = code;
  }
}

const TERMINAL_RUN_STATES = new Set(["completed", "halted", "cancelled", "error"]);

export function isFactoryRunTerminal(run) {
  return TERMINAL_RUN_STATES.has(typeof run === "string" ? run : run?.status);
}
