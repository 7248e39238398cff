import { writeFileSync } from "node:fs";
import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ tools: [{ name: "greet", handler: () => "hello from the first" }] });
writeFileSync("first-is-there", "");
