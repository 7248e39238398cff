//! The state machine without an engine.

mod matrix;
mod properties;
mod scenarios;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use serde_json::json;
use tenon_protocol::layers::Layers;
use tenon_protocol::message::EndReason;
use tenon_protocol::message::EngineName;
use tenon_protocol::message::LogLevel;
use tenon_protocol::message::ReadyReport;
use tenon_protocol::message::ScriptError;

use super::*;
use crate::discovery::Found;
use crate::discovery::Scope;
use crate::extension::ExtensionInfo;
use crate::supervision::Timing;

/// Stands for an isolate.
#[derive(Debug, Clone, Default, PartialEq)]
struct Fake {
    number: u32,
    calls: usize,
}

impl Payload for Fake {
    fn is_called(&self) -> bool {
        self.calls > 0
    }
}

type World = Table<Fake>;

fn key(name: &str) -> Key {
    (Scope::Project, name.to_owned(), Path::new("/nowhere").join(name))
}

fn peer(name: &str, generation: u32) -> Peer {
    Peer { key: key(name), generation }
}

fn found(name: &str) -> Found {
    Found {
        scope: Scope::Project,
        name: name.to_owned(),
        folder: key(name).2,
        entry: Ok(key(name).2.join("extension.mjs")),
        shadowed_by: None,
    }
}

fn report() -> ReadyReport {
    ReadyReport { wall_us: 1, cpu_us: 1, engine: EngineName::V8 }
}

/// What an extension offers that has these tools.
fn tools(names: &[&str]) -> CheckedOffers {
    let tools: Vec<_> = names.iter().map(|name| json!({ "name": name })).collect();
    let offers = json!({ "tools": tools, "subscribe": ["assistant.message"] });
    CheckedOffers::new(serde_json::from_value(offers).unwrap())
}

fn threw(message: &str) -> End {
    End::new(EndReason::Script(ScriptError::message(message)), false)
}

/// The names of effects, in order.
fn names(effects: &[Effect<Fake>]) -> String {
    let name = |effect: &Effect<Fake>| match effect {
        Effect::Log(_, LogLevel::Info, _) => "mark",
        Effect::Log(_, LogLevel::Warning, text) if text.contains("is ignored") => "illegal",
        Effect::Log(..) => "log",
        Effect::Subscribe(..) => "subscribe",
        Effect::Forgotten(_) => "forgotten",
        Effect::Dropped(_) => "drop",
        Effect::Stop(_) => "stop",
        Effect::Drain(_) => "drain",
        Effect::Restart { .. } => "restart",
        Effect::CheckPort { .. } => "port?",
        Effect::MakeRoom { .. } => "room",
        Effect::ForgiveLater(_) => "forgive",
        Effect::FilesRead { .. } => "files",
        Effect::CanvasesGone(_) => "canvases",
        Effect::Changed => "changed",
        Effect::OffersChanged => "offers",
    };
    effects.iter().map(name).collect::<Vec<_>>().join(" ")
}

/// Shorthands that the tests need over and over.
trait Steps {
    fn found(&mut self, name: &str);
    fn start(&mut self, name: &str) -> Peer;
    fn join(&mut self, peer: &Peer);
    fn run(&mut self, peer: &Peer) -> Effects<Fake>;
    fn end(&mut self, peer: &Peer, end: End) -> Effects<Fake>;
}

impl Steps for World {
    fn found(&mut self, name: &str) {
        self.discovered(&key(name), &found(name), ExtensionInfo::new(&found(name)));
    }

    /// Finds an extension and starts a load of it.
    fn start(&mut self, name: &str) -> Peer {
        self.found(name);
        let (peer, _) = self.begin(&key(name), BTreeMap::new()).unwrap();
        let number = peer.generation;
        let started = self.attach(&peer, None, Fake { number, calls: 0 }).unwrap();
        assert_eq!(names(&started), "mark");
        peer
    }

    /// The process of a load starts, and it joins with a tool of its extension's name.
    fn join(&mut self, peer: &Peer) {
        assert_eq!(names(&self.process_started(peer, 7, Layers::default())), "mark");
        self.joined(peer, tools(&[&peer.key.1])).unwrap();
    }

    /// The same, until it is ready.
    fn run(&mut self, peer: &Peer) -> Effects<Fake> {
        self.join(peer);
        self.ready(peer, report(), Instant::now())
    }

    fn end(&mut self, peer: &Peer, end: End) -> Effects<Fake> {
        self.ended(peer, end, Instant::now(), &Timing::default())
    }
}
