//! One extension in one JavaScript engine.
//!
//! [`Launcher::start`] puts an extension on a thread of its own, with its own engine instance and its
//! own event loop. From then on the two sides exchange [`message`]s, nothing else: no engine type
//! leaves this crate.
//!
//! ```no_run
//! # async fn example(spec: tenon_isolate::message::LoadSpec) -> Result<(), tenon_isolate::EngineError> {
//! tenon_isolate::init_engine(); // on the main thread, before any other thread exists
//! let launcher = tenon_isolate::Launcher;
//! let (sender, mut messages) = tokio::sync::mpsc::unbounded_channel();
//! let isolate = launcher.start(spec, move |message| drop(sender.send(message)))?;
//! while let Some(message) = messages.recv().await {
//!     println!("{message:?}");
//! }
//! isolate.stop().await;
//! # Ok(())
//! # }
//! ```

mod background;
mod bootstrap;
mod children;
mod claim;
mod code_cache;
mod driver;
mod embedded;
mod engine;
pub mod floor;
mod heap;
mod interrupt;
mod launcher;
pub mod limits;
mod log_rate;
mod memory;
mod modules;
mod outbox;
mod permissions;
mod programs;
mod script_error;
#[cfg(target_os = "linux")]
mod session_socket;
mod stdio;
mod terminator;
mod thread;
mod watchdog;
mod worker;
mod worker_threads;
mod working_directory;
#[cfg(target_os = "linux")]
mod zygote;

pub use engine::EngineError;
pub use engine::engine_info;
pub use engine::init_engine;
pub use launcher::Isolate;
pub use launcher::Launcher;
pub use tenon_protocol::engine::EngineInfo;
pub use tenon_protocol::message;
#[cfg(target_os = "linux")]
pub use zygote::serve_if_asked;
