import { createCanvas, joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({ canvases: [createCanvas({ id: "mortal", open: () => ({}) })] });
session.on("test.exit", () => process.exit(0));
