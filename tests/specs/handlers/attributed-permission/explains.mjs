import { createAttributedPermissionResult } from "@github/copilot-sdk";
import { joinSession } from "@github/copilot-sdk/extension";

const how = { outcome: "auto_approved", source: "host_policy", surface: "sdk" };
const answers = {
  read: createAttributedPermissionResult({ kind: "approve-once" }, how),
  shell: createAttributedPermissionResult(createAttributedPermissionResult({ kind: "reject", feedback: "no shell" }, how), how),
  url: createAttributedPermissionResult({ kind: "no-result" }, how),
};

await joinSession({ onPermissionRequest: ({ kind }) => answers[kind] });
