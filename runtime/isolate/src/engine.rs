//! Which engine is compiled in, and its one-time initialisation.

use std::sync::Once;

use deno_core::JsRuntime;
#[cfg(feature = "v8")]
use deno_core::v8;
use tenon_protocol::engine::EngineInfo;
use tenon_protocol::message::EngineName;

#[cfg(feature = "v8")]
use crate::limits::WASM_MAX_PAGES;
use crate::priority;

/// The engine that is compiled in.
pub const NAME: EngineName =
    if cfg!(feature = "v8") { EngineName::V8 } else { EngineName::QuickJs };

/// An isolate could not be started.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The operating system gave no thread.
    #[error("no thread could be started for the extension {id}: {source}")]
    Thread {
        /// The extension.
        id: String,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Describes the engine that is compiled in.
pub fn engine_info() -> EngineInfo {
    EngineInfo {
        name: NAME.as_str(),
        version: engine_version(),
        snapshot: crate::embedded::SNAPSHOT.is_some(),
        node: deno_runtime::deno_node::NODE_VERSION,
    }
}

#[cfg(feature = "v8")]
fn engine_version() -> String {
    v8::V8::get_version().to_owned()
}

/// The back end reports the version of V8 whose interface it imitates, so QuickJS is asked itself.
#[cfg(feature = "quickjs")]
fn engine_version() -> String {
    unsafe extern "C" {
        fn JS_GetVersion() -> *const std::ffi::c_char;
    }
    // SAFETY: QuickJS is linked in and returns a constant, NUL-terminated string.
    let version = unsafe { std::ffi::CStr::from_ptr(JS_GetVersion()) };
    version.to_string_lossy().into_owned()
}

/// Initialises the engine. Call it on the main thread before any other thread exists: on processors
/// with memory protection keys V8 only trusts threads that descend from the initialising one.
/// Calling it again does nothing.
pub fn init_engine() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        fix_large_allocations();
        // Flags are read when the engine is initialised. An extension collects its garbage on its own thread:
        // one that makes much of it would else keep the other cores busy, too.
        #[cfg(feature = "v8")]
        v8::V8::set_flags_from_string(&format!(
            "--wasm-max-mem-pages={WASM_MAX_PAGES} --single-threaded-gc"
        ));
        JsRuntime::init_platform(None);
        priority::lower_other_threads();
    });
}

/// From this size on an allocation is a mapping of its own, and is given back when it is freed, in bytes.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const OWN_MAPPING: libc::c_int = 128 * 1024;

/// The C library raises that size, when such a block is freed, to up to 32 MB. What is allocated once while an
/// instance starts would then stay in the heap of each thread: 0.4 MB for every extension.
fn fix_large_allocations() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: mallopt takes two integers, and sets a parameter of the allocator under its lock.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_MAPPING);
    }
}
