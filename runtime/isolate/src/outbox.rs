//! Where an isolate's messages go.

use std::sync::Arc;
use std::sync::OnceLock;

use tenon_protocol::engine::Receive;

use crate::message::FromIsolate;

/// Sends an isolate's messages. Empty until the isolate has an extension; what is sent before
/// that is dropped.
#[derive(Clone, Default)]
pub struct Outbox(Arc<OnceLock<Receive>>);

impl Outbox {
    pub fn connect(&self, send: Receive) {
        // Connected once, when the isolate is claimed; a second claim cannot happen.
        let _ = self.0.set(send);
    }

    pub fn send(&self, message: FromIsolate) {
        if let Some(send) = self.0.get() {
            send(message);
        }
    }
}
