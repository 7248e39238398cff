import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{ name: "quit", description: "Ends the extension", handler: () => process.exit(0) }],
  hooks: { onUserPromptSubmitted: ({ prompt }) => ({ modifiedPrompt: `${prompt}, says quits` }) },
});
