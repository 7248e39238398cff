import { Canvas, createCanvas, joinSession } from "@github/copilot-sdk/extension";

const open = () => ({});
const wrong = {
  nothing: () => createCanvas(),
  "no id": () => createCanvas({ open }),
  "empty id": () => createCanvas({ id: "", open }),
  "no open": () => createCanvas({ id: "x" }),
  "actions no list": () => createCanvas({ id: "x", open, actions: {} }),
  "action without name": () => createCanvas({ id: "x", open, actions: [{ handler: open }] }),
  "action twice": () => createCanvas({ id: "x", open, actions: [{ name: "a" }, { name: "a" }] }),
  "reserved action": () => createCanvas({ id: "x", open, actions: [{ name: "canvas.open" }] }),
  "no list": () => joinSession({ canvases: createCanvas({ id: "x", open }) }),
  "not created": () => joinSession({ canvases: [{ id: "x", open }] }),
  twice: () => joinSession({ canvases: [createCanvas({ id: "x", open }), createCanvas({ id: "x", open })] }),
};
await joinSession({
  tools: [{
    name: "look",
    description: "Looks",
    handler: async () => {
      const lines = [`a canvas: ${createCanvas({ id: "x", open }) instanceof Canvas}`];
      for (const [name, attempt] of Object.entries(wrong)) lines.push(`${name}: ${await (async () => attempt())().then(() => "works", ({ message }) => message)}`);
      return lines.join("\n");
    },
  }],
});
