import { joinSession } from "@github/copilot-sdk/extension";
import { writeFileSync } from "node:fs";
import path from "node:path";

let titles = 0;
const session = await joinSession({
  commands: [{
    name: "flood",
    handler: async () => {
      const name = "x".repeat(1024 * 1024);
      const all = new Promise((resolve) => session.on("session.title_changed", () => (titles += 1) === 40 && resolve()));
      for (let sent = 0; sent < 40; sent += 1) await session.rpc.name.set({ name });
      await all;
      console.log(`${titles} titles`);
      writeFileSync(path.join(session.workspacePath, "flooded"), "");
    },
  }],
});
session.on("session.warning", ({ data }) => console.log(data.message));
