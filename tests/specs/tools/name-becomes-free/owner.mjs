import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{ name: "greet", handler: () => "hello from the owner" }],
  commands: [{ name: "leave", handler: () => session.disconnect() }],
});
