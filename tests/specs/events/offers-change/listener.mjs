import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();
const unsubscribe = session.on("session.extensions_loaded", ({ data, ephemeral }) => {
  if (data.extensions.every(({ status }) => status === "running")) return;
  unsubscribe();
  console.log(data.extensions.map(({ id, name, source, status, generation, hash }) => `${id} ${name} ${source} ${status} ${generation} ${typeof hash}`).join("; "));
  console.log(`ephemeral: ${ephemeral}`);
  session.log("heard");
});
