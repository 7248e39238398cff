import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ hooks: { onPreToolUse: () => { throw "cannot say"; } } });
