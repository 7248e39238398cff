import { joinSession } from "@github/copilot-sdk/extension";

const answers = {
  "denied-by-rules": { kind: "denied-by-rules", rules: [] },
  "approve-permanently": { kind: "approve-permanently", domain: "here" },
  nothing: undefined,
  null: null,
};

await joinSession({ onPermissionRequest: ({ path }) => (path in answers ? answers[path] : { kind: path }) });
