import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreMcpToolCall: ({ arguments: { by }, _meta }) => (by.includes("b") ? { metaToUse: { before: typeof _meta } } : undefined),
  },
});
