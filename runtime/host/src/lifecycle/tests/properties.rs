//! Whatever happens in whatever order, some things hold.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::extension::LoadError;
use crate::extension::Status;

/// The most inputs of one sequence.
const MAX_INPUTS: usize = 200;

const EXTENSIONS: [&str; 3] = ["a", "b", "c"];
const TOOLS: [&str; 3] = ["x", "y", "z"];

/// Something that happens. Loads are named by how new they are: 0 is the newest generation of the extension, 1 the one before.
#[derive(Debug, Clone)]
enum Input {
    Start { extension: usize },
    StartFails { extension: usize },
    Block { extension: usize, held: bool },
    ProcessStarts { load: (usize, u32) },
    Join { load: (usize, u32), tools: Vec<usize> },
    Leave { load: (usize, u32) },
    Ready { load: (usize, u32) },
    Throw { load: (usize, u32) },
    PortTaken { load: (usize, u32) },
    DieWithZygote { load: (usize, u32) },
    Stop { load: (usize, u32) },
    Drained { load: (usize, u32) },
    Retire { extension: usize, stays: bool },
    Change { extension: usize },
    GiveUpStart { extension: usize },
    AnswerPort { listens: bool },
    MakeRoom,
    Restart,
    OpenView,
    CloseView,
    Pin { load: (usize, u32) },
    Unpin,
    Wait { ms: u64 },
}

fn inputs() -> impl Strategy<Value = Vec<Input>> {
    let extension = || 0..EXTENSIONS.len();
    let load = || (0..EXTENSIONS.len(), 0..4_u32);
    let tools = proptest::collection::vec(0..TOOLS.len(), 0..3);
    let input = prop_oneof![
        6 => extension().prop_map(|extension| Input::Start { extension }),
        1 => extension().prop_map(|extension| Input::StartFails { extension }),
        1 => (extension(), any::<bool>()).prop_map(|(extension, held)| Input::Block { extension, held }),
        2 => load().prop_map(|load| Input::ProcessStarts { load }),
        8 => (load(), tools).prop_map(|(load, tools)| Input::Join { load, tools }),
        1 => load().prop_map(|load| Input::Leave { load }),
        8 => load().prop_map(|load| Input::Ready { load }),
        2 => load().prop_map(|load| Input::Throw { load }),
        2 => load().prop_map(|load| Input::PortTaken { load }),
        1 => load().prop_map(|load| Input::DieWithZygote { load }),
        1 => load().prop_map(|load| Input::Stop { load }),
        2 => load().prop_map(|load| Input::Drained { load }),
        1 => (extension(), any::<bool>()).prop_map(|(extension, stays)| Input::Retire { extension, stays }),
        2 => extension().prop_map(|extension| Input::Change { extension }),
        1 => extension().prop_map(|extension| Input::GiveUpStart { extension }),
        2 => any::<bool>().prop_map(|listens| Input::AnswerPort { listens }),
        2 => Just(Input::MakeRoom),
        2 => Just(Input::Restart),
        1 => Just(Input::OpenView),
        1 => Just(Input::CloseView),
        1 => load().prop_map(|load| Input::Pin { load }),
        1 => Just(Input::Unpin),
        1 => (0..100_000_u64).prop_map(|ms| Input::Wait { ms }),
    ];
    proptest::collection::vec(input, 0..=MAX_INPUTS)
}

/// A table, and what a session would remember.
#[derive(Default)]
struct Session {
    world: World,
    clock: Duration,
    began: Option<Instant>,
    isolates: u32,
    has_ended: bool,
    /// Isolates that were let go of, or told to stop outside of the table.
    gone: BTreeSet<u32>,
    /// Loads that somebody drains.
    draining: Vec<Peer>,
    /// The newest generation of each extension.
    newest: BTreeMap<Key, u32>,
    views: Vec<Epoch>,
    pins: Vec<Peer>,
    restarts: Vec<(Key, u64)>,
    ports: Vec<(Key, u64)>,
    rooms: Vec<(Key, u64)>,
}

impl Session {
    fn now(&self) -> Instant {
        self.began.unwrap() + self.clock
    }

    fn peer(&self, (extension, age): (usize, u32)) -> Peer {
        let key = key(EXTENSIONS[extension]);
        let generation = self.newest.get(&key).copied().unwrap_or(0).saturating_sub(age);
        Peer { key, generation }
    }

