//! `node:worker_threads` and `Worker`: threads of the extension's own, with what the extension has.
//!
//! A worker starts from the same snapshot and with the same replaced ops. Its environment is a copy
//! of the extension's, its permissions are the extension's, its output goes to the extension's log,
//! and it ends with the extension. Its heap has the size of the extension's, its buffers are counted with
//! the extension's, and if it does not return to its event loop in time, the extension ends.

use std::rc::Rc;
use std::sync::Arc;

use deno_core::CompiledWasmModuleStore;
use deno_core::Extension;
use deno_core::JsRuntime;
use deno_core::SharedArrayBufferStore;
use deno_core::v8;
use deno_runtime::BootstrapOptions;
use deno_runtime::deno_web::BlobStore;
use deno_runtime::deno_web::InMemoryBroadcastChannel;
use deno_runtime::ops::worker_host::CreateWebWorkerArgs;
use deno_runtime::ops::worker_host::CreateWebWorkerCb;
use deno_runtime::web_worker::WebWorker;
use deno_runtime::web_worker::WebWorkerOptions;
use deno_runtime::web_worker::WebWorkerServiceOptions;
use tenon_platform::ops::bridge::Bridge;
use tenon_platform::ops::environment::ExtensionEnv;
use tenon_platform::ops::signals::Signals;
use tenon_platform::ops::tenon;
use tenon_platform::ops::workers::WorkerCount;

use crate::bootstrap::bootstrap_options;
use crate::bootstrap::feature_checker;
use crate::embedded;
use crate::heap;
#[cfg(feature = "v8")]
use crate::limits::WORKER_CODE_BYTES;
use crate::log_rate::LogGate;
use crate::memory::Buffers;
use crate::modules::home::Home;
use crate::modules::loader::ExtensionLoader;
use crate::modules::node::NodeServices;
use crate::permissions::GuardedFs;
use crate::programs::Programs;
use crate::terminator::Terminator;

/// What an extension and its workers have in common.
#[derive(Clone)]
pub struct Shared {
    pub log: LogGate,
    pub buffers: Buffers,
    pub terminator: Terminator,
    pub env: ExtensionEnv,
    pub home: Home,
    pub stores: Stores,
    pub heap_bytes: usize,
    pub count: WorkerCount,
    pub programs: Programs,
}

/// Memory and modules that are passed in messages, blobs that a worker may be started from, and
/// broadcast channels.
#[derive(Clone, Default)]
pub struct Stores {
    pub shared_buffers: SharedArrayBufferStore,
    pub wasm_modules: CompiledWasmModuleStore,
    pub blobs: Arc<BlobStore>,
    pub channels: InMemoryBroadcastChannel,
}

/// Makes the function with which the platform creates a worker; it runs on the worker's thread.
pub fn creator(shared: Shared) -> Arc<CreateWebWorkerCb> {
    Arc::new(move |args| {
        shared.terminator.attach_thread();
        let services = NodeServices::new(shared.home.clone());
        let node_services = services.for_node_extension();
        let loader = ExtensionLoader::new(Rc::new(services));
        let services = WebWorkerServiceOptions {
            blob_store: shared.stores.blobs.clone(),
            broadcast_channel: shared.stores.channels.clone(),
            deno_rt_native_addon_loader: None,
            compiled_wasm_module_store: Some(shared.stores.wasm_modules.clone()),
            feature_checker: feature_checker(),
            fs: Arc::new(GuardedFs::of(args.permissions.clone())),
            main_inspector_session_tx: Default::default(),
            module_loader: Rc::new(loader),
            node_services: Some(node_services),
            npm_process_state_provider: None,
            permissions: args.permissions.clone(),
            root_cert_store_provider: None,
            shared_array_buffer_store: Some(shared.stores.shared_buffers.clone()),
            bundle_provider: None,
        };
        let (create_params, allotment) = shared.buffers.create_params(shared.heap_bytes);
        #[cfg(feature = "v8")]
        let create_params = create_params.set_code_range_size_in_bytes(WORKER_CODE_BYTES);
        let counted = shared.count.add();
        let (mut worker, handle) =
            WebWorker::bootstrap_from_options(services, options(args, &shared, create_params));
        boot_platform(&mut worker.js_runtime, &shared.home);
        // A worker that needs more than its extension may have ends the extension.
        allotment.limit();
        let (runtime, bytes) = (&mut worker.js_runtime, shared.heap_bytes);
        heap::limit(runtime, bytes, allotment, &shared.terminator);
        #[cfg(all(target_os = "linux", feature = "v8"))]
        if crate::engine::is_made_for_forks() {
            let foreground = crate::engine::Foreground::of(worker.js_runtime.v8_isolate());
            let event_loop = worker.js_runtime.op_state().borrow().waker.clone();
            // deno_runtime turns the worker's event loop on this thread, and this task beside it.
            tokio::spawn(std::future::poll_fn(move |cx| {
                if foreground.run(cx) {
                    event_loop.wake();
                }
                std::task::Poll::<()>::Pending
            }));
        }
        let engine = worker.js_runtime.v8_isolate().thread_safe_handle();
        let seat = shared.terminator.attach_worker(engine);
        // It is given up when the worker's state is dropped, on the worker's thread.
        worker.js_runtime.op_state().borrow_mut().put((seat, counted));
        (worker, handle)
    })
}

