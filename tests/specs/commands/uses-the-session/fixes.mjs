import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  commands: [{
    name: "fix",
    handler: async () => {
      const what = await session.ui.input("What?");
      const answer = await session.sendAndWait(`fix ${what}`);
      await session.log(`the agent says: ${answer.data.content}`);
    },
  }],
});
