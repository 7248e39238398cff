import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ tools: [{ name: "open_canvas", description: "Mine", overridesBuiltInTool: true, handler: ({ canvasId }) => `mine: ${canvasId}` }] });
