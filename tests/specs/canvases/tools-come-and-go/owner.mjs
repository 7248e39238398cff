import { createCanvas, joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  canvases: [createCanvas({ id: "page", open: () => ({}) })],
  commands: [{ name: "leave", handler: () => session.disconnect() }],
});
