//! What turns an engine instance into an extension's.

use std::future::Future;
use std::pin::Pin;

use tenon_protocol::layers::Layers;
use tokio::sync::mpsc;

use crate::message::LoadSpec;
use crate::message::ToIsolate;

/// A task of the isolate's own event loop that fills its inbox from somewhere else.
pub type Feed = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What turns an engine instance into an extension's.
pub struct Claim {
    pub spec: LoadSpec,
    pub inbox: mpsc::UnboundedReceiver<ToIsolate>,
    pub feed: Option<Feed>,
    /// Whether the process is the extension's own.
    pub is_alone: bool,
    /// What the kernel enforces of the grant: nothing in a process that is not the extension's own.
    pub layers: Layers,
}
