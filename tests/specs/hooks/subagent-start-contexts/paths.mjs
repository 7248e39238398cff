import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onSubagentStart: () => ({ additionalContext: "Tests are in tests/." }),
  },
});
