//! What the command line needs of the JavaScript engine.

use std::process::ExitCode;
#[cfg(not(target_os = "linux"))]
use std::sync::Arc;
use std::sync::OnceLock;

use tenon_protocol::engine::EngineInfo;

/// The engine that the binary was linked with.
#[derive(Clone, Copy)]
pub struct Engine {
    /// Which engine it is.
    pub info: fn() -> EngineInfo,
    /// Serves as zygote if that is what the process was started for.
    pub serve_if_asked: fn() -> Option<ExitCode>,
    /// Starts isolates in this process. On Linux they have processes of their own.
    #[cfg(not(target_os = "linux"))]
    pub launcher: fn() -> Arc<dyn tenon_protocol::engine::Engine>,
}

static ENGINE: OnceLock<Engine> = OnceLock::new();

/// Says which engine the binary was linked with; once, when the program starts.
pub fn set(engine: Engine) {
    // A second call would bring the same engine.
    let _ = ENGINE.set(engine);
}

/// The engine, which runs JavaScript in this process. `None` in unit tests, which link none.
#[cfg(not(target_os = "linux"))]
pub fn get() -> Option<&'static Engine> {
    ENGINE.get()
}

/// Describes the engine.
pub fn info() -> EngineInfo {
    match ENGINE.get() {
        Some(engine) => (engine.info)(),
        None => EngineInfo { name: "none", version: String::new(), snapshot: false, node: "" },
    }
}
