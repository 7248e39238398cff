import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  onElicitationRequest: ({ message, elicitationSource }) => (message === "Who?" ? { action: "accept", content: { value: `the robot, for ${elicitationSource}` } } : undefined),
});
