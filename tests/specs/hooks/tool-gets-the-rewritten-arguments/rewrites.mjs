import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreToolUse: () => ({ modifiedArgs: { to: "staging" } }),
    onPostToolUse: ({ toolArgs }) => console.log(JSON.stringify(toolArgs)),
  },
});
