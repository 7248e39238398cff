import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreToolUse: ({ toolArgs }) => {
      if (toolArgs.command === "ls") return;
      return { permissionDecision: "ask", permissionDecisionReason: "it writes" };
    },
  },
});
