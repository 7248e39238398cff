import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  onPermissionRequest: async ({ path }) => {
    const yes = await session.ui.confirm(`Show ${path} to the agent?`);
    return yes ? { kind: "approve-once" } : { kind: "reject", feedback: "keep it secret" };
  },
});
