import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "wait",
    description: "Waits",
    handler: async (_args, { signal }) => {
      const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve));
      await session.log("waiting");
      await aborted;
      await session.log("told");
    },
  }],
});
