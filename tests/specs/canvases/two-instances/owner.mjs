import { createCanvas, joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  canvases: [createCanvas({
    id: "page",
    open: () => {},
    onClose: ({ canvasId, instanceId, extensionId }) => console.log(`closed ${canvasId} ${instanceId} ${extensionId}`),
    actions: [{ name: "who", handler: (request) => request }],
  })],
});
