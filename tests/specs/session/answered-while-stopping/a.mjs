import { joinSession } from "@github/copilot-sdk/extension";
const session = await joinSession({});
process.on("SIGTERM", async () => {
  const t = Date.now();
  console.log("before");
  await session.log("bye");
  console.log("after " + (Date.now() - t < 500));
  process.exit(0);
});
