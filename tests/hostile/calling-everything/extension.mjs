import { joinSession } from "@github/copilot-sdk/extension";
import fs from "node:fs";
import { walk } from "./walk.mjs";

/** Fewer would mean that the walk does not find what it looks for. */
const FEWEST = 2500;

// What the walk makes of the modules must not change how it says where it is.
const { openSync, readFileSync, writeSync, closeSync } = fs;
const { log } = console;

process.on("unhandledRejection", () => undefined);
process.on("uncaughtException", () => undefined);

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      const place = openSync("place", "a+");
      // It goes on behind the function at which it was ended: by a limit, or an error that nobody could catch.
      const lines = readFileSync("place", "utf8").split("\n");
      const from = Number.parseInt(lines.at(-2) ?? "-1", 10) + 1;
      const total = await walk({ from, to: Infinity, begin: (index, path) => writeSync(place, `${index} ${path}\n`) });
      closeSync(place);
      if (total < FEWEST) throw new Error(`broke: ${total} functions are all that was found`);
      log("walked to the end");
      return "held";
    },
  }],
});
