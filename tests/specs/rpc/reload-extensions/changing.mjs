import { joinSession } from "@github/copilot-sdk/extension";
import { readFileSync, writeFileSync } from "node:fs";

const VERSION = 1;
const session = await joinSession({ tools: [{ name: "version", description: "Says which one it is", handler: async () => `${VERSION}, after ${(await session.getEvents())[0].type}` }] });
if (VERSION > 1) await session.log(`loaded as version ${VERSION}`);
session.on("test.reload", () => {
  const file = process.env.EXTENSION_PATH;
  writeFileSync(file, readFileSync(file, "utf8").replace("VERSION = 1", "VERSION = 2"));
  session.rpc.extensions.reload();
});
