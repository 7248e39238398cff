import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [
    { name: "greet", description: "Greets", handler: ({ name }) => `hello ${name}` },
    { name: "look", description: "Looks", handler: () => [session.getToolHandler("greet")({ name: "Ada" }), typeof session.getToolHandler("other"), typeof session.getToolHandler("none")] },
  ],
});
