import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onAgentStop: ({ stopHookActive }) => (stopHookActive ? {} : { decision: "block", reason: "Run the tests." }),
    onUserPromptSubmitted: ({ prompt }) => ({ modifiedPrompt: `${prompt}, please` }),
    onUserPromptTransformed: ({ prompt }) => console.log(prompt),
  },
});
