import { createCanvas, joinSession } from "@github/copilot-sdk/extension";

await joinSession({ canvases: [createCanvas({ id: "page", open: () => ({ title: "Two" }), actions: [{ name: "who", handler: () => "two" }] })] });