    fn take(&mut self, effects: Effects<Fake>) {
        for effect in effects {
            let planned = |key: &Key| self.world.get(key).unwrap().record().plan();
            match effect {
                Effect::Dropped(load) | Effect::Stop(load) => {
                    assert!(self.gone.insert(load.payload().number), "it is let go of once");
                }
                Effect::Drain(peer) => self.draining.push(peer),
                Effect::Restart { key, plan, .. } => {
                    assert_eq!(plan, planned(&key));
                    self.restarts.push((key, plan));
                }
                Effect::CheckPort { key, plan, .. } => {
                    assert_eq!(plan, planned(&key));
                    self.ports.push((key, plan));
                }
                Effect::MakeRoom { key, plan, .. } => {
                    assert_eq!(plan, planned(&key));
                    self.rooms.push((key, plan));
                }
                Effect::Forgotten(key) => {
                    assert!(self.world.get(&key).is_none());
                    assert!(self.world.names.owners().all(|(_, owner)| *owner != key));
                    // Found again, it begins anew.
                    self.newest.remove(&key);
                    self.draining.retain(|peer| peer.key != key);
                }
                _ => {}
            }
        }
    }

    fn start(&mut self, key: &Key) {
        self.world.found(&key.1);
        let (peer, effects) = self.world.begin(key, BTreeMap::new()).unwrap();
        self.take(effects);
        let newest = self.newest.insert(key.clone(), peer.generation);
        assert!(newest.unwrap_or(0) < peer.generation, "generations grow");
        self.isolates += 1;
        let effects = self.world.attach(&peer, None, Fake { number: self.isolates, calls: 0 });
        self.take(effects.unwrap());
    }

    fn fail_to_start(&mut self, key: &Key) {
        self.world.found(&key.1);
        let effects = self.world.not_started(key, LoadError::new("no", None));
        self.take(effects);
    }

    fn end(&mut self, load: &Peer, reason: EndReason) {
        let (now, timing) = (self.now(), Timing::default());
        let effects = self.world.ended(load, End::new(reason, false), now, &timing);
        self.take(effects);
    }

    fn make_room(&mut self, key: &Key, plan: u64) {
        if !self.world.is_planned(key, plan) {
            return;
        }
        let starting = Stays::Listed(Status::Starting, LoadError::new("it makes room", None));
        let (peer, effects) = self.world.withdraw(key, starting);
        self.take(effects);
        if let Some(peer) = peer {
            let effects = self.world.stopped(&peer);
            self.take(effects);
        }
        self.start(key);
    }

    fn restart(&mut self, key: &Key, plan: u64) {
        if self.world.is_planned(key, plan) && self.world.current(key).is_none() {
            self.start(key);
        }
    }

    fn step(&mut self, input: Input) {
        let script = |message: &str| EndReason::Script(ScriptError::message(message));
        let effects = match input {
            Input::Start { extension } => return self.start(&key(EXTENSIONS[extension])),
            Input::StartFails { extension } => {
                return self.fail_to_start(&key(EXTENSIONS[extension]));
            }
            Input::Block { extension, held } => {
                let name = EXTENSIONS[extension];
                self.world.found(name);
                let held = held.then(|| "hash".to_owned());
                let error = LoadError::new("no", None);
                let by = Obstructed { status: Status::Untrusted, error, held };
                self.world.blocked(&key(name), by, BTreeMap::new())
            }
            Input::ProcessStarts { load } => {
                self.world.process_started(&self.peer(load), 7, Layers::default())
            }
            Input::Join { load, tools: which } => {
                let which: Vec<_> = which.into_iter().map(|tool| TOOLS[tool]).collect();
                self.world.joined(&self.peer(load), tools(&which)).unwrap_or_default()
            }
            Input::Leave { load } => self.world.left(&self.peer(load)),
            Input::Ready { load } => self.world.ready(&self.peer(load), report(), self.now()),
            Input::Throw { load } => return self.end(&self.peer(load), script("boom")),
            Input::PortTaken { load } => {
                let message = "Error: listen EADDRINUSE: address already in use 127.0.0.1:3000";
                return self.end(&self.peer(load), script(message));
            }
            Input::DieWithZygote { load } => {
                let how = "it ended".to_owned();
                let died = EndReason::ProcessDied { how, with_zygote: true };
                return self.end(&self.peer(load), died);
            }
            Input::Stop { load } => {
                let peer = self.peer(load);
                // Only the end of the session tells the load that serves to stop.
                let serves = self.world.current_peer(&peer.key).as_ref() == Some(&peer);
                if serves || self.world.stopping(&peer).is_none() {
                    return;
                }
                self.world.stopped(&peer)
            }
            Input::Drained { load } => {
                let peer = self.peer(load);
                if !self.draining.contains(&peer) || !self.world.stop_if_drained(&peer) {
                    return;
                }
                self.world.stopped(&peer)
            }
            Input::Retire { extension, stays } => {
                let disabled = || Stays::Listed(Status::Disabled, LoadError::new("off", None));
                let stays = if stays { disabled() } else { Stays::No };
                self.world.retire(&key(EXTENSIONS[extension]), stays)
            }
            Input::Change { extension } => {
                self.world.forgive(&key(EXTENSIONS[extension]));
                self.world.changed(&key(EXTENSIONS[extension]));
                return;
            }
            Input::GiveUpStart { extension } => {
                let key = key(EXTENSIONS[extension]);
                let gave_up = self.world.give_up_start(&key);
                let is_news = !gave_up.is_empty();
                self.take(gave_up);
                // Nobody gives a start up but to start another.
                if is_news {
                    self.start(&key);
                }
                return;
            }
            Input::AnswerPort { listens } => {
                let Some((key, plan)) = self.ports.pop() else { return };
                self.world.port_answered(&key, 3000, plan, listens)
            }
            Input::MakeRoom => {
                let Some((key, plan)) = self.rooms.pop() else { return };
                return self.make_room(&key, plan);
            }
            Input::Restart => {
                let Some((key, plan)) = self.restarts.pop() else { return };
                return self.restart(&key, plan);
            }
            Input::OpenView => {
                self.views.push(self.world.open_view());
                return;
            }
            Input::CloseView => {
                if let Some(view) = self.views.pop() {
                    self.world.close_view(view);
                }
                return;
            }
            Input::Pin { load } => {
                let peer = self.peer(load);
                self.world.pin(&peer);
                self.pins.push(peer);
                return;
            }
            Input::Unpin => {
                if let Some(peer) = self.pins.pop() {
                    self.world.unpin(&peer);
                }
                return;
            }
            Input::Wait { ms } => {
                self.clock += Duration::from_millis(ms);
                return;
            }
        };
        self.take(effects);
    }

