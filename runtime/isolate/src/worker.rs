//! One engine instance with Deno's platform in it, ready to take on an extension.
//!
//! This does for our isolates what `deno_runtime`'s `MainWorker` does for Deno's program, with three
//! differences: the list of extensions is ours to change, so that QuickJS can be given sources that
//! were transpiled at build time; nothing of it belongs to the process; and what depends on the
//! extension is filled in later, so that the zygote can make one for all.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::LazyLock;

use deno_core::Extension;
use deno_core::ExtensionFileSource;
use deno_core::JsRuntime;
use deno_core::ModuleSpecifier;
use deno_core::RuntimeOptions;
use deno_core::v8;
use deno_resolver::npm::DenoInNpmPackageChecker;
use deno_resolver::npm::NpmResolver;
use deno_runtime as rt;
use rt::BootstrapOptions;
use rt::deno_io::Stdio;
use rt::deno_os::ExitCode;
use rt::ops;
use sys_traits::impls::RealSys;
use tenon_platform::extensions;
use tenon_platform::extensions::Purpose;
use tenon_platform::ops::bridge::Bridge;
use tenon_platform::ops::environment::ExtensionEnv;
use tenon_platform::ops::signals::Signals;
use tenon_platform::ops::workers::WorkerCount;

use crate::bootstrap::bootstrap_options;
use crate::bootstrap::feature_checker;
use crate::embedded;
#[cfg(all(target_os = "linux", feature = "v8"))]
use crate::engine;
#[cfg(all(target_os = "linux", feature = "v8"))]
use crate::engine::Foreground;
use crate::log_rate::LogGate;
use crate::memory::Allotment;
use crate::memory::Buffers;
use crate::modules::home::Home;
use crate::modules::loader::ExtensionLoader;
use crate::modules::node::NodeServices;
use crate::outbox::Outbox;
use crate::permissions;
use crate::permissions::GuardedFs;
use crate::programs::Programs;
use crate::stdio::Output;
use crate::terminator::Terminator;
use crate::worker_threads;
use crate::worker_threads::Shared;
use crate::worker_threads::Stores;

/// The functions of `ext:tenon/platform.js` that the runtime calls.
pub struct PlatformFunctions {
    pub dispatch: v8::Global<v8::Function>,
    pub cancel: v8::Global<v8::Function>,
    pub deliver: v8::Global<v8::Function>,
    pub adopt: v8::Global<v8::Function>,
    pub emit_exit: v8::Global<v8::Function>,
    #[cfg_attr(feature = "v8", expect(dead_code, reason = "V8 closes handles when it is dropped"))]
    pub close_handles: v8::Global<v8::Function>,
}

/// An engine instance that has been bootstrapped.
pub struct Worker {
    pub runtime: JsRuntime,
    pub functions: PlatformFunctions,
    pub home: Home,
    pub output: Output,
    /// Finds where a line of transpiled code was written.
    pub loader: Rc<ExtensionLoader>,
    pub log: LogGate,
    pub buffers: Buffers,
    /// Taken when the heap's limit is set.
    pub allotment: Option<Allotment>,
    /// What the engine wants to be run on this thread, where that is not deno_core's to do.
    #[cfg(all(target_os = "linux", feature = "v8"))]
    foreground: Option<Foreground>,
}

impl Worker {
    /// Runs what the engine has posted to this thread, and has the task woken when there is more.
    pub fn run_foreground(&self, cx: &std::task::Context<'_>) {
        #[cfg(all(target_os = "linux", feature = "v8"))]
        if let Some(foreground) = &self.foreground {
            // The event loop turns next anyway.
            let _ = foreground.run(cx);
        }
        #[cfg(not(all(target_os = "linux", feature = "v8")))]
        let _ = cx;
    }
}

/// A name for the program until the extension is known; nothing is loaded from it.
#[expect(clippy::expect_used, reason = "a constant")]
static UNNAMED: LazyLock<ModuleSpecifier> =
    LazyLock::new(|| ModuleSpecifier::parse("file:///extension.mjs").expect("a constant URL"));

