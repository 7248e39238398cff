import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreMcpToolCall: ({ arguments: { by } }) => (by.includes("a") ? { metaToUse: null } : {}),
  },
});
