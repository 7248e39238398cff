import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  onPermissionRequest: () => new Promise(() => {}),
  onUserInputRequest: () => new Promise(() => {}),
});
