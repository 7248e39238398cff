import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  commands: [{
    name: "send",
    handler: () => session.sendAndWait({ prompt: "long text", displayPrompt: "short", source: "schedule-1", agentMode: "autopilot", unknown: "is left out" }),
  }],
});
