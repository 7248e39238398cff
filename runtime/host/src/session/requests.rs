//! What isolates say, and what is done about it.

use serde_json::Value;
use serde_json::json;
use tenon_isolate::message::EndReason;
use tenon_isolate::message::FromIsolate;
use tenon_isolate::message::LogLevel;
use tenon_isolate::message::RequestId;
use tenon_isolate::message::ToIsolate;

use super::Session;
use crate::extension::LoadError;
use crate::extension::Registration;
use crate::extension::Status;
use crate::extensions::Extensions;
use crate::extensions::Key;

impl Session {
    /// Takes a message, in the isolate's thread. Nothing here waits.
    pub(super) fn receive(&self, key: &Key, generation: u32, message: FromIsolate) {
        let extensions = &self.0.extensions;
        let current = extensions.lock().map.get(key).map(|extension| extension.info.generation);
        if current != Some(generation) {
            // The last words of one that was replaced.
            return;
        }
        match message {
            FromIsolate::Log(record) => extensions.note(key, record.level, record.text),
            FromIsolate::Reply { call, result } => {
                let waiting = extensions
                    .lock()
                    .map
                    .get_mut(key)
                    .and_then(|extension| extension.calls.remove(&call));
                if let Some(waiting) = waiting {
                    // The caller may have given up.
                    let _ = waiting.send(result);
                }
            }
            FromIsolate::EventsSeen => {
                let subscriber =
                    extensions.lock().map.get(key).and_then(|it| it.subscriber.clone());
                if let Some(subscriber) = subscriber {
                    self.0.bus.seen(&subscriber);
                }
            }
            FromIsolate::Request { request, method, params } => {
                self.request(key, request, &method, params);
            }
            FromIsolate::Ready(report) => {
                if let Some(extension) = extensions.lock().map.get_mut(key) {
                    extension.info.ready = Some(report);
                    extension.info.status = Status::Running;
                }
                extensions.announce();
                self.announce_offers();
            }
            FromIsolate::Ended(reason) => self.ended(key, reason),
        }
    }

    fn ended(&self, key: &Key, reason: EndReason) {
        let had_isolate = {
            let mut state = self.0.extensions.lock();
            let Some(extension) = state.map.get_mut(key) else { return };
            let id = extension.info.id.clone();
            let had_isolate = extension.isolate.take().is_some();
            if let Some(error) = LoadError::from_end(reason) {
                extension.note(LogLevel::Error, error.what.message.clone());
                extension.info.fail(Status::Failed, error);
            }
            extension.subscriber = None;
            // Whoever waits for a reply learns that none will come.
            extension.calls.clear();
            extension.say_last_word();
            state.registry.remove(&id);
            had_isolate
        };
        self.0.extensions.announce();
        // When everything is stopped, nobody needs to hear of every single one.
        if had_isolate && !self.facts().ended {
            self.canvases_unavailable(key);
            self.announce_offers();
        }
    }

    fn request(&self, key: &Key, request: RequestId, method: &str, params: Value) {
        match method {
            "session.join" => self.join(key, request, params),
            "session.subscribe" | "session.unsubscribe" => {
                let kind = params["type"].as_str().unwrap_or_default();
                let subscriber =
                    self.0.extensions.lock().map.get(key).and_then(|it| it.subscriber.clone());
                if let Some(subscriber) = subscriber {
                    subscriber.change(|filter| {
                        if method == "session.subscribe" {
                            filter.add(kind);
                        } else {
                            filter.remove(kind);
                        }
                    });
                }
                self.answer(key, request, Ok(Value::Null));
            }
            "session.getEvents" => {
                let (session, key) = (self.clone(), key.clone());
                self.0.runtime.spawn_blocking(move || {
                    let events = session.0.bus.recorded();
                    let events = events.map(Value::Array).map_err(|error| error.to_string());
                    session.answer(&key, request, events);
                });
            }
            "session.disconnect" => {
                self.leave(key);
                self.answer(key, request, Ok(Value::Null));
            }
            _ => match method.strip_prefix("rpc.") {
                Some(path) => self.rpc(key, request, path, params),
                None => {
                    let refusal = format!("{method} is not served by this host");
                    self.answer(key, request, Err(refusal));
                }
            },
        }
    }

    /// Answers a request, if the extension is still there.
    pub(super) fn answer(&self, key: &Key, request: RequestId, result: Result<Value, String>) {
        let state = self.0.extensions.lock();
        if let Some(isolate) = state.map.get(key).and_then(|it| it.isolate.as_ref()) {
            isolate.send(ToIsolate::Answer { request, result });
        }
    }

    /// Takes back everything an extension registered; it stays loaded.
    fn leave(&self, key: &Key) {
        {
            let mut state = self.0.extensions.lock();
            let Some(extension) = state.map.get_mut(key) else { return };
            let id = extension.info.id.clone();
            extension.info.register(Registration::default());
            if let Some(subscriber) = &extension.subscriber {
                subscriber.change(|filter| *filter = crate::events::Filter::default());
            }
            state.registry.remove(&id);
        }
        self.canvases_unavailable(key);
        self.announce_offers();
    }

    /// Says what extensions offer, once it has changed.
    pub(super) fn announce_offers(&self) {
        if self.facts().loading {
            return;
        }
        let offers = self.0.extensions.offers();
        let [tools, commands, canvases] = offers;
        if tools {
            let model = self.facts().model.clone().unwrap_or_default();
            self.emit_ephemeral("session.tools_updated", json!({ "model": model }));
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

impl Extensions {
    /// Which kinds of offers changed since it was last asked: tools, commands, canvases.
    fn offers(&self) -> [bool; 3] {
        let mut state = self.lock();
        let loaded = state.map.values().filter(|extension| extension.isolate.is_some());
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
        let changed = [0, 1, 2].map(|kind| state.offered[kind] != hashes[kind]);
        state.offered = hashes;
        changed
    }
}
