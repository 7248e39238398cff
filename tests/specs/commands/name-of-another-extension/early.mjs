import { writeFileSync } from "node:fs";
import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ commands: [{ name: "deploy", description: "The first", handler: () => console.log("deployed by the first") }] });
writeFileSync("first-is-there", "");
