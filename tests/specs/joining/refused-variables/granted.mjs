import { approveAll } from "@github/copilot-sdk";
import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ requestedEnvironmentVariables: ["SPEC_API_TOKEN"], onPermissionRequest: approveAll });
console.log(`after joining: ${process.env.SPEC_API_TOKEN}`);
