import { createCanvas, joinSession } from "@github/copilot-sdk/extension";

const schema = { type: "object", properties: { n: { type: "number", maximum: 10 } }, required: ["n"], additionalProperties: false };
const open = ({ canvasId, input }) => console.log(`${canvasId} opened with ${JSON.stringify(input)}`);
await joinSession({
  canvases: [
    createCanvas({ id: "strict", inputSchema: schema, open, actions: [{ name: "set", inputSchema: schema, handler: ({ input }) => input.n }] }),
    createCanvas({ id: "loose", open }),
  ],
});
