import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  commands: [{
    name: "ask",
    handler: async () => {
      await session.rpc.mode.set({ mode: "autopilot" });
      const idle = new Promise((resolve) => session.on("session.idle", resolve));
      const answer = session.sendAndWait("begin");
      await idle;
      await session.rpc.mode.set({ mode: "interactive" });
      await session.send("go on");
      console.log((await answer).data.content);
    },
  }],
});
