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
    // Before a program is started it is counted, and its file is checked; if the kernel refuses to start it, the
    // error says that it was not permitted.
    Patch {
        specifier: "ext:deno_process/40_process.js",
        find: "  op_node_spawn_child,\n  op_run,\n  op_run_status,\n  op_spawn_child,\n",
        replace: "  op_node_spawn_child: startNodeChild,\n  op_run,\n  op_run_status,\n  op_spawn_child: startChild,\n",
        times: 1,
    },
    Patch {
        specifier: "ext:deno_process/40_process.js",
        find: "  op_spawn_sync,\n  op_spawn_wait,\n} = core.ops;\n",
        replace: "  op_spawn_sync: startAndWait,\n  op_spawn_wait,\n  op_tenon_start,\n  op_tenon_not_started,\n} = core.ops;\n\
            const supervised = (start) => (request, ...rest) => {\n\
              let path = \"\";\n\
              for (let i = 0; i < request.env.length; i++) {\n\
                if (request.env[i][0] === \"PATH\") path = `${request.env[i][1]}`;\n\
              }\n\
              const place = [`${request.cmd}`, `${request.cwd ?? \".\"}`, path];\n\
              const user = op_tenon_start(place[0], place[1], place[2]);\n\
              if (user >= 0) request.uid ??= user;\n\
              try {\n\
                return start(request, ...rest);\n\
              } catch (error) {\n\
                if (error.code === \"EACCES\" || error.code === \"EPERM\") op_tenon_not_started(place[0], place[1], place[2]);\n\
                throw error;\n\
              }\n\
            };\n\
            const op_node_spawn_child = supervised(startNodeChild);\n\
            const op_spawn_child = supervised(startChild);\n\
            const op_spawn_sync = supervised(startAndWait);\n",
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
    // If the kernel refuses a socket, the error says that it was not permitted. The numbers are EPERM and EACCES.
    Patch {
        specifier: "ext:deno_node/internal/errors.ts",
        find: "    const code = getSystemErrorName(err);\n    let details = \"\";\n",
        replace: "    if (err === -1 || err === -13) {\n\
                try {\n\
                  core.ops.op_tenon_not_connected(`${address ?? \"\"}`, port > 0 ? port : 0);\n\
                } catch (denied) {\n\
                  return denied;\n\
                }\n\
              }\n    const code = getSystemErrorName(err);\n    let details = \"\";\n",
        times: 1,
    },
    // Links to anywhere. The number is the one of a missing capability.
    Patch {
        specifier: "ext:deno_node/wasi.ts",
        find: "        return ctx.pathSymlink(\n",
        replace: "        if (!core.ops.op_tenon_may_link()) return 76;\n        return ctx.pathSymlink(\n",
        times: 1,
    },
    Patch {
        specifier: "ext:deno_node/wasi.ts",
        find: "        return ctx.pathLink(\n",
        replace: "        if (!core.ops.op_tenon_may_link()) return 76;\n        return ctx.pathLink(\n",
        times: 1,
    },
    // A prime of zero, by which the native code would divide, ended the process.
    Patch {
        specifier: "ext:deno_node/internal/crypto/diffiehellman.ts",
        find: "  op_node_dh_compute_secret,\n  op_node_dh_keys_generate_and_export,\n",
        replace: "  op_node_dh_compute_secret: computeSecret,\n  op_node_dh_keys_generate_and_export: generateKeys,\n",
        times: 1,
    },
    Patch {
        specifier: "ext:deno_node/internal/crypto/diffiehellman.ts",
        find: "  op_node_gen_prime,\n} = core.ops;\n",
        replace: "  op_node_gen_prime,\n} = core.ops;\n\
            const withPrime = (compute) => (prime, ...rest) => {\n\
              let isZero = true;\n\
              for (let i = 0; i < prime.length; i++) isZero &&= prime[i] === 0;\n\
              if (isZero) throw new TypeError(\"the prime is zero\");\n\
              return compute(prime, ...rest);\n\
            };\n\
            const op_node_dh_compute_secret = withPrime(computeSecret);\n\
            const op_node_dh_keys_generate_and_export = withPrime(generateKeys);\n",
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
