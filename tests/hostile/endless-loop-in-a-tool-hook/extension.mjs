import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreToolUse: ({ toolName }) => {
      if (toolName !== "poke") return;
      for (;;) {}
    },
  },
});
