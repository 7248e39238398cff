import { joinSession } from "@github/copilot-sdk/extension";

const show = (value) => console.log(JSON.stringify(value));

const session = await joinSession({
  commands: [
    { name: "confirm", handler: async () => show(await session.ui.confirm("Go on?")) },
    { name: "select", handler: async () => show(await session.ui.select("Which one?", ["a", "b"])) },
    {
      name: "input",
      handler: async () => show(await session.ui.input("Who?", { title: "Name", description: "Your name", minLength: 2, maxLength: 20, default: "Bob" })),
    },
    {
      name: "form",
      handler: async () => show(await session.ui.elicitation({
        message: "What?",
        requestedSchema: {
          type: "object",
          properties: { size: { type: "string", enum: ["small", "large"] }, count: { type: "integer", minimum: 1 } },
          required: ["size"],
        },
      })),
    },
  ],
});
show(session.capabilities);
