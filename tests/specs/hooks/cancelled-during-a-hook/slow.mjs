import { joinSession } from "@github/copilot-sdk/extension";

let wake;
const awake = new Promise((resolve) => (wake = resolve));

const session = await joinSession({
  hooks: {
    onPreToolUse: async () => {
      await session.log("asked");
      await awake;
      return { permissionDecision: "allow" };
    },
  },
});
session.on("go", wake);
