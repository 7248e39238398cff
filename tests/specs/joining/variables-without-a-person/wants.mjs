import { existsSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { approveAll } from "@github/copilot-sdk";
import { joinSession } from "@github/copilot-sdk/extension";

while (!existsSync("agrees")) await setTimeout(1);
try {
  await joinSession({ requestedEnvironmentVariables: ["SPEC_API_TOKEN"], onPermissionRequest: approveAll });
} catch (error) {
  console.log(error.message);
}
console.log(`the token is ${process.env.SPEC_API_TOKEN}`);
await joinSession();
