import { createCanvas, joinSession } from "@github/copilot-sdk/extension";

await joinSession({ canvases: [createCanvas({ id: "bare", open: () => ({}) }), createCanvas({ id: "also", displayName: "Also", open: () => ({}) })] });
