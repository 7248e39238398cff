import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ onPermissionRequest: () => process.exit(1) });
