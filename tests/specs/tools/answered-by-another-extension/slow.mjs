import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "slow",
    handler: (args, { signal, toolCallId }) => new Promise(() => {
      signal.addEventListener("abort", () => session.log(`${toolCallId}: ${signal.reason.name}`));
      session.log("waits");
    }),
  }],
});
