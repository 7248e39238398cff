import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [
    { name: "double", description: "Doubles", handler: ({ n }) => String(n * 2) },
    { name: "free", description: "Needs no permission", skipPermission: true, handler: () => "free" },
  ],
});
