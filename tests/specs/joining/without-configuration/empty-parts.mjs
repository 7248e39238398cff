import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ tools: [], hooks: {}, commands: null, canvases: undefined, onEvent: false, onPermissionRequest: null });
