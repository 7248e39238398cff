import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  hooks: {
    onUserPromptSubmitted: async () => {
      const result = await session.rpc.tools.execute({ toolName: "news", arguments: { about: "tests" } });
      return { additionalContext: result.textResultForLlm };
    },
    onPreToolUse: ({ toolName, toolArgs }) => {
      console.log(`before ${toolName}`);
      return { modifiedArgs: { about: `${toolArgs.about} and specs` } };
    },
  },
});
