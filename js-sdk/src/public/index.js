// The module behind `@github/copilot-sdk` and `@tenon/sdk`.
const sdk = globalThis[Symbol.for("tenon.sdk")]?.index;
if (!sdk) throw new Error("the SDK is not available in a worker thread; post a message to the extension");
export const {
  Canvas, CanvasError, CopilotClient, CopilotSession, FactoryResumeError, RuntimeConnection, approveAll,
  convertMcpCallToolResult, createAttributedPermissionResult, createCanvas, defineFactory, defineTool,
  isFactoryRunTerminal, joinSession,
} = sdk;
