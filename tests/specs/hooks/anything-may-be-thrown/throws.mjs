import { joinSession } from "@github/copilot-sdk/extension";

const WHAT = { text: "a text", number: 42, nothing: undefined, object: { message: "like an error" } };

await joinSession({
  hooks: {
    onUserPromptSubmitted: ({ prompt }) => {
      throw prompt in WHAT ? WHAT[prompt] : Object.create(null);
    },
  },
});
