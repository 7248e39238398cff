//! What isolates say, and what is done about it.

use serde_json::Value;
use serde_json::json;
use tenon_protocol::message::FromIsolate;
use tenon_protocol::message::RequestId;
use tenon_protocol::message::ToIsolate;

use super::Session;
use crate::events::Filter;
use crate::extension::Registration;
use crate::extension::Status;
use crate::extensions::Extensions;
use crate::extensions::Peer;
use crate::extensions::Slot;

impl Session {
    /// Takes a message: in the isolate's thread, in the task that reads its socket, or where a reply is waited for. Nothing here
    /// waits.
    pub(super) fn receive(&self, peer: &Peer, message: FromIsolate) {
        let extensions = &self.0.extensions;
        match message {
            FromIsolate::Started { pid, layers } => self.started(peer, pid, layers),
            // The connection keeps it.
            FromIsolate::Measured(_) => {}
            FromIsolate::Log(record) => extensions.note(&peer.key, record.level, record.text),
            FromIsolate::Reply { call, result } => extensions.reply(peer, call, result),
            FromIsolate::Loaded { files } => self.loaded_files(peer, files),
            FromIsolate::EventsSeen => {
                let subscriber = extensions.lock().load(peer).map(|load| load.subscriber.clone());
                if let Some(subscriber) = subscriber {
                    self.0.bus.seen(&subscriber);
                }
            }
            FromIsolate::Request { request, method, params } => {
                self.request(peer, request, &method, params);
            }
            FromIsolate::Ready(report) => self.became_ready(peer, report),
            FromIsolate::Ended(reason) => self.ended(peer, reason),
        }
    }

    fn request(&self, peer: &Peer, request: RequestId, method: &str, params: Value) {
        match method {
            "session.join" => self.join(peer, request, params),
            "session.subscribe" | "session.unsubscribe" => {
                let kind = params["type"].as_str().unwrap_or_default();
                self.change_subscription(peer, |filter| {
                    if method == "session.subscribe" {
                        filter.add(kind);
                    } else {
                        filter.remove(kind);
                    }
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
                self.leave(peer);
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
        let mut state = self.0.extensions.lock();
        if let Some(load) = state.load(peer) {
            // One that takes nothing more does not wait for this either.
            let _ = load.isolate.send(ToIsolate::Answer { request, result });
        }
    }

    /// Waits until whoever made a request has gone.
    pub(super) async fn gone(&self, peer: &Peer) {
        let last_word = self.0.extensions.lock().load(peer).map(|load| load.last_word());
        if let Some(mut last_word) = last_word {
            // An error means that the extension was replaced.
            let _ = last_word.wait_for(|ended| *ended).await;
        }
    }

    /// Changes which events a load wants.
    pub(super) fn change_subscription(&self, peer: &Peer, change: impl FnOnce(&mut Filter)) {
        let mut state = self.0.extensions.lock();
        let Some((extension, slot)) = state.of(peer) else { return };
        if let Some(load) = extension.loads_mut().find(|load| load.generation == peer.generation) {
            load.subscribe(slot == Slot::Current, change);
        }
    }

    /// Takes back everything an extension registered; it stays loaded.
    fn leave(&self, peer: &Peer) {
        {
            let mut state = self.0.extensions.lock();
            let Some((extension, slot)) = state.of(peer) else { return };
            let serves = slot == Slot::Current;
            let id = extension.info.id.clone();
            if serves {
                extension.info.register(&Registration::default());
            }
            if let Some(load) =
                extension.loads_mut().find(|load| load.generation == peer.generation)
            {
                load.offers = Registration::default();
                load.subscribe(serves, |filter| *filter = Filter::default());
            }
            if !serves {
                return;
            }
            state.registry.remove(&id);
        }
        self.canvases_unavailable(&peer.key);
        self.announce_offers();
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
        let offers = self.0.extensions.offers();
        let [tools, commands, canvases] = offers;
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

impl Extensions {
    /// Which kinds of offers changed since it was last asked: tools, commands, canvases.
    fn offers(&self) -> [bool; 3] {
        let mut state = self.lock();
        let loaded = state.map.values().filter(|extension| extension.is_loaded());
        let mut hashes = [String::new(), String::new(), String::new()];
        for extension in loaded {
            let info = &extension.info;
            let offered = [
                serde_json::to_string(&info.tools),
                serde_json::to_string(&info.commands),
                serde_json::to_string(&info.canvases),
            ];
            for (all, offered) in hashes.iter_mut().zip(offered) {
                // Plain data always has a JSON text.
                let offered = offered.unwrap_or_default();
                if offered != "[]" {
                    all.push_str(&info.id);
                    all.push_str(&offered);
                }
            }
        }
        let mut changed = [0, 1, 2].map(|kind| state.offered[kind] != hashes[kind]);
        // The session's own tools for canvases come with the first and go with the last.
        changed[0] |= state.offered[2].is_empty() != hashes[2].is_empty();
        state.offered = hashes;
        changed
    }
}
