import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "subscribe",
    description: "Subscribes wrongly",
    handler: () => [["test.a"], ["test.a", "handler"], [], [null]].map((given) => {
      try {
        return session.on(...given);
      } catch (error) {
        return `${error.name}: ${error.message}`;
      }
    }),
  }],
});
