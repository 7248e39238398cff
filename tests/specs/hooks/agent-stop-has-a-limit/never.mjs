import { joinSession } from "@github/copilot-sdk/extension";

let stops = 0;

await joinSession({ hooks: { onAgentStop: ({ stopHookActive }) => ({ decision: "block", reason: `${++stops} ${stopHookActive}` }) } });
