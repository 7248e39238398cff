import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  commands: [
    { name: "greet", description: "Greets somebody", handler: ({ args }) => console.log(`hello ${args}`) },
    { name: "fail", handler: () => { throw new Error("not today"); } },
  ],
});
