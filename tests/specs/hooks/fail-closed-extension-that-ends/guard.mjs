import { joinSession } from "@github/copilot-sdk/extension";

const guard = () => process.exit(1);
guard.failClosed = true;

await joinSession({ hooks: { onPreToolUse: guard } });
