import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  commands: [{ name: "echo", handler: ({ command, args }) => console.log(`${JSON.stringify(command)} ${JSON.stringify(args)}`) }],
});
