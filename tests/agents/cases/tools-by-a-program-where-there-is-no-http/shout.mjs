import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ tools: [{ name: "shout", description: "Shouts", handler: ({ text }) => `${text.toUpperCase()}!` }] });
