import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreMcpToolCall: ({ _meta }) => console.log(JSON.stringify(_meta)),
  },
});
