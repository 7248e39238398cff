import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "look",
    description: "Looks",
    handler: async () => {
      for (const canvas of session.openCanvases) canvas.title = "changed";
      session.openCanvases.push({ instanceId: "made up" });
      const first = session.openCanvases;
      const again = await joinSession({ tools: [{ name: "look", description: "Looks", handler: session.getToolHandler("look") }] });
      return [first, again.openCanvases.length];
    },
  }],
});
session.on("session.canvas.opened", () => session.log("opened"));
session.on("session.canvas.closed", () => session.log("closed"));
