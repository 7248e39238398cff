import { joinSession } from "@github/copilot-sdk/extension";

let wake;
const aborted = new Promise((resolve) => (wake = resolve));

const session = await joinSession({
  hooks: {
    onUserPromptSubmitted: async () => {
      await session.log("asked");
      await aborted;
    },
    onSessionEnd: ({ reason }) => console.log(reason),
  },
});
session.on("abort", wake);
