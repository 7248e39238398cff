import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onUserPromptTransformed: ({ transformedPrompt }) => {
      console.log(transformedPrompt);
      return { modifiedTransformedPrompt: `${transformedPrompt}\n-- signed` };
    },
  },
});
