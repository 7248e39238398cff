import { joinSession } from "@github/copilot-sdk/extension";

let rounds = 0;
const session = await joinSession();
session.on("session.idle", async () => {
  if (rounds > 101) return;
  rounds += 1;
  await session.send(`round ${rounds}`).catch(({ message }) => session.log(message));
});
