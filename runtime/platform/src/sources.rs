//! Deno's JavaScript sources on their way into the program: transpiled, and corrected in the few
//! places where they assume one program per process.

use deno_core::Extension;
use deno_core::ExtensionFileSource;
use deno_core::ModuleCodeString;
use deno_core::ModuleName;
use deno_core::SourceMapData;
use deno_error::JsErrorBox;

/// A correction to one of Deno's files.
struct Patch {
    specifier: &'static str,
    find: &'static str,
    replace: &'static str,
    /// How often the text is there; another number means that Deno has changed.
    times: usize,
}

/// Every correction.
const PATCHES: &[Patch] = &[
    // A child process gets the extension's environment. Deno adds the process's own to it in Rust,
    // unless told to clear it.
    Patch {
        specifier: "ext:deno_node/internal/child_process.ts",
        find: "clearEnv: false,",
        replace: "clearEnv: true,",
        times: 1,
    },
    Patch {
        specifier: "ext:deno_process/40_process.js",
        find: "    clearEnv,\n",
        replace: "    clearEnv: true,\n",
        times: 5,
    },
    Patch {
        specifier: "ext:deno_process/40_process.js",
        find: "env: ObjectEntries(env),",
        replace: "env: ObjectEntries(clearEnv ? env : { __proto__: null, ...core.ops.op_env(), ...env }),",
        times: 6,
    },
    // A number names a descriptor of the extension's, never one of the host's: as standard input or
    // output of a child, and as a socket. Whatever is not a name such as "piped" is looked up.
    Patch {
        specifier: "ext:deno_process/40_process.js",
        find: "const kExtraStdio = Symbol(\"extraStdio\");\n",
        replace: "const kExtraStdio = Symbol(\"extraStdio\");\n\
            const own = (stdio) => typeof stdio === \"string\" ? stdio : core.ops.op_tenon_descriptor(stdio);\n",
        times: 1,
    },
    Patch {
        specifier: "ext:deno_process/40_process.js",
        find: "    stdin,\n    stdout,\n    stderr,\n    windowsRawArguments,\n",
        replace: "    stdin: own(stdin),\n    stdout: own(stdout),\n    stderr: own(stderr),\n    windowsRawArguments,\n",
        times: 5,
    },
    Patch {
        specifier: "ext:deno_process/40_process.js",
        find: "    extraStdio,\n",
        replace: "    extraStdio: ArrayPrototypeMap(extraStdio, own),\n",
        times: 3,
    },
    Patch {
        specifier: "ext:deno_node/internal_binding/util.ts",
        find: "const type = op_node_guess_handle_type(fd);",
        replace: "if (fd > 2) core.ops.op_tenon_descriptor(fd);\n  const type = op_node_guess_handle_type(fd);",
        times: 1,
    },
    // A child that could not be started for another reason than a missing program gave no error.
    Patch {
        specifier: "ext:deno_node/internal/child_process.ts",
        find: "result.error = _createSpawnError(\"ENOENT\", command, args, true);\n    }",
        replace: "result.error = _createSpawnError(\"ENOENT\", command, args, true);\n    } else {\n      result.error = err;\n    }",
        times: 1,
    },
    // An extension has another process than the one in which the platform was booted.
    Patch {
        specifier: "ext:runtime_main/js/99_main.js",
        find: "const opPid = memoizeLazy(() => op_bootstrap_pid());",
        replace: "const opPid = () => op_bootstrap_pid();",
        times: 1,
    },
    Patch {
        specifier: "node:process",
        find: "    pid = Deno.pid;\n    ppid = Deno.ppid;\n",
        replace: "    (internals.tenonRenewProcess = () => {\n      pid = Deno.pid;\n      ppid = Deno.ppid;\n    })();\n",
        times: 1,
    },
    // Workers written for node end themselves so.
    Patch {
        specifier: "ext:deno_node/worker_threads.ts",
        find: "parentPort.setMaxListeners = () => {};",
        replace: "parentPort.close = () => globalThis.close(); parentPort.setMaxListeners = () => {};",
        times: 1,
    },
    // An extension has a limited number of workers.
    Patch {
        specifier: "ext:deno_node/worker_threads.ts",
        find: "    const id = op_create_worker(\n",
        replace: "    core.ops.op_tenon_worker();\n    const id = op_create_worker(\n",
        times: 1,
    },
    Patch {
        specifier: "ext:runtime/11_workers.js",
        find: "  return op_create_worker({\n",
        replace: "  core.ops.op_tenon_worker();\n  return op_create_worker({\n",
        times: 1,
    },
    // Text at a position was written at the start of the file, over what was there.
    Patch {
        specifier: "ext:deno_node/fs.ts",
        find: "return innerWriteSync(fd, buffer, 0, buffer.length, position);",
        replace: "return innerWriteSync(fd, buffer, 0, buffer.length, typeof offset === \"number\" ? offset : null);",
        times: 1,
    },
    // Appending to a private file made it everybody's.
    Patch {
        specifier: "ext:deno_node/fs.ts",
        find: "options = getOptions(options, { encoding: \"utf8\", mode: 0o666, flag: \"a\" });",
        replace: "options = getOptions(options, { encoding: \"utf8\", flag: \"a\" });",
        times: 2,
    },
];

/// Applies the corrections to one of Deno's source files and makes JavaScript of it.
pub fn transpile(
    name: ModuleName,
    source: ModuleCodeString,
) -> Result<(ModuleCodeString, Option<SourceMapData>), JsErrorBox> {
    let specifier = name.as_str().to_owned();
    let mut code = source.as_str().to_owned();
    for patch in PATCHES.iter().filter(|patch| patch.specifier == specifier) {
        let found = code.matches(patch.find).count();
        if found != patch.times {
            return Err(JsErrorBox::generic(format!(
                "the correction of `{}` in {specifier} applies {found} times, not {}",
                patch.find, patch.times
            )));
        }
        code = code.replace(patch.find, patch.replace);
    }
    deno_runtime::transpile::maybe_transpile_source(name, code.into())
}

/// How a file of an extension is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Evaluated at start.
    Eager,
    /// A script, evaluated when it is first asked for.
    LazyScript,
    /// A module, evaluated when it is first imported.
    LazyModule,
}

/// Every source file of the given extensions.
pub fn files(extensions: &[Extension]) -> Vec<(FileKind, ExtensionFileSource)> {
    let mut files = Vec::new();
    for extension in extensions {
        let eager = extension.js_files.iter().chain(extension.esm_files.iter());
        files.extend(eager.map(|file| (FileKind::Eager, file.clone())));
        let scripts = extension.lazy_loaded_js_files.iter();
        files.extend(scripts.map(|file| (FileKind::LazyScript, file.clone())));
        let modules = extension.lazy_loaded_esm_files.iter();
        files.extend(modules.map(|file| (FileKind::LazyModule, file.clone())));
    }
    files.sort_by_key(|(_, file)| file.specifier);
    files.dedup_by_key(|(_, file)| file.specifier);
    files
}
