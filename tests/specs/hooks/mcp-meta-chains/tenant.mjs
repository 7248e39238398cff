import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreMcpToolCall: () => ({ metaToUse: { tenant: "a" } }),
  },
});
