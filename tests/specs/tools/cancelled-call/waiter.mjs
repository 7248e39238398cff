import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [
    {
      name: "waits",
      description: "Waits until it is cancelled",
      handler: (args, { signal, toolCallId }) => new Promise(() => {
        signal.addEventListener("abort", () => session.log(`${toolCallId}: ${signal.reason.name}`));
        session.log("waiting");
      }),
    },
    {
      name: "tells",
      description: "Describes the call it answers",
      handler: (args, { sessionId, toolCallId, toolName, arguments: given, signal }) =>
        ({ sessionId, toolCallId, toolName, same: given === args, aborted: signal.aborted }),
    },
  ],
});
