//! Who is connected, which version of the list of tools each has seen, and who can hear that it changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use parking_lot::MutexGuard;
use rmcp::transport::streamable_http_server::SessionId;
use tokio::sync::mpsc;
use tokio::sync::watch;

/// How long a client that has listed again may take to make use of what it read, before the call is answered
/// in which the list changed. Without the pause some clients ask their model with the old list once more.
const RELIST_SETTLE: Duration = Duration::from_millis(50);

/// The most clients without a connection of their own that are remembered. Each is an entry of a few bytes,
/// but its name is whatever the client says.
const MAX_CLIENTS: usize = 64;

/// A client.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// It has a connection of lines to itself: standard input and output, or a socket.
    Line(u64),
    /// It has an HTTP session.
    Session(SessionId),
    /// Its HTTP requests belong to no session; it says who it is.
    Client(String),
}

/// Everybody who is connected.
pub(super) struct Peers {
    /// Counts up whenever the list of tools changes.
    version: watch::Sender<u64>,
    state: Mutex<State>,
    /// Something has changed that somebody may wait for.
    moved: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    listeners: HashMap<Key, Listener>,
    sessions: HashMap<SessionId, Streams>,
    /// Numbers lines and requests.
    next: u64,
}

/// What is known of a client.
#[derive(Default)]
struct Listener {
    /// The newest version it has listed.
    seen: Option<u64>,
    /// It hears everything that is said on its connection.
    always: bool,
    /// How many streams it has open on which it hears of changes.
    subscriptions: usize,
}

/// What an HTTP session has open.
#[derive(Default)]
struct Streams {
    /// Streams that belong to no request.
    standalone: usize,
    /// Requests that are being answered; calls can be told that the list has changed.
    requests: HashMap<u64, Option<mpsc::Sender<()>>>,
    /// When it was last used, in steps.
    used: u64,
}

impl Streams {
    fn is_open(&self) -> bool {
        self.standalone > 0 || !self.requests.is_empty()
    }
}

