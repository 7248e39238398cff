import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ requestedEnvironmentVariables: ["SPEC_API_TOKEN"] });
