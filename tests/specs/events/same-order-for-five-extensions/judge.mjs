import { joinSession } from "@github/copilot-sdk/extension";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";

const seen = [];
const session = await joinSession({
  tools: [{
    name: "orders",
    description: "Compares what the others have seen",
    handler: async () => {
      const files = ["a", "b", "c", "d"].map((name) => path.join(session.workspacePath, `${name}.json`));
      while (!seen.includes("test.4") || !files.every((file) => existsSync(file) && readFileSync(file, "utf8").endsWith("]"))) await new Promise((resolve) => setImmediate(resolve));
      // From the first event of the script on: what came before depends on who joined first.
      const cut = (types) => types.slice(types.indexOf("test.1"), types.indexOf("test.4") + 1).filter((type) => type !== "session.extensions_loaded");
      const orders = [...files.map((file) => JSON.parse(readFileSync(file, "utf8"))), seen].map(cut);
      return { same: orders.every((order) => order.join() === orders[0].join()), order: orders[0] };
    },
  }],
});
session.on(({ type }) => seen.push(type));
