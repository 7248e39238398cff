import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onUserPromptSubmitted: () => {
      throw new Error("no idea");
    },
    onUserPromptTransformed: () => "a text",
    onAgentStop: () => ({ desicion: "block" }),
    onSomethingElse: () => {},
  },
});
