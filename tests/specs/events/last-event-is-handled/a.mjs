import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();
session.on("session.shutdown", async ({ data }) => {
  await null;
  console.log(`goodbye after ${data.shutdownType}`);
});
