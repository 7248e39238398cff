import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{ name: "touch", description: "Touches a file", handler: ({ file }) => `touched ${file}` }],
  onPermissionRequest: ({ kind }) => ({ kind: kind === "read" ? "approve-once" : "no-result" }),
});
