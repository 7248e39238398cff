import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  onPermissionRequest: async ({ kind }) => {
    await session.log("z-user was asked");
    return { kind: kind === "read" ? "user-not-available" : "approve-once" };
  },
});
