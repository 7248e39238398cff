import { createCanvas, joinSession } from "@github/copilot-sdk/extension";

await joinSession({ canvases: [createCanvas({ id: "page", open: () => ({}) })] });
