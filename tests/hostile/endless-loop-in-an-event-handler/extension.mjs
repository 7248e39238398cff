import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({});
session.on("test.attack", () => {
  for (;;) {}
});
