import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "look",
    description: "Looks",
    handler: async () => {
      const { canvas } = session.rpc;
      const lines = [];
      const attempt = async (name, call) => lines.push(`${name}: ${JSON.stringify(await call().catch(({ message }) => message))}`);
      await attempt("list", () => canvas.list());
      await attempt("open", () => canvas.open({ canvasId: "page", instanceId: "p1", input: { n: 1 } }));
      await attempt("listOpen", () => canvas.listOpen());
      await attempt("action", () => canvas.action.invoke({ instanceId: "p1", actionName: "add", input: { n: 2 } }));
      await attempt("no action", () => canvas.action.invoke({ instanceId: "p1", actionName: "none" }));
      await attempt("close", () => canvas.close({ instanceId: "p1" }));
      await attempt("close again", () => canvas.close({ instanceId: "p1" }));
      await attempt("open none", () => canvas.open({ canvasId: "none" }));
      await attempt("listOpen", () => canvas.listOpen());
      return lines.join("\n");
    },
  }],
});
