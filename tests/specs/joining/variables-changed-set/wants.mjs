import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { joinSession } from "@github/copilot-sdk/extension";

const names = existsSync("names.json") ? JSON.parse(readFileSync("names.json", "utf8")) : ["SPEC_A_TOKEN"];
await joinSession({
  requestedEnvironmentVariables: names,
  tools: [{ name: "next", handler: (args) => writeFileSync("names.json", JSON.stringify(args.names)) }],
});
console.log(`${process.env.SPEC_A_TOKEN} ${process.env.SPEC_B_TOKEN}`);
