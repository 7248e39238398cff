//! Measuring: CPU time, and the least an isolate can cost, the engine alone without any platform.

use std::time::Duration;

use deno_core::v8;

/// Makes an engine instance on the calling thread, runs one expression in it, calls `idle` while it
/// is alive, and drops it.
pub fn bare_isolate(idle: impl FnOnce()) {
    let mut isolate = v8::Isolate::new(v8::CreateParams::default());
    {
        v8::scope!(let scope, &mut isolate);
        let context = v8::Context::new(scope, v8::ContextOptions::default());
        let scope = &mut v8::ContextScope::new(scope, context);
        if let Some(source) = v8::String::new(scope, "globalThis.x = 1 + 1")
            && let Some(script) = v8::Script::compile(scope, source, None)
        {
            let _ = script.run(scope);
        }
    }
    idle();
}

/// CPU time of the calling thread.
pub fn thread_cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of ours that outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
