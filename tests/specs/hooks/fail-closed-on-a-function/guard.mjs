import { joinSession } from "@github/copilot-sdk/extension";

const guard = () => {
  throw new Error("cannot tell");
};
guard.failClosed = true;

await joinSession({ hooks: { onPreToolUse: guard } });
