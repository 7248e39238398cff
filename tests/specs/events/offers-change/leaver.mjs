import { createCanvas, joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{ name: "t", description: "A tool", handler: () => "" }],
  commands: [{ name: "c", description: "A command", handler: () => {} }],
  canvases: [createCanvas({ id: "page", open: () => ({}) })],
});
session.on("test.exit", () => process.exit(0));
