import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();

const once = session.on("test.a", ({ data }) => {
  once();
  console.log(`once: ${data.n}`);
});
session.on("test.a", ({ data }) => {
  console.log(`always: ${data.n}`);
  if (data.n === 2) later();
});
const later = session.on("test.a", ({ data }) => console.log(`until 2: ${data.n}`));
session.on(({ type, data }) => type === "test.a" && console.log(`all: ${data.n}`));
