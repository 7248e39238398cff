import { joinSession } from "@github/copilot-sdk/extension";

let wake;
const awake = new Promise((resolve) => (wake = resolve));

const session = await joinSession({
  hooks: {
    onErrorOccurred: async () => {
      await session.log("asked");
      await awake;
      return { errorHandling: "retry" };
    },
  },
});
session.on("go", wake);