/// Makes and bootstraps an instance. Must be called inside a tokio runtime, on the thread that will
/// use it.
pub fn create(
    heap_bytes: usize,
    outbox: Outbox,
    terminator: &Terminator,
) -> std::io::Result<Worker> {
    let home = Home::default();
    let services = Rc::new(NodeServices::new(home.clone()));
    let loader = Rc::new(ExtensionLoader::new(services.clone()));
    let log = LogGate::new(outbox, terminator.clone());
    let full = terminator.clone();
    let buffers = Buffers::new(move || full.breach_buffers());
    let shared = Shared {
        log: log.clone(),
        buffers: buffers.clone(),
        terminator: terminator.clone(),
        env: ExtensionEnv::default(),
        home: home.clone(),
        stores: Stores::default(),
        heap_bytes,
        count: WorkerCount::default(),
        programs: Programs::new(terminator.clone()),
    };
    let (create_params, allotment) = buffers.create_params(heap_bytes);
    let mut runtime = JsRuntime::new(RuntimeOptions {
        module_loader: Some(loader.clone()),
        startup_snapshot: embedded::SNAPSHOT,
        residual_lazy_js_sources: embedded::LAZY_SCRIPTS,
        residual_lazy_esm_sources: embedded::LAZY_MODULES,
        skip_op_registration: embedded::SNAPSHOT.is_some(),
        extensions: platform_extensions(),
        create_params: Some(create_params),
        validate_import_attributes_cb: Some(
            rt::worker::create_validate_import_attributes_callback(Arc::default()),
        ),
        shared_array_buffer_store: Some(shared.stores.shared_buffers.clone()),
        compiled_wasm_module_store: Some(shared.stores.wasm_modules.clone()),
        inspector: true,
        is_main: true,
        ..RuntimeOptions::default()
    });
    let bootstrap = bootstrap_options();
    let (stdio, output) = crate::stdio::piped(log.clone())?;
    init_extensions(&mut runtime, &services, &bootstrap, shared, stdio)?;
    let functions = run_bootstrap(&mut runtime, bootstrap);
    allotment.limit();
    #[cfg(all(target_os = "linux", feature = "v8"))]
    let foreground = engine::is_made_for_forks().then(|| Foreground::of(runtime.v8_isolate()));
    Ok(Worker {
        #[cfg(all(target_os = "linux", feature = "v8"))]
        foreground,
        runtime,
        functions,
        home,
        output,
        loader,
        log,
        buffers,
        allotment: Some(allotment),
    })
}

/// Deno's extensions and ours. Without a snapshot their sources come from the program itself.
fn platform_extensions() -> Vec<Extension> {
    if embedded::SNAPSHOT.is_some() {
        return extensions::all(Purpose::FromSnapshot);
    }
    static SOURCES: LazyLock<HashMap<&str, Arc<str>>> = LazyLock::new(|| {
        let tables = [embedded::EAGER, embedded::LAZY_SCRIPTS, embedded::LAZY_MODULES];
        tables
            .iter()
            .flat_map(|table| table.iter())
            .map(|&(name, text)| (name, text.into()))
            .collect()
    });
    let mut extensions = extensions::all(Purpose::Fresh);
    for extension in &mut extensions {
        let lists = [
            &mut extension.js_files,
            &mut extension.esm_files,
            &mut extension.lazy_loaded_js_files,
            &mut extension.lazy_loaded_esm_files,
        ];
        for file in lists.into_iter().flat_map(|files| files.to_mut()) {
            if let Some(text) = SOURCES.get(file.specifier) {
                *file = ExtensionFileSource::new_computed(file.specifier, text.clone());
            }
        }
    }
    extensions
}

