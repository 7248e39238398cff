import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ tools: [{ name: "invoke_canvas_action", description: "Mine", handler: () => "mine" }] });
