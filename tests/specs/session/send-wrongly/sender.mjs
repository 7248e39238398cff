import { joinSession } from "@github/copilot-sdk/extension";

const wrong = [undefined, 7, {}, { prompt: 7 }, { prompt: "x", mode: "later" }, { prompt: "x", attachments: "README.md" }];
const session = await joinSession({
  tools: [{
    name: "send",
    description: "Sends wrongly",
    handler: async () => {
      const attempts = await Promise.allSettled(wrong.map((given) => session.send(given)));
      return attempts.map(({ status, reason }) => `${status}: ${reason?.message}`).join("\n");
    },
  }],
});
