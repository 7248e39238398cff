import { existsSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { joinSession } from "@github/copilot-sdk/extension";

while (!existsSync("first-is-there")) await setTimeout(1);
await joinSession({
  tools: [
    { name: "other", handler: () => "never" },
    { name: "greet", handler: () => "hello from the second" },
  ],
});
