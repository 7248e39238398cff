// The module behind `@github/copilot-sdk/extension` and `@tenon/sdk/extension`.
const sdk = globalThis[Symbol.for("tenon.sdk")]?.extension;
if (!sdk) throw new Error("the SDK is not available in a worker thread; post a message to the extension");
export const { Canvas, CanvasError, FactoryResumeError, createCanvas, defineFactory, isFactoryRunTerminal, joinSession } = sdk;
