import { joinSession } from "@github/copilot-sdk/extension";

let wake;
const awake = new Promise((resolve) => (wake = resolve));

const session = await joinSession({
  hooks: {
    onAgentStop: async () => {
      await session.log("asked");
      await awake;
      return { decision: "block", reason: "go on" };
    },
  },
});
session.on("go", wake);
