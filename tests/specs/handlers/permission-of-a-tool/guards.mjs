import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  onPermissionRequest: ({ kind, toolName, args }) => {
    if (kind !== "custom-tool" || toolName !== "delete") return { kind: "no-result" };
    return args.path.startsWith("tmp/") ? { kind: "approve-once" } : { kind: "reject", feedback: `${args.path} is needed` };
  },
});
