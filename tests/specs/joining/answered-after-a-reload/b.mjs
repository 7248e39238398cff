import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({ tools: [{ name: "reload", handler: () => session.rpc.extensions.reload() }] });
