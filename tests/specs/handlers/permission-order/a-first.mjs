import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  onPermissionRequest: async ({ kind }) => {
    await session.log("a-first was asked");
    return kind === "read" ? { kind: "approve-for-session", approval: { kind: "read" } } : { kind: "reject", feedback: "not that" };
  },
});
