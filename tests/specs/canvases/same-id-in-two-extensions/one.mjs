import { createCanvas, joinSession } from "@github/copilot-sdk/extension";

await joinSession({ canvases: [createCanvas({ id: "page", open: () => ({ title: "One" }), actions: [{ name: "who", handler: () => "one" }] })] });
