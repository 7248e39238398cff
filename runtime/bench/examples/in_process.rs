//! `tenon-in-process`: a program that embeds Tenon, with the engine in it, which `tenon-bench` compares processes with.

use std::process::ExitCode;
use std::sync::Arc;

use tenon_bench::threads;
use tenon_isolate::Launcher;
use tenon_isolate::floor;

fn main() -> ExitCode {
    let engine = threads::Engine {
        init: tenon_isolate::init_engine,
        launcher: || Arc::new(Launcher),
        bare_isolate: |idle| floor::bare_isolate(idle),
        thread_cpu_time: floor::thread_cpu_time,
    };
    // SAFETY: nothing was done before, so there is one thread.
    unsafe { threads::main(engine) }
}
