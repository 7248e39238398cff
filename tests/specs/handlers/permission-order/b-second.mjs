import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  onPermissionRequest: async () => {
    await session.log("b-second was asked");
    return { kind: "approve-once" };
  },
});
