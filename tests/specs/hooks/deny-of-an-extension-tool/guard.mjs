import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreToolUse: ({ toolArgs }) => {
      if (toolArgs.to === "live") return { permissionDecision: "deny", permissionDecisionReason: "not on Fridays" };
    },
    onPostToolUse: () => console.log("after"),
    onPostToolUseFailure: () => console.log("after a failure"),
  },
});
