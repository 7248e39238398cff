import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();
const names = new Map();

session.on((event) => {
  if (!event.type.startsWith("test.")) return;
  const parent = event.parentId === null ? "nothing" : (names.get(event.parentId) ?? "an event before");
  console.log(`${event.type} follows ${parent}${event.ephemeral ? ", ephemeral" : ""}`);
  names.set(event.id, event.type);
});
