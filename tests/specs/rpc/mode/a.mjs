import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "look",
    description: "Looks",
    handler: async () => {
      const { mode } = session.rpc;
      const answers = [await mode.get()];
      for (const wanted of ["plan", "plan", "sleepy"]) answers.push(await mode.set({ mode: wanted }).catch(({ message }) => message));
      return [...answers, await mode.get(), await mode.set().catch(({ message }) => message)];
    },
  }],
});
