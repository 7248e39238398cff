// The module behind `@github/copilot-sdk/extension` and `@tenon/sdk/extension`.
const sdk = globalThis[Symbol.for("tenon.sdk")].extension;
export const { Canvas, CanvasError, FactoryResumeError, createCanvas, defineFactory, isFactoryRunTerminal, joinSession } = sdk;
