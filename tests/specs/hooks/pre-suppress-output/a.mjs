import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreToolUse: ({ toolArgs }) => ({ suppressOutput: toolArgs.to === "live" }),
  },
});
