import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  model: "model-1",
  reasoningEffort: "high",
  systemMessage: { mode: "replace", content: "You are a pirate." },
  availableTools: ["nothing"],
  excludedTools: ["look"],
  mcpServers: { files: { command: "never-started", tools: ["*"] } },
  customAgents: [{ name: "helper", prompt: "Help." }],
  workingDirectory: "/nowhere",
  streaming: true,
  infiniteSessions: { enabled: false },
  largeOutput: { enabled: true, maxSizeBytes: 1 },
  tools: [{
    name: "look",
    handler: async () => {
      const { workingDirectory } = await session.rpc.metadata.snapshot();
      return { model: await session.rpc.model.getCurrent(), workingDirectory, cwd: process.cwd() };
    },
  }],
});
