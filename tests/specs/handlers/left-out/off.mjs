import { joinSession } from "@github/copilot-sdk/extension";

const enabled = false;

await joinSession({ onPermissionRequest: enabled && (() => ({ kind: "reject" })), onUserInputRequest: null, onEvent: undefined });
