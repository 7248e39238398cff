// The module behind `@github/copilot-sdk` and `@tenon/sdk`.
const sdk = globalThis[Symbol.for("tenon.sdk")].index;
export const {
  Canvas, CanvasError, CopilotClient, CopilotSession, FactoryResumeError, RuntimeConnection, approveAll,
  convertMcpCallToolResult, createCanvas, defineFactory, defineTool, isFactoryRunTerminal, joinSession,
} = sdk;
