//! Which engine is compiled in, and its one-time initialisation.

#[cfg(all(target_os = "linux", feature = "quickjs"))]
mod entropy;
#[cfg(all(target_os = "linux", feature = "v8"))]
mod foreground;
#[cfg(all(target_os = "linux", feature = "v8"))]
mod heap_addresses;
#[cfg(all(target_os = "linux", feature = "v8"))]
mod late_threads;
#[cfg(all(target_os = "linux", feature = "v8"))]
mod virtual_table;

use std::sync::Once;
#[cfg(target_os = "linux")]
use std::sync::atomic::AtomicBool;
#[cfg(target_os = "linux")]
use std::sync::atomic::Ordering::Relaxed;

use deno_core::JsRuntime;
use deno_core::v8;
use tenon_protocol::engine::EngineInfo;
use tenon_protocol::message::EngineName;

#[cfg(all(target_os = "linux", feature = "v8"))]
pub use foreground::Foreground;
#[cfg(all(target_os = "linux", feature = "v8"))]
use foreground::ForegroundPlatform;

#[cfg(feature = "v8")]
use crate::limits::WASM_MAX_PAGES;

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
    });
}

/// Whether the engine was initialised for a process that forks.
#[cfg(target_os = "linux")]
static FOR_FORKS: AtomicBool = AtomicBool::new(false);

/// Whether the engine was initialised for a process that forks, in which deno_core's platform cannot be used.
#[cfg(all(target_os = "linux", feature = "v8"))]
pub fn is_made_for_forks() -> bool {
    FOR_FORKS.load(Relaxed)
}

/// Initialises the engine for a process that forks: nothing of it depends on a thread.
#[cfg(target_os = "linux")]
pub fn init_for_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        FOR_FORKS.store(true, Relaxed);
        fix_large_allocations();
        init_forkable_platform();
    });
}

#[cfg(all(target_os = "linux", feature = "v8"))]
fn init_forkable_platform() {
    // Without threads of ours V8 must not hand out work at all: nobody would do it after the fork. Flags stay open
    // to change because the seed of `Math.random` is one, and is set after the fork.
    let is_known = virtual_table::is_known();
    let threads = if is_known { "--single-threaded-gc" } else { "--single-threaded" };
    v8::V8::set_flags_from_string(&format!(
        "--wasm-max-mem-pages={WASM_MAX_PAGES} {threads} --no-freeze-flags-after-init"
    ));
    // It insists on a thread of its own, which waits for work that it never gets and is not there after the fork.
    let platform = v8::new_custom_platform(1, false, false, ForegroundPlatform);
    if is_known {
        // SAFETY: the version was checked, and the platform is not in use yet.
        unsafe {
            late_threads::install(&platform);
            heap_addresses::install(&platform);
        }
    }
    JsRuntime::init_platform(Some(platform.make_shared()));
}

#[cfg(all(target_os = "linux", feature = "quickjs"))]
fn init_forkable_platform() {
    v8::V8::set_entropy_source(entropy::fill);
    JsRuntime::init_platform(None);
}

/// Before the fork: compiles what V8 has put off to its threads, and has V8 take the result over, which it does when a
/// script runs next. Else every fork would do it again, and need threads for it.
#[cfg(all(target_os = "linux", feature = "v8"))]
pub fn finish_compiling(runtime: &mut JsRuntime) {
    while late_threads::run_now() {
        // It cannot fail; if it did, the first script of the extension would do the same.
        let _ = runtime.execute_script("ext:tenon/fork.js", "(() => {})()");
    }
}

/// Before the fork: compiles what was put off. QuickJS puts nothing off.
#[cfg(all(target_os = "linux", feature = "quickjs"))]
pub fn finish_compiling(_runtime: &mut JsRuntime) {}

/// Makes a forked instance differ from its siblings where it must, and lets what was put off begin.
#[cfg(all(target_os = "linux", feature = "v8"))]
pub fn renew_after_fork(runtime: &mut JsRuntime) {
    let mut seed = [0; 4];
    // SAFETY: the buffer is ours and has the given length.
    unsafe { libc::getrandom(seed.as_mut_ptr().cast(), seed.len(), 0) };
    // The seed is a positive number, and zero stands for none.
    let seed = (u32::from_le_bytes(seed) & 0x7fff_ffff) | 1;
    v8::V8::set_flags_from_string(&format!("--random-seed={seed}"));
    // The context takes its seed now. Worker threads must not take the same.
    let _ = runtime.execute_script("ext:tenon/fork.js", "Math.random()");
    v8::V8::set_flags_from_string("--random-seed=0");
    foreground::resume();
}

/// Makes a forked instance differ from its siblings where it must: QuickJS asks [`entropy`], which
/// notices the fork by itself.
#[cfg(all(target_os = "linux", feature = "quickjs"))]
pub fn renew_after_fork(_runtime: &mut JsRuntime) {}

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

/// Has all threads of an extension's process allocate from one heap. The C library gives each its own otherwise, of which
/// a thread that hardly allocates touches 60 KB; and few threads of an extension allocate much.
///
/// To be called before there has been a second thread.
#[cfg(target_os = "linux")]
pub fn share_one_arena() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt takes two integers, and sets a parameter of the allocator under its lock.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}
