import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{ name: "a", description: "A tool", handler: () => "a" }],
  commands: [{
    name: "destroy",
    handler: async () => {
      await session.destroy();
      console.log(await session.log("x").catch(({ message }) => message));
    },
  }],
});