/// Gives every extension its state.
fn init_extensions(
    runtime: &mut JsRuntime,
    services: &NodeServices,
    bootstrap: &BootstrapOptions,
    shared: Shared,
    stdio: Stdio,
) -> std::io::Result<()> {
    let files = GuardedFs::default();
    let fs: Arc<dyn rt::deno_fs::FileSystem> = Arc::new(files.clone());
    let Shared { log, env, stores, count, programs, .. } = shared.clone();
    let workers = worker_threads::creator(shared);
    let arguments = vec![
        rt::deno_web::deno_web::args(stores.blobs.clone(), None, true, stores.channels.clone()),
        rt::deno_fetch::deno_fetch::args(rt::deno_fetch::Options {
            user_agent: bootstrap.user_agent.clone(),
            file_fetch_handler: Rc::new(rt::deno_fetch::FsFetchHandler),
            ..rt::deno_fetch::Options::default()
        }),
        rt::deno_cache::deno_cache::args(None),
        rt::deno_websocket::deno_websocket::args(),
        rt::deno_webstorage::deno_webstorage::args(None),
        rt::deno_crypto::deno_crypto::args(None),
        rt::deno_ffi::deno_ffi::args(None),
        rt::deno_net::deno_net::args(None, None),
        rt::deno_kv::deno_kv::args(
            Box::new(rt::deno_kv::dynamic::MultiBackendDbHandler::new(Vec::new())),
            rt::deno_kv::KvConfig::builder().build(),
        ),
        rt::deno_napi::deno_napi::args(None),
        rt::deno_http::deno_http::args(rt::deno_http::Options::default()),
        rt::deno_io::deno_io::args(Some(stdio)),
        rt::deno_fs::deno_fs::args(fs.clone()),
        rt::deno_os::deno_os::args(Some(ExitCode::default())),
        rt::deno_process::deno_process::args(None),
        rt::deno_node::deno_node::args::<DenoInNpmPackageChecker, NpmResolver<RealSys>, RealSys>(
            Some(services.for_node_extension()),
            fs,
        ),
        ops::runtime::deno_runtime::args(UNNAMED.clone()),
        ops::worker_host::deno_worker_host::args(workers, None),
        deno_bundle_runtime::deno_bundle_runtime::args(None),
    ];
    runtime.lazy_init_extensions(arguments).map_err(std::io::Error::other)?;
    let inspector = runtime.inspector();
    let state = runtime.op_state();
    let mut state = state.borrow_mut();
    state.put(inspector);
    state.put(permissions::nothing());
    // It is given the extension's permissions together with the ops.
    state.put(files);
    state.put(ops::TestingFeaturesEnabled(false));
    state.put(feature_checker());
    state.put(env);
    state.put(Signals::default());
    state.put(count);
    state.put(programs.supervision());
    // It is told the extension's grant together with the permissions.
    state.put(programs);
    state.put(Bridge::new(move |message| log.send(message)));
    state.put(bootstrap.clone());
    Ok(())
}

/// Runs Deno's bootstrap, then ours, and finds the functions that the runtime calls.
#[expect(clippy::expect_used, reason = "a platform that cannot start is a broken build")]
fn run_bootstrap(runtime: &mut JsRuntime, options: BootstrapOptions) -> PlatformFunctions {
    const INVARIANT: &str = "the platform's own JavaScript is fixed at build time and tested";
    {
        let context = runtime.main_context();
        deno_core::scope!(scope, runtime);
        let global = v8::Local::new(scope, context).global(scope);
        let namespace = get_object(scope, global, "bootstrap").expect(INVARIANT);
        let main = get_function(scope, namespace, "mainRuntime").expect(INVARIANT);
        let arguments = options.as_v8(scope);
        let undefined = v8::undefined(scope);
        main.call(scope, undefined.into(), &[arguments]).expect(INVARIANT);
    }
    let platform =
        runtime.execute_script("ext:tenon/boot.js", "Deno[Deno.internal].tenon").expect(INVARIANT);
    deno_core::scope!(scope, runtime);
    let platform = v8::Local::new(scope, platform).cast::<v8::Object>();
    let boot = get_function(scope, platform, "boot").expect(INVARIANT);
    boot.call(scope, platform.into(), &[]).expect(INVARIANT);
    let mut function = |name| {
        let function = get_function(scope, platform, name).expect(INVARIANT);
        v8::Global::new(scope, function)
    };
    PlatformFunctions {
        dispatch: function("dispatch"),
        cancel: function("cancel"),
        deliver: function("deliver"),
        adopt: function("adopt"),
        emit_exit: function("emitExit"),
        close_handles: function("closeHandles"),
    }
}

fn get_object<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    object: v8::Local<'s, v8::Object>,
    name: &str,
) -> Option<v8::Local<'s, v8::Object>> {
    let key = v8::String::new(scope, name)?;
    object.get(scope, key.into())?.try_into().ok()
}

fn get_function<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    object: v8::Local<'s, v8::Object>,
    name: &str,
) -> Option<v8::Local<'s, v8::Function>> {
    let key = v8::String::new(scope, name)?;
    object.get(scope, key.into())?.try_into().ok()
}
