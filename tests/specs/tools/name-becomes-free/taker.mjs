import { joinSession } from "@github/copilot-sdk/extension";

const commands = [{
  name: "take",
  handler: async () => {
    try {
      await joinSession({ commands, tools: [{ name: "greet", handler: () => "hello from the taker" }] });
    } catch (error) {
      console.log(error.message);
    }
  },
}];

await joinSession({ commands, tools: [{ name: "mine", handler: () => "mine" }] });
