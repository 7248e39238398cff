import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();
session.on("assistant.plan", ({ data }) => console.log(`plan: ${data.entries.map(({ content, status }) => `${content} (${status})`).join(", ")}`));
session.on("agent.commands_changed", ({ data, ephemeral }) => console.log(`commands: ${data.commands.map(({ name }) => name)} ${ephemeral}`));
session.on("agent.options_changed", ({ data }) => console.log(`options: ${data.configOptions.map(({ id, currentValue }) => `${id}=${currentValue}`)}`));
session.on("acp.update", ({ data }) => console.log(`update: ${data.update.sessionUpdate}`));
session.on("session.compaction_start", ({ ephemeral }) => console.log(`compaction begins ${ephemeral}`));
session.on("session.compaction_complete", ({ data }) => console.log(`compaction: ${data.success}`));
