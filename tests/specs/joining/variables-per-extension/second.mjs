import { existsSync } from "node:fs";
import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ requestedEnvironmentVariables: existsSync("invited") ? ["SPEC_A_TOKEN"] : [] });
console.log(`second: ${process.env.SPEC_A_TOKEN}`);
