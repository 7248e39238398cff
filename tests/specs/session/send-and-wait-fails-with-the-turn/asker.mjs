import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "ask",
    description: "Asks",
    handler: () => session.sendAndWait("what?").then((answer) => String(answer?.data.content), (error) => `${error instanceof Error} ${error.message}`),
  }],
});
