import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();
let last;

session.on("test.a", () => {
  throw new Error("a handler may fail");
});
const unsubscribe = session.on("test.a", ({ data }) => {
  console.log(`of one type: ${data.n}`);
  if (data.n === 3) {
    unsubscribe();
    session.log("unsubscribed");
  }
});
session.on((event) => {
  if (!event.type.startsWith("test.")) return;
  const { id, type, data, timestamp, parentId, ephemeral } = event;
  console.log(`of all types: ${JSON.stringify({ type, data, ephemeral, follows: parentId === last, newId: id !== last, utc: timestamp.endsWith("Z") })}`);
  last = id;
  if (type === "test.done") session.log("done");
});
