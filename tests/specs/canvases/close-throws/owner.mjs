import { createCanvas, joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  canvases: [
    createCanvas({ id: "rough", open: () => ({}), onClose: () => { throw new Error("not like this"); } }),
    createCanvas({ id: "quiet", open: () => ({}) }),
  ],
});
