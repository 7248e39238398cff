import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "wait",
    description: "Waits",
    handler: (_args, { signal }) => new Promise((resolve) => {
      const cancelled = () => resolve(session.log("cancelled"));
      if (signal.aborted) cancelled();
      else signal.addEventListener("abort", cancelled);
    }),
  }],
});
