import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreToolUse: {
      handler: ({ toolArgs }) => ({ modifiedArgs: { command: `${toolArgs.command} -l` } }),
    },
  },
});