impl State {
    fn step(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Whether a client can be told that the list has changed.
    fn hears(&self, key: &Key, listener: &Listener) -> bool {
        let has_stream = |id: &SessionId| self.sessions.get(id).is_some_and(Streams::is_open);
        listener.always
            || listener.subscriptions > 0
            || matches!(key, Key::Session(id) if has_stream(id))
    }

    /// How many can be told of changes, and how many of them have not seen a version yet. Who has never
    /// listed has nothing to list again.
    fn waited_for(&self, version: u64) -> (usize, usize) {
        let listeners = self.listeners.iter().filter(|(key, it)| self.hears(key, it));
        let seen: Vec<u64> = listeners.filter_map(|(_, listener)| listener.seen).collect();
        (seen.len(), seen.iter().filter(|seen| **seen < version).count())
    }
}

impl Peers {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            version: watch::Sender::new(0),
            state: Mutex::default(),
            moved: watch::Sender::new(()),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Changes what is known, and wakes whoever waits for it.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state());
        self.moved.send_replace(());
        changed
    }

    /// The version of the list of tools.
    pub(super) fn version(&self) -> u64 {
        *self.version.borrow()
    }

    /// Tells of every version from now on.
    pub(super) fn versions(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// The list of tools has changed. Quick, and callable from anywhere.
    pub(super) fn changed(&self) {
        self.version.send_modify(|version| *version += 1);
        let state = self.state();
        // A message goes to one stream of a session: the standing one if there is one.
        for streams in state.sessions.values().filter(|streams| streams.standalone == 0) {
            for call in streams.requests.values().flatten() {
                // One that has not taken the last notification needs no second.
                let _ = call.try_send(());
            }
        }
    }

    /// A new connection of lines.
    pub(super) fn line(&self) -> Key {
        Key::Line(self.state().step())
    }

    /// A client has listed a version. `always`: it hears what is said on its connection.
    pub(super) fn listed(&self, key: &Key, version: u64, always: bool) {
        self.change(|state| {
            if matches!(key, Key::Session(id) if !state.sessions.contains_key(id)) {
                return;
            }
            forget_some_clients(state, key);
            let listener = state.listeners.entry(key.clone()).or_default();
            listener.seen = Some(listener.seen.unwrap_or(0).max(version));
            listener.always |= always;
        });
    }

    /// The version a client has listed last.
    pub(super) fn seen(&self, key: &Key) -> Option<u64> {
        self.state().listeners.get(key)?.seen
    }

    /// A client hears of changes until the guard is dropped.
    pub(super) fn hearing(self: &Arc<Self>, key: Key) -> Hearing {
        self.change(|state| {
            forget_some_clients(state, &key);
            state.listeners.entry(key.clone()).or_default().subscriptions += 1;
        });
        Hearing { peers: self.clone(), key }
    }

    /// A client has left.
    pub(super) fn left(&self, key: &Key) {
        self.change(|state| {
            state.listeners.remove(key);
        });
    }

    /// Waits until everybody who has listed the tools and can be told of changes has listed this version,
    /// or until nobody is left who could; at most as long as `patience` lasts.
    pub(super) async fn relisted(&self, version: u64, patience: Duration) {
        let mut moved = self.moved.subscribe();
        let all_have = async {
            loop {
                let (listening, behind) = self.state().waited_for(version);
                if behind == 0 {
                    return listening > 0;
                }
                if moved.changed().await.is_err() {
                    return false;
                }
            }
        };
        if let Ok(true) = tokio::time::timeout(patience, all_have).await {
            tokio::time::sleep(RELIST_SETTLE).await;
        }
    }

    /// Whether there is room for one more HTTP session beside `most`.
    pub(super) fn room(&self, most: usize) -> Room {
        let state = self.state();
        if state.sessions.len() < most {
            return Room::Free;
        }
        let idle = state.sessions.iter().filter(|(_, streams)| !streams.is_open());
        match idle.min_by_key(|(_, streams)| streams.used) {
            Some((id, _)) => Room::After(id.clone()),
            None => Room::None,
        }
    }

    /// An HTTP session has begun.
    pub(super) fn session_opened(&self, id: &SessionId) {
        self.change(|state| {
            let used = state.step();
            state.sessions.insert(id.clone(), Streams { used, ..Streams::default() });
        });
    }

    /// An HTTP session has ended.
    pub(super) fn session_closed(&self, id: &SessionId) {
        self.change(|state| {
            state.sessions.remove(id);
            state.listeners.remove(&Key::Session(id.clone()));
        });
    }

    /// A request of a session is being answered, until [`Peers::request_answered`] with the number. A call
    /// is told when the list changes and the session has no other stream to hear it on.
    pub(super) fn request_begun(&self, id: &SessionId, is_call: bool) -> (u64, mpsc::Receiver<()>) {
        let (sender, receiver) = mpsc::channel(1);
        let number = self.change(|state| {
            let number = state.step();
            if let Some(streams) = state.sessions.get_mut(id) {
                streams.used = number;
                streams.requests.insert(number, is_call.then_some(sender));
            }
            number
        });
        (number, receiver)
    }

    /// A request was answered, or given up.
    pub(super) fn request_answered(&self, id: &SessionId, number: u64) {
        self.change(|state| {
            if let Some(streams) = state.sessions.get_mut(id) {
                streams.requests.remove(&number);
            }
        });
    }

    /// A session has a stream that belongs to no request, until the guard is dropped.
    pub(super) fn standing(self: &Arc<Self>, id: &SessionId) -> Standing {
        self.change(|state| {
            let used = state.step();
            if let Some(streams) = state.sessions.get_mut(id) {
                streams.used = used;
                streams.standalone += 1;
            }
        });
        Standing { peers: self.clone(), id: id.clone() }
    }
}

/// Makes room for a client without a connection; those that hear nothing go first.
fn forget_some_clients(state: &mut State, newcomer: &Key) {
    if !matches!(newcomer, Key::Client(_)) || state.listeners.contains_key(newcomer) {
        return;
    }
    let clients = state.listeners.keys().filter(|key| matches!(key, Key::Client(_))).count();
    if clients >= MAX_CLIENTS {
        state.listeners.retain(|key, it| !matches!(key, Key::Client(_)) || it.subscriptions > 0);
    }
}

/// Whether one more HTTP session may begin.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// Yes.
    Free,
    /// Yes, once this one is closed, which nobody uses.
    After(SessionId),
    /// No: all are in use.
    None,
}

/// A client hears of changes.
pub(super) struct Hearing {
    peers: Arc<Peers>,
    key: Key,
}

