import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  commands: [{ name: "leave", handler: () => session.disconnect() }],
  onElicitationRequest: ({ message }) => ({ action: "accept", content: { value: `an answer to ${message}` } }),
});
