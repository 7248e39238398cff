import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onUserPromptSubmitted: ({ prompt }) => console.log(`submitted: ${prompt}`),
    onUserPromptTransformed: ({ prompt }) => console.log(`transformed: ${prompt}`),
  },
});
