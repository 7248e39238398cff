import { joinSession } from "@github/copilot-sdk/extension";

let written = 0;

await joinSession({
  tools: [
    { name: "write", description: "Writes a number", handler: ({ n }) => (written = n) },
    { name: "read", description: "Reads it", skipPermission: true, handler: () => written },
  ],
});
