import { createCanvas, joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({ canvases: [createCanvas({ id: "page", open: () => ({ url: "http://127.0.0.1:1/" }) })] });
console.log(JSON.stringify(session.capabilities));
