import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [
    { name: "known", handler: () => "known" },
    { name: "executes", handler: () => session.rpc.tools.execute({ toolName: "missing", arguments: {} }) },
  ],
});
