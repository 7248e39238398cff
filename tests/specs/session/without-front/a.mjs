import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  onPermissionRequest: ({ kind }) => ({ kind: kind === "read" ? "approve-once" : "no-result" }),
  tools: [{ name: "look", description: "Looks", handler: async () => [session.capabilities, await session.ui.confirm("?").catch(({ message }) => message)] }],
});
