import { joinSession, createCanvas } from "@github/copilot-sdk/extension";
const session = await joinSession({
  canvases: [createCanvas({ id: "c", open: () => ({ url: "http://127.0.0.1:1/", title: "t" }), onClose: () => session.log("closed") })],
  tools: [{ name: "reload", handler: () => session.rpc.extensions.reload() }],
});
