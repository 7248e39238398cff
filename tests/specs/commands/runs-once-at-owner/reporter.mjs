import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  commands: [{
    name: "status",
    handler: ({ command, args }) => {
      if (args) throw new Error(`cannot report ${args}`);
      console.log(command);
    },
  }],
});
