import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "deploy",
    description: "Deploys",
    handler: ({ to }) => {
      console.log(`to ${to}`);
      return `deployed to ${to}`;
    },
  }],
});
