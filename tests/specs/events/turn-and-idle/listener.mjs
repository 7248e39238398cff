import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();
const turns = new Set();
session.on("assistant.turn_start", ({ data }) => turns.add(data.turnId));
session.on("assistant.message", ({ data }) => console.log(`${data.content} in the turn: ${turns.has(data.turnId)}`));
session.on("assistant.turn_end", ({ data }) => console.log(`the turn ends: ${turns.has(data.turnId)}`));
