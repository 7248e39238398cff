import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();

const first = session.on("test.a", ({ data }) => {
  first();
  console.log(`first: ${data.n}`);
  session.on("test.a", ({ data }) => console.log(`added: ${data.n}`));
  session.on("test.b", ({ data }) => console.log(`added for another type: ${data.n}`));
  session.log("subscribed");
});
