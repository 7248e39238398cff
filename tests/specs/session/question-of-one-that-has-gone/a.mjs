import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [
    {
      name: "ask",
      handler: async () => {
        const asked = new Promise((resolve) => session.on("elicitation.requested", resolve));
        session.ui.confirm("sure?").then(console.log, console.log);
        await asked;
        return "asked";
      },
    },
  ],
});
session.on("test.leave", () => process.exit(1));
