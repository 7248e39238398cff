import { createCanvas, joinSession } from "@github/copilot-sdk/extension";
import { writeFileSync } from "node:fs";
import path from "node:path";

const session = await joinSession({
  tools: [{ name: "gone", description: "A tool", handler: () => "not gone" }],
  hooks: { onPreToolUse: () => ({ permissionDecision: "deny", permissionDecisionReason: "not gone" }) },
  canvases: [createCanvas({ id: "page", open: () => ({}) })],
  onPermissionRequest: () => ({ kind: "approve-once" }),
  commands: [{
    name: "leave",
    handler: async () => {
      writeFileSync(path.join(session.workspacePath, "files", "kept.txt"), "kept\n");
      await session.disconnect();
      await session.disconnect();
      const attempts = { log: () => session.log("x"), send: () => session.send("x"), sendAndWait: () => session.sendAndWait("x"), on: () => session.on("x", () => {}), getEvents: () => session.getEvents(), rpc: () => session.rpc.name.get(), confirm: () => session.ui.confirm("x"), abort: () => session.abort(), setModel: () => session.setModel("x") };
      for (const [name, attempt] of Object.entries(attempts)) console.log(`${name}: ${await (async () => attempt())().then(() => "works", ({ message }) => message)}`);
    },
  }],
});
session.on("test.a", () => console.log("still hears"));
