import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [
    { name: "declared", description: "Somebody else answers it" },
    { name: "odd", handler: "not a function" },
  ],
});
