import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  commands: [{
    name: "theirs",
    description: "Another's",
    handler: ({ commandName, args }) => {
      if (args === "fail") throw new Error("cannot");
      console.log(`${commandName}: ${args}`);
    },
  }],
});
