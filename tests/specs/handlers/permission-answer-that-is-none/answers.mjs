import { joinSession } from "@github/copilot-sdk/extension";

const answers = { text: "approve-once", empty: {}, yes: true };

await joinSession({ onPermissionRequest: ({ path }) => answers[path] });
