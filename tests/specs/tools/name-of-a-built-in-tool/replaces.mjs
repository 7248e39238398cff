import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{ name: "bash", description: "Safer", overridesBuiltInTool: true, handler: ({ command }) => `not ${command}` }],
});
