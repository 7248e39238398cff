import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreToolUse: {
      failClosed: true,
      handler: () => ({
        get permissionDecision() {
          throw new Error("no decision");
        },
      }),
    },
  },
});
