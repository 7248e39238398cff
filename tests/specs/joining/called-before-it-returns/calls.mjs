import { writeFileSync } from "node:fs";
import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();
const isThere = async () => (await session.rpc.tools.getCurrentMetadata()).tools.some(({ name }) => name === "early");
while (!(await isThere())) {}
await session.log("said before joinSession resolved");
session.on("external_tool.requested", () => writeFileSync("called", ""));
const { textResultForLlm } = await session.rpc.tools.execute({ toolName: "early", arguments: {} });
await session.log(`the call was answered: ${textResultForLlm}`);
