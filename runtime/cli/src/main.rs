//! `tenon`: runs Copilot-style extensions for every coding agent that speaks ACP.

use std::process::ExitCode;
use std::sync::Arc;

use tenon_cli::Engine;
use tenon_isolate::Launcher;
use tenon_isolate::floor;

fn main() -> ExitCode {
    let engine = Engine {
        info: tenon_isolate::engine_info,
        init: tenon_isolate::init_engine,
        #[cfg(target_os = "linux")]
        serve_if_asked: tenon_isolate::serve_if_asked,
        #[cfg(not(target_os = "linux"))]
        serve_if_asked: || None,
        launcher: |spare| Arc::new(Launcher::new(spare)),
        bare_isolate: |idle| floor::bare_isolate(idle),
        thread_cpu_time: floor::thread_cpu_time,
    };
    // SAFETY: nothing was done before, so there is one thread.
    unsafe { tenon_cli::main(engine) }
}
