import { joinSession } from "@github/copilot-sdk/extension";

let goOn;
const wentOn = new Promise((resolve) => (goOn = resolve));

const session = await joinSession({
  tools: [{ name: "early", handler: () => "answered" }, { name: "late", handler: () => wentOn }],
});
await new Promise((resolve) => session.on("test.go", resolve));
goOn("went on");
