import { CanvasError, createCanvas, joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  canvases: [createCanvas({
    id: "page",
    open: async ({ input }) => {
      if (input.fail === "coded") throw new CanvasError("no_screen", "there is no screen");
      if (input.fail === "rejected") throw new Error("cannot");
      if (input.fail === "elsewhere") return { title: "Open", url: "javascript:alert(1)" };
      return { title: "Open", url: "http://127.0.0.1:1/", status: "fine" };
    },
  })],
});
