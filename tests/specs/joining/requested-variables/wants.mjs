import { joinSession } from "@github/copilot-sdk/extension";

console.log(`before joining: ${process.env.SPEC_API_TOKEN}`);
await joinSession({
  requestedEnvironmentVariables: ["SPEC_API_TOKEN", "SPEC_NOT_SET"],
  tools: [{ name: "token", handler: () => process.env.SPEC_API_TOKEN }],
});
