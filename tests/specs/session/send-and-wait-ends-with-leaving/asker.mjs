import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "ask_and_leave",
    description: "Does not wait for the answer",
    handler: async () => {
      const begun = new Promise((resolve) => session.on("assistant.turn_start", resolve));
      const answer = session.sendAndWait("slow").then(({ data }) => data.content, ({ message }) => message);
      await begun;
      await session.disconnect();
      return answer;
    },
  }],
});
