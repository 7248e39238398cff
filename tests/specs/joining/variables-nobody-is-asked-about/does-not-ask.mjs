import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ requestedEnvironmentVariables: ["SPEC_PLAIN", "SPEC_NOT_SET"] });
console.log(`${process.env.SPEC_PLAIN} ${process.env.SPEC_NOT_SET}`);
