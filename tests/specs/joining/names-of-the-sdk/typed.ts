import type { Tool } from "@tenon/sdk";
import { joinSession } from "@tenon/sdk/extension";

const tool: Tool<{ n?: number }> = { name: "typed", handler: ({ n }) => `typed ${n ?? 0}` };
await joinSession({ tools: [tool] });
