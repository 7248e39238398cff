import { joinSession } from "@github/copilot-sdk/extension";
const session = await joinSession({});
process.on("SIGTERM", async () => {
  console.log("before");
  await session.log("bye");
  console.log("after");
  process.exit(0);
});
