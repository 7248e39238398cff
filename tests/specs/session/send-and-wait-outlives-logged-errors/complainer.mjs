import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  commands: [{ name: "fail", handler: () => { throw new Error("cannot"); } }],
  tools: [{
    name: "complain",
    description: "Complains",
    handler: async () => {
      await session.log("something is wrong", { level: "error" });
      return session.rpc.commands.invoke({ name: "fail" }).catch(({ message }) => message);
    },
  }],
});
