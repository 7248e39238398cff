import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "scan",
    description: "Says whether a command is safe",
    skipPermission: true,
    handler: ({ command }) => (command.startsWith("rm") ? "unsafe" : "safe"),
  }],
  hooks: {
    onPreToolUse: async ({ toolName, toolArgs }) => {
      console.log(`asked about ${toolName}`);
      if (toolName === "scan") return;
      const { textResultForLlm } = await session.rpc.tools.execute({ toolName: "scan", arguments: toolArgs });
      return { permissionDecision: textResultForLlm === "safe" ? "allow" : "deny", permissionDecisionReason: textResultForLlm };
    },
  },
});
