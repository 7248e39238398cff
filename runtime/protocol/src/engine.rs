//! An engine in the session's own process, for programs that embed Tenon.
//!
//! The session knows these traits; the engine's crate implements them.

use std::pin::Pin;

use serde::Serialize;

use crate::message::FromIsolate;
use crate::message::IsolateUsage;
use crate::message::LoadSpec;
use crate::message::ToIsolate;

/// What a program runs JavaScript with.
#[derive(Debug, Clone, Serialize)]
pub struct EngineInfo {
    /// `v8` or `quickjs`.
    pub name: &'static str,
    /// The engine's own version.
    pub version: String,
    /// Whether extensions start from a snapshot.
    pub snapshot: bool,
    /// The Node version that the platform claims to be compatible with.
    pub node: &'static str,
}

/// Takes an isolate's messages, on the isolate's own thread.
pub type Receive = Box<dyn Fn(FromIsolate) + Send + Sync>;

/// Completes when what it stands for has happened.
pub type Done = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Starts isolates in this process.
pub trait Engine: Send + Sync {
    /// Puts an extension into an isolate. Its messages go to `receive`; the last is [`FromIsolate::Ended`].
    fn start(&self, spec: LoadSpec, receive: Receive) -> Result<Box<dyn EngineIsolate>, String>;
}

/// An isolate in this process. Dropping it ends the isolate without ceremony.
pub trait EngineIsolate: Send + Sync {
    /// Sends a message. An isolate that has ended ignores it.
    fn send(&self, message: ToIsolate);

    /// Lets the extension's `SIGTERM` and `exit` handlers run, and ends it; by force when it does not end in time.
    fn stop(&self) -> Done;

    /// Says whether the start deadline counts: not while a person is asked about the extension.
    fn hold_start(&self, held: bool);

    /// What it uses.
    fn usage(&self) -> IsolateUsage;
}
