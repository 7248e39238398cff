import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();
session.on("abort", ({ data }) => console.log(`abort: ${data.reason}`));
