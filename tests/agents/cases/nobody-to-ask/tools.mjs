import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [
    { name: "plain", description: "Needs a permission", handler: () => "done" },
    { name: "harmless", description: "Needs none", skipPermission: true, handler: () => "done" },
  ],
});
