import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();
const listener = ({ type }) => console.log(`heard ${type}`);

const unsubscribe = session.on("test.a", listener);
session.on("test.a", listener);
session.on("test.a", async () => {
  unsubscribe();
  unsubscribe();
  await session.log("unsubscribed");
});
session.on("test.done", listener);
