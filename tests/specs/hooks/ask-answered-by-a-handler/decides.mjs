import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  onPermissionRequest: ({ kind, toolName, hookMessage }) => {
    console.log(`${kind} ${toolName} ${hookMessage}`);
    return { kind: "approve-once" };
  },
});
