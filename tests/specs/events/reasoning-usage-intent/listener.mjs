import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();
session.on("assistant.reasoning", ({ data }) => console.log(`thought: ${data.content}`));
session.on("assistant.reasoning_delta", ({ data }) => console.log(`thinks: ${data.deltaContent}`));
session.on("assistant.usage", ({ data, ephemeral }) => console.log(`used: ${data.model} ${data.inputTokens} ${data.outputTokens} ${ephemeral}`));
session.on("assistant.intent", ({ data, ephemeral }) => console.log(`about to: ${data.intent} ${ephemeral}`));
session.on("session.usage_info", ({ data }) => console.log(`context: ${data.currentTokens} of ${data.tokenLimit}`));