/// Takes away what extensions do not see, before any code of theirs runs in the worker.
#[expect(clippy::expect_used, reason = "a platform that cannot start is a broken build")]
fn boot_platform(runtime: &mut JsRuntime, home: &Home) {
    const INVARIANT: &str = "the platform's own JavaScript is fixed at build time and tested";
    let boot = runtime
        .execute_script("ext:tenon/boot.js", "Deno[Deno.internal].tenon.bootWorker")
        .expect(INVARIANT);
    deno_core::scope!(scope, runtime);
    let boot = v8::Local::new(scope, boot).cast::<v8::Function>();
    let undefined = v8::undefined(scope);
    let id = v8::String::new(scope, home.id().unwrap_or_default()).expect(INVARIANT);
    boot.call(scope, undefined.into(), &[id.into()]).expect(INVARIANT);
}

fn options(
    args: CreateWebWorkerArgs,
    shared: &Shared,
    create_params: v8::CreateParams,
) -> WebWorkerOptions {
    let log = &shared.log;
    WebWorkerOptions {
        name: args.name,
        bootstrap: BootstrapOptions {
            location: Some(args.main_module.clone()),
            ..bootstrap_options()
        },
        main_module: args.main_module,
        worker_id: args.worker_id,
        extensions: vec![platform_extension(shared)],
        startup_snapshot: embedded::SNAPSHOT,
        residual_lazy_js_sources: embedded::LAZY_SCRIPTS,
        residual_lazy_esm_sources: embedded::LAZY_MODULES,
        unsafely_ignore_certificate_errors: None,
        create_params: Some(create_params),
        seed: None,
        create_web_worker_cb: creator(shared.clone()),
        format_js_error_fn: None,
        worker_type: args.worker_type,
        cache_storage_dir: None,
        // Without a pipe the worker's output would be the process's. This thread's creator reports
        // the panic as an error of the `Worker` constructor.
        #[expect(clippy::expect_used, reason = "see above")]
        stdio: crate::stdio::piped(log.clone()).expect("a pipe for the worker's output").0,
        trace_ops: None,
        close_on_idle: args.close_on_idle,
        maybe_worker_metadata: args.maybe_worker_metadata,
        maybe_main_module_blob: args.maybe_main_module_blob,
        maybe_coverage_dir: None,
        maybe_cpu_prof_config: None,
        enable_raw_imports: false,
        enable_stack_trace_arg_in_ops: false,
        wait_for_debugger_on_start: false,
        wait_for_page_wait_for_debugger: false,
    }
}

/// Our extension with the state its ops need.
fn platform_extension(shared: &Shared) -> Extension {
    let (log, env, count) = (shared.log.clone(), shared.env.fork(), shared.count.clone());
    let supervision = shared.programs.supervision();
    let mut extension = tenon::init();
    extension.op_state_fn = Some(Box::new(move |state| {
        state.put(env);
        state.put(Signals::default());
        state.put(count);
        state.put(supervision);
        state.put(Bridge::new(move |message| log.send(message)));
    }));
    extension
}
