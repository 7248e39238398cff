import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  commands: [
    { name: "fail", handler: () => { throw new Error("cannot"); } },
    { name: "complain", handler: () => session.log("something is wrong", { level: "error" }) },
  ],
});
