import { joinSession } from "@github/copilot-sdk/extension";

let tell;
const said = new Promise((resolve) => (tell = resolve));
const heard = (name) => ({ type }) => {
  if (type !== "test.said") return;
  console.log(`${name} heard it`);
  if (name === "second") tell("told");
};

await joinSession({
  tools: [{ name: "old", handler: () => "old" }, { name: "kept", handler: () => "kept by the first" }],
  onPermissionRequest: () => ({ kind: "approve-once" }),
  onEvent: heard("first"),
  hooks: { onPreToolUse: () => ({ permissionDecision: "deny" }) },
  commands: [{
    name: "rejoin",
    handler: async () => {
      await joinSession({
        tools: [
          { name: "kept", handler: () => "kept by the second" },
          { name: "new", handler: () => "new" },
          { name: "heard", handler: () => said },
        ],
        onEvent: heard("second"),
        commands: [{ name: "other", handler: () => {} }],
      });
    },
  }],
});
