import { joinSession } from "@github/copilot-sdk/extension";

const { SPEC_PLAIN, SPEC_HIDDEN, SPEC_API_TOKEN } = process.env;
console.log(`before: ${SPEC_PLAIN} ${SPEC_HIDDEN} ${SPEC_API_TOKEN}`);
await joinSession({ requestedEnvironmentVariables: ["SPEC_PLAIN", "SPEC_HIDDEN", "SPEC_NOT_SET"] });
console.log(`after: ${process.env.SPEC_PLAIN} ${process.env.SPEC_HIDDEN} ${process.env.SPEC_NOT_SET}`);
