import { writeFileSync } from "node:fs";
import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  requestedEnvironmentVariables: ["SPEC_A_TOKEN"],
  tools: [{ name: "invite", handler: () => writeFileSync("invited", "") }],
});
console.log(`first: ${process.env.SPEC_A_TOKEN}`);
