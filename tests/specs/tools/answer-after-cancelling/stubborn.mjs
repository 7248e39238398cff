import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "stubborn",
    handler: async ({ quick }, { signal }) => {
      if (quick) return "quick";
      const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve));
      await session.log("waits");
      await aborted;
      await session.log("returns all the same");
      return "too late";
    },
  }],
});
