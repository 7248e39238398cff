import { createCanvas, joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  canvases: [
    createCanvas({ id: "a", open: ({ instanceId, input }) => ({ title: `${instanceId} ${input.n}` }) }),
    createCanvas({ id: "b", open: ({ instanceId }) => ({ title: instanceId }) }),
  ],
});
