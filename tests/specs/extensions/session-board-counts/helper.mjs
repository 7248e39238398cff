import { joinSession } from "@github/copilot-sdk/extension";

const act = (actionName) => session.rpc.canvas.action.invoke({ instanceId: "b", actionName });
const session = await joinSession({
  tools: [
    { name: "work", description: "Works", handler: ({ ok }) => ({ textResultForLlm: "", resultType: ok ? "success" : "failure" }) },
    {
      name: "board",
      description: "Opens the board",
      handler: async () => {
        const { title, url } = await session.rpc.canvas.open({ canvasId: "session-board", instanceId: "b" });
        return { title, url: url.replace(/[^/]+\/$/, "(secret)/") };
      },
    },
  ],
  commands: [
    {
      name: "snapshot",
      handler: async () => {
        let counters;
        // The board hears of events a little later.
        do counters = await act("snapshot");
        while (counters.state !== "idle" || counters.requests < 1);
        const { prompts, requests, errors, tokens, cost, tools, models } = counters;
        console.log(JSON.stringify({ prompts, requests, errors, tokens, cost, tools: tools.map(({ name, calls, running, failures }) => ({ name, calls, running, failures })), models }));
      },
    },
    {
      name: "clear",
      handler: async () => {
        let failure;
        while (!failure) await act("clear").catch(({ message }) => (failure = message));
        console.log(`${failure}; ${(await act("snapshot")).timeline.entries} entries`);
      },
    },
  ],
});
