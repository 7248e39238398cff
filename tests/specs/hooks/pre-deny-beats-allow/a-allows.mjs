import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreToolUse: ({ toolName, toolArgs }) => {
      console.log(`${toolName} ${JSON.stringify(toolArgs)}`);
      return { permissionDecision: "allow", permissionDecisionReason: "it looks harmless" };
    },
  },
});
