import { createCanvas, joinSession } from "@github/copilot-sdk/extension";

await joinSession({ canvases: [createCanvas({ id: "page", open: () => ({ title: "Page", url: "http://127.0.0.1:1/" }) })] });
