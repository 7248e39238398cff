import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  commands: [{ name: "ask", handler: async ({ args }) => console.log(await session.ui.input(args || "Who?")) }],
  onElicitationRequest: () => ({ action: "accept", content: { value: "myself" } }),
});
