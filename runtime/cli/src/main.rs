//! `tenon`: runs Copilot-style extensions for every coding agent that speaks ACP.

use std::process::ExitCode;

use tenon_cli::Engine;

fn main() -> ExitCode {
    let engine = Engine {
        info: tenon_isolate::engine_info,
        #[cfg(target_os = "linux")]
        serve_if_asked: tenon_isolate::serve_if_asked,
        #[cfg(not(target_os = "linux"))]
        serve_if_asked: || None,
        #[cfg(not(target_os = "linux"))]
        launcher: || std::sync::Arc::new(tenon_isolate::Launcher),
    };
    // SAFETY: nothing was done before, so there is one thread.
    unsafe { tenon_cli::main(engine) }
}
