import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onAgentStop: () => ({ reason: "not a block" }),
  },
});
