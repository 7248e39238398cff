import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "deploy",
    description: "Deploys",
    skipPermission: true,
    handler: ({ to }) => {
      console.log(`to ${to}`);
      return `deployed to ${to}`;
    },
  }],
});
