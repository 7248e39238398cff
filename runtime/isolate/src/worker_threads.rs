//! `node:worker_threads` and `Worker`: threads of the extension's own, with what the extension has.
//!
//! A worker starts from the same snapshot and with the same replaced ops. Its environment is a copy
//! of the extension's, its permissions are the extension's, its output goes to the extension's log,
//! and it ends with the extension.

use std::rc::Rc;
use std::sync::Arc;

use deno_core::CompiledWasmModuleStore;
use deno_core::Extension;
use deno_core::SharedArrayBufferStore;
use deno_runtime::BootstrapOptions;
use deno_runtime::FeatureChecker;
use deno_runtime::deno_fs::RealFs;
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

use crate::embedded;
use crate::launcher::Outbox;
use crate::modules::loader::ExtensionLoader;
use crate::modules::node::NodeServices;
use crate::thread::Terminator;
use crate::worker::bootstrap_options;

/// What an extension and its workers share: memory and modules that are passed in messages, blobs
/// that a worker may be started from, and broadcast channels.
#[derive(Clone, Default)]
pub struct Stores {
    pub shared_buffers: SharedArrayBufferStore,
    pub wasm_modules: CompiledWasmModuleStore,
    pub blobs: Arc<BlobStore>,
    pub channels: InMemoryBroadcastChannel,
}

/// Makes the function with which the platform creates a worker; it runs on the worker's thread.
pub fn creator(
    outbox: Outbox,
    terminator: Terminator,
    env: ExtensionEnv,
    stores: Stores,
) -> Arc<CreateWebWorkerCb> {
    Arc::new(move |args| {
        terminator.attach_thread();
        let services = NodeServices::new();
        let node_services = services.for_node_extension();
        let loader = ExtensionLoader::new(Rc::new(services));
        if let Ok(path) = args.main_module.to_file_path()
            && let Some(folder) = path.parent()
        {
            loader.adopt("this worker".to_owned(), folder.to_owned(), args.permissions.clone());
        }
        let services = WebWorkerServiceOptions {
            blob_store: stores.blobs.clone(),
            broadcast_channel: stores.channels.clone(),
            deno_rt_native_addon_loader: None,
            compiled_wasm_module_store: Some(stores.wasm_modules.clone()),
            feature_checker: Arc::new(FeatureChecker::default()),
            fs: Arc::new(RealFs),
            main_inspector_session_tx: Default::default(),
            module_loader: Rc::new(loader),
            node_services: Some(node_services),
            npm_process_state_provider: None,
            permissions: args.permissions.clone(),
            root_cert_store_provider: None,
            shared_array_buffer_store: Some(stores.shared_buffers.clone()),
            bundle_provider: None,
        };
        let creator = creator(outbox.clone(), terminator.clone(), env.clone(), stores.clone());
        let options = options(args, &outbox, &env, creator);
        WebWorker::bootstrap_from_options(services, options)
    })
}

fn options(
    args: CreateWebWorkerArgs,
    outbox: &Outbox,
    env: &ExtensionEnv,
    creator: Arc<CreateWebWorkerCb>,
) -> WebWorkerOptions {
    WebWorkerOptions {
        name: args.name,
        bootstrap: BootstrapOptions {
            location: Some(args.main_module.clone()),
            ..bootstrap_options()
        },
        main_module: args.main_module,
        worker_id: args.worker_id,
        extensions: vec![platform_extension(outbox.clone(), env.fork())],
        startup_snapshot: embedded::SNAPSHOT,
        residual_lazy_js_sources: embedded::LAZY_SCRIPTS,
        residual_lazy_esm_sources: embedded::LAZY_MODULES,
        unsafely_ignore_certificate_errors: None,
        create_params: None,
        seed: None,
        create_web_worker_cb: creator,
        format_js_error_fn: None,
        worker_type: args.worker_type,
        cache_storage_dir: None,
        // Without a pipe the worker's output would be the process's. This thread's creator reports
        // the panic as an error of the `Worker` constructor.
        #[expect(clippy::expect_used, reason = "see above")]
        stdio: crate::stdio::piped(outbox.clone()).expect("a pipe for the worker's output").0,
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
fn platform_extension(outbox: Outbox, env: ExtensionEnv) -> Extension {
    let mut extension = tenon::init();
    extension.op_state_fn = Some(Box::new(move |state| {
        state.put(env);
        state.put(Signals::default());
        state.put(Bridge::new(move |message| outbox.send(message)));
    }));
    extension
}
