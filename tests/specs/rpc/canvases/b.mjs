import { createCanvas, joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  canvases: [createCanvas({
    id: "page",
    displayName: "Page",
    description: "A page",
    open: ({ input }) => ({ title: `Page ${input.n}` }),
    actions: [{ name: "add", description: "Adds", handler: ({ input }) => input.n + 1 }],
  })],
});
