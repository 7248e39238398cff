// The keys of `joinSession`'s configuration.

import { warn } from "ext:tenon/bridge.js";
import { REQUEST_HANDLERS } from "ext:tenon/handlers.js";

/** Keys of the public contract that would do something which this host does not do. */
const NOT_SERVED_KEYS = ["customAgents", "factories", "mcpServers", "onMcpAuthRequest", "skillDirectories", "systemMessage"];

/** Keys of the public contract that shape an agent's session. An extension joins one that is already
 * shaped, so they are taken note of and nothing more. */
const SESSION_KEYS = [
  "additionalDirectories", "agent", "askUserVariant", "authClientIdMetadataUrl", "availableTools",
  "canvasProvider", "capi", "clientName", "coauthorEnabled", "configDirectory", "contextTier", "continuePendingWork",
  "createSessionFsProvider", "customAgentsLocalOnly", "defaultAgent", "disabledMcpServers",
  "disabledSkills", "embeddingCacheStorage", "enableCitations", "enableConfigDiscovery",
  "enableExperimentalMode", "enableFileChangeTracking", "enableFileHooks", "enableHostGitOperations",
  "enableManagedSettings", "enableMcpApps", "enableOnDemandInstructionDiscovery", "enableSessionStore",
  "enableSessionTelemetry", "enableSkills", "excludedBuiltinAgents", "excludedTools", "extensionInfo",
  "extensionSdkPath", "featureFlags", "gitHubToken", "gitHubTokenProvider", "githubMcpToolConfig",
  "includeSubAgentStreamingEvents", "includedBuiltinSkills", "infiniteSessions", "instructionDirectories",
  "largeOutput", "manageScheduleEnabled", "managedSettings", "mcpOAuthTokenStorage", "memory",
  "model", "modelCapabilities", "models", "openCanvases", "organizationCustomInstructions", "pluginDirectories", "provider",
  "providers", "reasoningEffort", "reasoningSummary", "remoteSession", "requestCanvasRenderer",
  "requestExtensions", "sessionLimits", "skipCustomInstructions", "skipEmbeddingRetrieval",
  "streaming", "suppressResumeEvent", "toolSearch", "workingDirectory",
];

const KNOWN_KEYS = new Set([
  "tools", "hooks", "commands", "canvases", "onEvent", "requestedEnvironmentVariables",
  ...REQUEST_HANDLERS,
  ...NOT_SERVED_KEYS,
  ...SESSION_KEYS,
]);

/** Tells the author of keys that have no effect. A key more is no reason not to start. */
export function checkKeys(config) {
  if (typeof config !== "object" || config === null) {
    throw new TypeError("joinSession: the configuration must be an object");
  }
  for (const key of Object.keys(config)) {
    if (!KNOWN_KEYS.has(key)) warn(`joinSession: unknown key "${key}" is ignored`);
  }
  for (const key of NOT_SERVED_KEYS) {
    const value = config[key];
    const isGiven = Array.isArray(value) ? value.length > 0 : Boolean(value);
    if (isGiven) warn(`joinSession: \`${key}\` is not served by this host and has no effect`);
  }
}

/** The names of the environment variables that the extension asks for. */
export function readVariableNames(names) {
  if (names === undefined || names === null) return [];
  if (!Array.isArray(names) || names.some((name) => typeof name !== "string")) {
    throw new TypeError("joinSession: `requestedEnvironmentVariables` must be an array of names");
  }
  return names;
}
