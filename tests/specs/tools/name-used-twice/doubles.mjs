import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [
    { name: "one", handler: () => 1 },
    { name: "two", handler: () => 2 },
    { name: "one", handler: () => 3 },
  ],
});
