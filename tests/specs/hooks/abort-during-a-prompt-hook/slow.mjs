import { joinSession } from "@github/copilot-sdk/extension";

let wake;
const awake = new Promise((resolve) => (wake = resolve));

const session = await joinSession({
  hooks: {
    onUserPromptSubmitted: async () => {
      await session.log("asked");
      await awake;
      return undefined;
    },
  },
});
session.on("go", wake);
