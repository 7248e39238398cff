// What an extension gets for `node:module`: node's own, with a `require` that knows the SDK.
import Module from "node:module";
export * from "node:module";
export default Module;

globalThis[Symbol.for("tenon.sdk")].teachRequire(Module);
