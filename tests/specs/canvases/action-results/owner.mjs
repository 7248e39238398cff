import { CanvasError, createCanvas, joinSession } from "@github/copilot-sdk/extension";

const actions = {
  text: () => "a text",
  nothing: () => {},
  later: async () => [1, { two: 2 }],
  coded: () => { throw new CanvasError("out_of_paper", "put some in"); },
  plain: () => { throw new Error("broken"); },
  odd: () => { throw "a text"; },
  rejected: () => Promise.reject(new CanvasError("too_late", "closed")),
  empty: undefined,
};
await joinSession({
  canvases: [createCanvas({ id: "page", open: () => ({}), actions: Object.entries(actions).map(([name, handler]) => ({ name, handler })) })],
});
