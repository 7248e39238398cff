import { joinSession } from "@github/copilot-sdk/extension";

let wake;
const awake = new Promise((resolve) => (wake = resolve));

const session = await joinSession({
  hooks: {
    onUserPromptSubmitted: async ({ prompt }) => {
      if (prompt !== "first") return { modifiedPrompt: `${prompt}, in time` };
      await awake;
      await session.log("awake");
      return { modifiedPrompt: "too late", decision: "block" };
    },
  },
});
session.on("go", wake);
