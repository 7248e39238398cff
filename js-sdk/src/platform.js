// Runs once per isolate, before any extension code: what the runtime calls, and what extensions see.

import { core, internals } from "ext:core/mod.js";
import { cancel, dispatch, serve, warn } from "ext:tenon/bridge.js";
import { deliver } from "ext:tenon/events.js";
import * as extension from "ext:tenon/extension.js";
import * as index from "ext:tenon/index.js";
import { guardNativeClasses } from "ext:tenon/native-classes.js";
import { limitResults } from "ext:tenon/tool-result.js";

// The public modules are plain text to the module loader; this is where they find the SDK.
const SDK = Symbol.for("tenon.sdk");

let extensionId = "this extension";

/** The operations on files that only read. What was opened is not told. */
const READING = new Set(["chdir", "lstat", "readdir", "readfile", "readlink", "realpath", "stat", "statfs"]);

/** What a denial says that it is about: the permission and its object. A denial on the way to a file says what was to be
 * done instead. */
function deniedAccess(message) {
  const [, permission, target] = /^Requires (\S+) access(?: to (.*?))?(?:, (?:run again|specify)|$)/.exec(message) ?? [];
  if (permission) return target ? `${permission} access to ${target}` : `${permission} access`;
  const [, operation, path] = /^([a-z]+) '(?:.* -> ')?(.*)'$/s.exec(message) ?? [];
  if (!operation) return undefined;
  const kind = operation === "open" ? "read or write" : READING.has(operation) ? "read" : "write";
  return `${kind} access to "${path}"`;
}

/** Makes every denied permission say who was denied what, and where; the log keeps it even if the
 * extension catches the error. */
function explainDenials() {
  // Deno's class for denials sets its name when it is made: the one moment all of them pass.
  Object.defineProperty(core.NotCapable.prototype, "name", {
    configurable: true,
    get: () => "PermissionDenied",
    set() {
      const what = deniedAccess(this.message);
      if (!what) return;
      this.message = `${extensionId} has no ${what}; it can be granted in the user's configuration`;
      Error.captureStackTrace(this);
      const place = /file:\/\/\S+?:\d+:\d+/.exec(this.stack)?.[0];
      warn(`permission denied: ${what}${place ? `, asked for at ${place}` : ""}`);
    },
  });
}

/** Lets `require` find the SDK, as `import` does. */
function teachRequire(Module) {
  if (Module[SDK]) return;
  Module[SDK] = true;
  const load = Module._load;
  Module._load = function (name, ...rest) {
    switch (name) {
      case "@github/copilot-sdk":
      case "@tenon/sdk":
        return index;
      case "@github/copilot-sdk/extension":
      case "@tenon/sdk/extension":
        return extension;
      default:
        return load.call(this, name, ...rest);
    }
  };
}

/** Extensions reach the platform through its modules. Some raw ops end the process when they are misused, and what the
 * runtime calls is not for them. */
function hideInternals() {
  delete internals.core;
  delete internals.tenon;
}

// Asked before this load is ended to make room for the next one, which wants a port.
serve("listens", (port) =>
  globalThis.process._getActiveHandles().some((handle) => handle.listening && handle.address()?.port === port),
);

internals.tenon = {
  dispatch,
  cancel,
  deliver,

  /** After the bootstrap: finish node's, and offer the SDK. */
  boot() {
    // In a snapshot node's process module was evaluated before there was a process to describe.
    const node = internals.__nodeBootstrapArgs;
    if (internals.tenonBaked && node) {
      internals.__bootstrapNodeProcess(
        node.argv0,
        node.denoArgs,
        node.denoVersion,
        node.nodeDebug ?? "",
        false,
        node.runningOnMainThread,
      );
    }
    explainDenials();
    guardNativeClasses();
    hideInternals();
    Object.defineProperty(globalThis, SDK, { value: Object.freeze({ extension, index, teachRequire }) });
  },

  /** The same in a worker, for which Deno's bootstrap has done the rest. */
  bootWorker(id) {
    extensionId = id;
    explainDenials();
    guardNativeClasses();
    hideInternals();
  },

  /** When the isolate takes on its extension. */
  adopt(entry, id, execPath, resultChars) {
    extensionId = id;
    internals.tenonRenewProcess?.();
    core.loadExtScript("ext:deno_web/15_performance.js").setTimeOrigin();
    limitResults(resultChars);
    const { process } = globalThis;
    process.argv[0] = process.execPath = execPath;
    process.argv[1] = entry;
  },

  /** Emits `exit` as a process does when it ends. */
  emitExit(code) {
    const { process } = globalThis;
    if (process._exiting) return;
    process._exiting = true;
    process.exitCode ??= code;
    process.emit("exit", process.exitCode ?? 0);
  },

  /** Closes servers and sockets. V8 does so when it is dropped; QuickJS leaves them open. */
  closeHandles() {
    for (const handle of globalThis.process._getActiveHandles()) {
      try {
        handle.unref?.();
        handle.close?.();
        handle.destroy?.();
      } catch {
        // It is closed already, or cannot be; the next one may.
      }
    }
  },
};
