import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();
session.on("test.a", ({ data }) => {
  throw data.n === 1 ? "a text" : undefined;
});
session.on("test.a", ({ data }) => console.log(`goes on: ${data.n}`));
