import { CanvasError, createCanvas, joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  canvases: [createCanvas({
    id: "page",
    displayName: "Page",
    description: "A page",
    inputSchema: { type: "object", properties: { n: { type: "number" } } },
    open: ({ input }) => ({ title: `Page ${input.n}` }),
    actions: [
      { name: "add", description: "Adds", handler: ({ input }) => ({ sum: input.n + 1 }) },
      { name: "say", description: "Says", handler: () => "a text" },
      { name: "fail", description: "Fails", handler: () => { throw new CanvasError("no_more", "that was all"); } },
    ],
  })],
});
