//! Deno's extensions, in the one order that snapshot and run time share.
//!
//! A snapshot names the extensions it was made from; a runtime that starts from it must bring the
//! same ones in the same order. The order is that of `deno_runtime`'s own workers, because the
//! worker threads of an extension are `deno_runtime`'s `WebWorker` and start from the same snapshot.

use deno_core::Extension;
use deno_resolver::npm::DenoInNpmPackageChecker;
use deno_resolver::npm::NpmResolver;
use deno_runtime as rt;
use rt::ops;
use sys_traits::impls::RealSys;

use crate::ops::tenon;

/// What the list is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Making the startup snapshot.
    Snapshot,
    /// Starting from the startup snapshot.
    FromSnapshot,
    /// Starting without a snapshot: every source is evaluated.
    Fresh,
}

/// All extensions, ours last.
pub fn all(purpose: Purpose) -> Vec<Extension> {
    let snapshot_options = (purpose != Purpose::Fresh).then(Default::default);
    let worker_ops = ops::web_worker::deno_web_worker::init();
    vec![
        rt::deno_telemetry::deno_telemetry::init(),
        rt::deno_webidl::deno_webidl::init(),
        rt::deno_web::deno_web::lazy_init(),
        rt::deno_webgpu::deno_webgpu::init(),
        rt::deno_image::deno_image::init(),
        rt::deno_canvas::deno_canvas::init(),
        rt::deno_fetch::deno_fetch::lazy_init(),
        rt::deno_cache::deno_cache::lazy_init(),
        rt::deno_websocket::deno_websocket::lazy_init(),
        rt::deno_webstorage::deno_webstorage::lazy_init(),
        rt::deno_crypto::deno_crypto::lazy_init(),
        rt::deno_ffi::deno_ffi::lazy_init(),
        rt::deno_net::deno_net::lazy_init(),
        rt::deno_tls::deno_tls::init(),
        rt::deno_kv::deno_kv::lazy_init(),
        rt::deno_cron::deno_cron::init(Box::new(rt::deno_cron::local::LocalCronHandler::new())),
        rt::deno_napi::deno_napi::lazy_init(),
        rt::deno_http::deno_http::lazy_init(),
        rt::deno_io::deno_io::lazy_init(),
        rt::deno_fs::deno_fs::lazy_init(),
        rt::deno_os::deno_os::lazy_init(),
        rt::deno_process::deno_process::lazy_init(),
        deno_node_crypto::deno_node_crypto::init(),
        deno_node_sqlite::deno_node_sqlite::init(),
        rt::deno_node::deno_node::lazy_init::<DenoInNpmPackageChecker, NpmResolver<RealSys>, RealSys>(
        ),
        ops::runtime::deno_runtime::lazy_init(),
        ops::worker_host::deno_worker_host::lazy_init(),
        ops::fs_events::deno_fs_events::init(),
        ops::permissions::deno_permissions::init(),
        ops::tty::deno_tty::init(),
        ops::http::deno_http_runtime::init(),
        deno_bundle_runtime::deno_bundle_runtime::lazy_init(),
        ops::desktop::deno_desktop::init(),
        ops::bootstrap::deno_bootstrap::init(snapshot_options, false),
        rt::runtime::init(),
        // Its ops must exist by name, though they are of use in worker threads only.
        if purpose == Purpose::Snapshot { worker_ops } else { worker_ops.disable() },
        tenon::init(),
    ]
}
