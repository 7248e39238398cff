// What an extension gets for `node:module`: node's own, with a `require` that knows the SDK.
// Every name is spelt out and the import is a dynamic one, because QuickJS loses names that only
// `export *` passes on, and runs this module before one that it imports statically.
const { default: Module } = await import("node:module");
export const {
  builtinModules, constants, createRequire, enableCompileCache, findPackageJSON, findSourceMap,
  flushCompileCache, getCompileCacheDir, isBuiltin, register, registerHooks, runMain, SourceMap,
  stripTypeScriptTypes, syncBuiltinESMExports, globalPaths, _cache, _extensions, _load, _nodeModulePaths,
  _pathCache, _resolveFilename,
} = Module;
export { Module };
export default Module;

// Worker threads have no SDK: the session is the extension's.
globalThis[Symbol.for("tenon.sdk")]?.teachRequire(Module);
