import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  hooks: { onUserPromptSubmitted: ({ prompt }) => ({ modifiedPrompt: `${prompt} now` }) },
});
session.on("remind", () => session.send("run the tests"));
