import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({ streaming: true });
const parts = new Map();
session.on("assistant.message_start", ({ data }) => parts.set(data.messageId, ""));
session.on("assistant.message_delta", ({ data }) => parts.set(data.messageId, parts.get(data.messageId) + data.deltaContent));
session.on("assistant.message", ({ data }) => console.log(`${data.content}: ${parts.get(data.messageId) === data.content}`));
