import { createCanvas, joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  canvases: [createCanvas({
    id: "full",
    displayName: "Full",
    description: "Has everything",
    inputSchema: { type: "object", properties: { n: { type: "number" } } },
    open: () => ({}),
    onClose: () => {},
    actions: [{ name: "go", description: "Goes", inputSchema: { type: "object" }, handler: () => {} }],
  })],
});