    /// What holds at any time.
    fn check(&self) {
        let mut listed = BTreeSet::new();
        for (key, extension) in self.world.iter() {
            let generations: Vec<_> = extension.loads().map(|load| load.generation).collect();
            let distinct: BTreeSet<_> = generations.iter().copied().collect();
            assert_eq!(generations.len(), distinct.len(), "a load has one place");
            assert!(distinct.last() <= self.newest.get(key), "none is newer than the newest");
            if let (Some(current), Some(next)) = (&extension.current, &extension.next) {
                assert!(current.generation < next.generation);
            }
            for load in extension.loads() {
                assert!(listed.insert(load.payload.number), "an isolate has one load");
            }
            for load in &extension.draining {
                let peer = Peer { key: key.clone(), generation: load.generation };
                assert!(self.draining.contains(&peer), "{peer:?} is drained by nobody");
                assert!(load.was_replaced());
            }
            assert_eq!(extension.info.waits_for_approval, extension.held.is_some());
            // It is listed as what it was when the session ended.
            if extension.info.status == Status::Running && !self.has_ended {
                let current = extension.current.as_ref();
                assert!(current.is_some_and(|load| load.ready_at.is_some()), "{key:?}");
            }
        }
        // No load disappears without somebody who lets go of it.
        assert!(listed.is_disjoint(&self.gone));
        assert_eq!(listed.len() + self.gone.len(), self.isolates as usize);
        for (tool, owner) in self.world.names.owners() {
            let current = self.world.current(owner).expect("an owner serves");
            assert!(current.offers().tools.iter().any(|it| it.name == tool), "{tool} {owner:?}");
        }
        assert!(self.world.views.values().all(|count| *count > 0));
        assert_eq!(self.world.views.values().sum::<usize>(), self.views.len());
    }

    /// Everything that was planned is done, and every load ends.
    fn finish(&mut self) {
        while let Some((key, plan)) = self.ports.pop() {
            let effects = self.world.port_answered(&key, 3000, plan, true);
            self.take(effects);
        }
        while let Some((key, plan)) = self.rooms.pop() {
            self.make_room(&key, plan);
        }
        while let Some((key, plan)) = self.restarts.pop() {
            self.restart(&key, plan);
        }
        self.has_ended = true;
        for peer in self.world.all_end() {
            let effects = self.world.stopped(&peer);
            self.take(effects);
        }
        self.check();
        assert_eq!(self.gone.len(), self.isolates as usize);
        for (key, extension) in self.world.iter() {
            assert!(!extension.is_starting(), "{key:?} starts for ever");
            assert!(extension.loads().next().is_none());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_table_stays_whole(inputs in inputs()) {
        let mut session = Session { began: Some(Instant::now()), ..Session::default() };
        for input in inputs {
            session.step(input);
            session.check();
        }
        session.finish();
    }
}
