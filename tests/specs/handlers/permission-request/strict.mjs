import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  onPermissionRequest: async ({ kind, fullCommandText }) => {
    console.log(kind);
    if (kind === "shell") return { kind: "reject", feedback: `not ${fullCommandText}` };
    if (kind === "write") return { kind: "reject" };
    return { kind: "no-result" };
  },
});
