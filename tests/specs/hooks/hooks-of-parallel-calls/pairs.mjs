import { joinSession } from "@github/copilot-sdk/extension";

// The first call's hook answers only when the second call's hook has been asked.
let second;
const asked = new Promise((resolve) => (second = resolve));

await joinSession({
  hooks: {
    onPreToolUse: async ({ toolCallId, toolArgs }) => {
      if (toolCallId === "c2") second();
      await asked;
      return { modifiedArgs: { to: `${toolArgs.to} by ${toolCallId}` } };
    },
  },
});
