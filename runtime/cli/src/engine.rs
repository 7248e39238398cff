//! What the command line needs of the JavaScript engine.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use tenon_protocol::engine::EngineInfo;
use tenon_protocol::engine::Spare;

/// The engine that the binary was linked with.
#[derive(Clone, Copy)]
pub struct Engine {
    /// Which engine it is.
    pub info: fn() -> EngineInfo,
    /// Initialises it; to be called before any other thread exists.
    pub init: fn(),
    /// Serves as zygote if that is what the process was started for.
    pub serve_if_asked: fn() -> Option<ExitCode>,
    /// Starts isolates in this process.
    pub launcher: fn(Spare) -> Arc<dyn tenon_protocol::engine::Engine>,
    /// Makes an engine instance without any platform, and keeps it while the function runs.
    pub bare_isolate: fn(Box<dyn FnOnce()>),
    /// CPU time of the calling thread.
    pub thread_cpu_time: fn() -> Duration,
}

static ENGINE: OnceLock<Engine> = OnceLock::new();

/// Says which engine the binary was linked with; once, when the program starts.
pub fn set(engine: Engine) {
    // A second call would bring the same engine.
    let _ = ENGINE.set(engine);
}

/// The engine, for what runs JavaScript in this process. `None` in unit tests, which link none.
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
