import { joinSession } from "@github/copilot-sdk/extension";

const tell = (who) => ({ command, commandName, args }) => console.log(`${who}: ${JSON.stringify({ command, commandName, args })}`);

await joinSession({
  commands: [
    { name: "deploy", handler: tell("deploy") },
    { name: "List", handler: tell("List") },
    { name: "list", handler: tell("list") },
  ],
});