impl Drop for Hearing {
    fn drop(&mut self) {
        self.peers.change(|state| {
            if let Some(listener) = state.listeners.get_mut(&self.key) {
                listener.subscriptions = listener.subscriptions.saturating_sub(1);
            }
        });
    }
}

/// A session has a stream that belongs to no request.
pub(super) struct Standing {
    peers: Arc<Peers>,
    id: SessionId,
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.peers.change(|state| {
            if let Some(streams) = state.sessions.get_mut(&self.id) {
                streams.standalone = streams.standalone.saturating_sub(1);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    /// More than any test takes: who waits so long waits for an event.
    const LONG: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn a_wait_ends_when_everybody_has_listed_again() {
        let peers = Peers::new();
        let (one, other) = (peers.line(), peers.line());
        peers.listed(&one, peers.version(), true);
        peers.listed(&other, peers.version(), true);
        peers.changed();
        let version = peers.version();
        let mut waiting = std::pin::pin!(peers.relisted(version, LONG));
        assert!(waiting.as_mut().now_or_never().is_none());
        peers.listed(&one, version, true);
        assert!(waiting.as_mut().now_or_never().is_none());
        peers.listed(&other, version, true);
        waiting.await;
    }

    #[tokio::test]
    async fn patience_ends_a_wait_for_one_that_never_lists_again() {
        let peers = Peers::new();
        let line = peers.line();
        peers.listed(&line, peers.version(), true);
        peers.changed();
        peers.relisted(peers.version(), Duration::from_millis(1)).await;
        assert_eq!(peers.seen(&line), Some(0));
    }

    #[tokio::test]
    async fn nobody_waits_for_who_left_never_listed_or_cannot_hear() {
        let peers = Peers::new();
        let gone = peers.line();
        peers.listed(&gone, peers.version(), true);
        let session: SessionId = "one".into();
        peers.session_opened(&session);
        peers.listed(&Key::Session(session.clone()), peers.version(), false);
        let _never_listed = peers.hearing(Key::Client("modern".to_owned()));
        peers.changed();
        let version = peers.version();
        assert!(std::pin::pin!(peers.relisted(version, LONG)).now_or_never().is_none());
        peers.left(&gone);
        // The session has no stream.
        assert!(std::pin::pin!(peers.relisted(version, LONG)).now_or_never().is_some());
        let stream = peers.standing(&session);
        assert!(std::pin::pin!(peers.relisted(version, LONG)).now_or_never().is_none());
        drop(stream);
        assert!(std::pin::pin!(peers.relisted(version, LONG)).now_or_never().is_some());
    }

    #[test]
    fn a_call_is_told_of_a_change_only_without_a_standing_stream() {
        let peers = Peers::new();
        let session: SessionId = "one".into();
        peers.session_opened(&session);
        let (_, mut call) = peers.request_begun(&session, true);
        let (_, mut list) = peers.request_begun(&session, false);
        let stream = peers.standing(&session);
        peers.changed();
        assert!(call.try_recv().is_err());
        drop(stream);
        peers.changed();
        peers.changed();
        assert!(call.try_recv().is_ok());
        assert!(call.try_recv().is_err(), "one notification is enough until it was taken");
        assert!(list.try_recv().is_err());
    }

    #[test]
    fn the_session_nobody_used_for_longest_makes_room() {
        let peers = Peers::new();
        let ids: Vec<SessionId> = vec!["a".into(), "b".into()];
        assert_eq!(peers.room(2), Room::Free);
        ids.iter().for_each(|id| peers.session_opened(id));
        let (number, _call) = peers.request_begun(&ids[0], true);
        assert_eq!(peers.room(2), Room::After(ids[1].clone()));
        let _stream = peers.standing(&ids[1]);
        assert_eq!(peers.room(2), Room::None);
        peers.request_answered(&ids[0], number);
        assert_eq!(peers.room(2), Room::After(ids[0].clone()));
    }

    #[test]
    fn clients_without_connections_are_not_remembered_without_limit() {
        let peers = Peers::new();
        let faithful = Key::Client("faithful".to_owned());
        let _hearing = peers.hearing(faithful.clone());
        peers.listed(&faithful, 0, false);
        for number in 0..3 * MAX_CLIENTS {
            peers.listed(&Key::Client(format!("client-{number}")), 0, false);
        }
        assert!(peers.state().listeners.len() <= MAX_CLIENTS);
        assert_eq!(peers.seen(&faithful), Some(0));
    }
}
