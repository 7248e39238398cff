import { createCanvas, joinSession } from "@github/copilot-sdk/extension";

const host = ({ host }) => JSON.stringify(host);
await joinSession({ canvases: [createCanvas({ id: "page", open: (request) => ({ status: host(request) }), actions: [{ name: "host", handler: host }] })] });
