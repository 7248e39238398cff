import { createCanvas, joinSession } from "@github/copilot-sdk/extension";

let ended = false;
const session = await joinSession({
  canvases: [createCanvas({ id: "lasting", open: () => ({}) })],
  tools: [{ name: "open_canvases", description: "Which are open", handler: () => session.openCanvases.map(({ instanceId }) => instanceId) }],
});
session.on("session.canvas.unavailable", () => (ended = true));
session.on("session.extensions_loaded", () => ended && session.log("the other has ended"));
