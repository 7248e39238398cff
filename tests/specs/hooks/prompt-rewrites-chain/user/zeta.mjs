// Its name comes last, but what the user has comes before what the repository has.

import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onUserPromptSubmitted: ({ prompt }) => ({ modifiedPrompt: `${prompt}, please`, additionalContext: "The user is polite." }),
  },
});
