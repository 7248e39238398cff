import { joinSession } from "@github/copilot-sdk/extension";
import { spawnSync } from "node:child_process";
import fs from "node:fs";

const work = (said) => {
  const own = Array.from({ length: 20 }, () => fs.openSync(import.meta.filename));
  own.forEach((file) => fs.closeSync(file));
  const { status, error } = spawnSync("true");
  if (status !== 0) throw error ?? new Error(`the program ended with ${status}`);
  return said;
};

await joinSession({
  tools: [
    { name: "ping", description: "Opens files and starts a program", handler: () => work("pong") },
    { name: "poke", description: "Does so, too", handler: () => work("poked") },
  ],
});
