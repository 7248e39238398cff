//! What isolates say, and what is done about it.

use std::time::Instant;

use serde_json::Value;
use serde_json::json;
use tenon_protocol::message::FromIsolate;
use tenon_protocol::message::RequestId;
use tenon_protocol::message::ToIsolate;
use tracing::error;
use tracing::warn;

use super::Session;
use crate::extension::Status;
use crate::extensions::Peer;
use crate::extensions::id_of;
use crate::lifecycle::End;

impl Session {
    /// Takes a message: in the isolate's thread, in the task that reads its socket, or where a reply is waited for. Nothing here
    /// waits.
    pub(super) fn receive(&self, peer: &Peer, message: FromIsolate) {
        let extensions = &self.0.extensions;
        match message {
            FromIsolate::Started { pid, layers } => {
                self.change(|table| table.process_started(peer, pid, layers));
            }
            // The connection keeps it.
            FromIsolate::Measured(_) => {}
            FromIsolate::Log(record) => extensions.note(&peer.key, record.level, record.text),
            FromIsolate::Reply { call, result } => extensions.reply(peer, call, result),
            FromIsolate::Loaded { files } => self.loaded_files(peer, files),
            FromIsolate::EventsSeen => {
                let table = extensions.lock();
                let subscriber = table.load(peer).map(|load| load.payload().subscriber.clone());
                drop(table);
                if let Some(subscriber) = subscriber {
                    self.0.bus.seen(&subscriber);
                }
            }
            FromIsolate::Request { request, method, params } => {
                self.request(peer, request, &method, params);
            }
            FromIsolate::Ready(report) => {
                self.change(|table| table.ready(peer, report, Instant::now()));
            }
            FromIsolate::Ended(reason) => {
                let end = End::new(reason, self.facts().ended);
                self.trace_end(peer, &end);
                let timing = self.0.options.timing;
                self.change(|table| table.ended(peer, end, Instant::now(), &timing));
            }
        }
    }

    /// Tells Tenon's own log that a load has not ended as it should. What the extension said about it is in its own log.
    fn trace_end(&self, peer: &Peer, end: &End) {
        let (extension, generation) = (id_of(&peer.key), peer.generation);
        match end.process_died {
            Some(with_zygote) => {
                error!(%extension, generation, with_zygote, "the process of an extension died");
            }
            None if end.error.is_none() => {}
            None if self.is_on_its_way(peer) => {
                warn!(%extension, generation, "an extension could not be loaded");
            }
            None => warn!(%extension, generation, "an extension failed"),
        }
    }

    fn request(&self, peer: &Peer, request: RequestId, method: &str, params: Value) {
        match method {
            "session.join" => self.join(peer, request, params),
            "session.subscribe" | "session.unsubscribe" => {
                let kind = params["type"].as_str().unwrap_or_default();
                self.change(|table| {
                    table.subscribed(peer, |filter| {
                        if method == "session.subscribe" {
                            filter.add(kind);
                        } else {
                            filter.remove(kind);
                        }
                    })
                });
                self.answer(peer, request, Ok(Value::Null));
            }
            "session.getEvents" => {
                let (session, peer) = (self.clone(), peer.clone());
                self.0.runtime.spawn_blocking(move || {
                    let events = session.0.bus.recorded();
                    let events = events.map(Value::Array).map_err(|error| error.to_string());
                    session.answer(&peer, request, events);
                });
            }
            "session.disconnect" => {
                self.change(|table| table.left(peer));
                self.answer(peer, request, Ok(Value::Null));
            }
            _ => match method.strip_prefix("rpc.") {
                Some(path) => self.rpc(peer, request, path, params),
                None => {
                    let refusal = format!("{method} is not served by this host");
                    self.answer(peer, request, Err(refusal));
                }
            },
        }
    }

    /// Answers a request, if whoever made it is still there.
    pub(super) fn answer(&self, peer: &Peer, request: RequestId, result: Result<Value, String>) {
        if let Some(load) = self.0.extensions.lock().load(peer) {
            // One that takes nothing more does not wait for this either.
            let _ = load.payload().isolate.send(ToIsolate::Answer { request, result });
        }
    }

    /// Waits until whoever made a request has gone.
    pub(super) async fn gone(&self, peer: &Peer) {
        let last_word = self.0.extensions.lock().load(peer).map(|load| load.payload().last_word());
        if let Some(mut last_word) = last_word {
            // An error means that the extension was replaced.
            let _ = last_word.wait_for(|ended| *ended).await;
        }
    }

    /// Says what extensions offer, once it has changed.
    pub(super) fn announce_offers(&self) {
        // When everything is started or stopped, nobody needs to hear of every single one.
        {
            let facts = self.facts();
            if facts.loading > 0 || facts.ended {
                return;
            }
        }
        let [tools, commands, canvases] = self.0.extensions.changed_offers();
        if tools {
            let model = self.facts().model.clone().unwrap_or_default();
            let data = json!({ "model": model, "extensions": self.loads() });
            self.emit_ephemeral("session.tools_updated", data);
            if let Some(agent) = &self.0.options.agent {
                agent.tools_changed();
            }
        }
        if commands {
            self.emit_ephemeral("commands.changed", json!({ "commands": self.commands() }));
        }
        if canvases {
            let data = json!({ "canvases": self.canvases() });
            self.emit_ephemeral("session.canvas.registry_changed", data);
        }
        let capabilities = self.capabilities();
        let changed = {
            let mut facts = self.facts();
            let changed = facts.capabilities != capabilities;
            facts.capabilities = capabilities.clone();
            changed
        };
        if changed {
            self.emit_ephemeral("capabilities.changed", json!({ "ui": capabilities["ui"] }));
        }
        // Nobody needs to hear twice that nothing has changed.
        let extensions: Vec<_> = self
            .list()
            .iter()
            .map(|info| {
                json!({
                    "id": info.id,
                    "name": info.name,
                    "source": info.source,
                    "status": info.status,
                    "generation": info.generation,
                    "hash": info.hash,
                })
            })
            .collect();
        let data = json!({ "extensions": extensions });
        let before = std::mem::replace(&mut self.facts().extensions_loaded, data.clone());
        if before != data {
            self.emit_ephemeral("session.extensions_loaded", data);
        }
    }
}

impl Session {
    /// Which load of each extension serves.
    fn loads(&self) -> Vec<Value> {
        let running = |info: &crate::extension::ExtensionInfo| info.status == Status::Running;
        let all = self.list().into_iter().filter(running);
        all.map(|info| json!({ "id": info.id, "generation": info.generation, "hash": info.hash }))
            .collect()
    }
}
