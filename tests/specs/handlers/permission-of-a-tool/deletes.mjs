import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ tools: [{ name: "delete", description: "Deletes a file", handler: ({ path }) => `${path} is gone` }] });
