import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{ name: "b", description: "A tool", handler: () => "b" }],
  commands: [{
    name: "dispose",
    handler: async () => {
      await session[Symbol.asyncDispose]();
      console.log(await session.log("x").catch(({ message }) => message));
    },
  }],
});
