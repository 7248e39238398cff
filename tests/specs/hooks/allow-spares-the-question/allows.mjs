import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreToolUse: ({ toolArgs }) => {
      if (toolArgs.to === "test") return { permissionDecision: "allow" };
    },
  },
});
