import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreMcpToolCall: ({ _meta }) => ({ metaToUse: { ..._meta, trace: "2" } }),
  },
});
