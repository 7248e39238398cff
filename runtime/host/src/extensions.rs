//! All extensions of a session: what each one is, and calls into their isolates.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use serde_json::Value;
use tenon_isolate::Isolate;
use tenon_isolate::message::CallId;
use tenon_isolate::message::CallKind;
use tenon_isolate::message::LogLevel;
use tenon_isolate::message::LogRecord;
use tenon_isolate::message::ScriptError;
use tenon_isolate::message::ToIsolate;
use tokio::sync::oneshot;
use tokio::sync::watch;

use crate::discovery::Scope;
use crate::events::Subscriber;
use crate::extension::ExtensionInfo;
use crate::extension::Status;
use crate::hooks::Hook;
use crate::logs::Log;
use crate::logs::LogLine;
use crate::registry::Registry;

/// Scope, name and folder: names alone are not unique. Their order is the order of hooks.
pub type Key = (Scope, String, PathBuf);

/// `scope:name`.
pub fn id_of(key: &Key) -> String {
    format!("{}:{}", key.0, key.1)
}

/// One load of an extension. What it says after it was replaced is not the next one's word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    pub key: Key,
    pub generation: u32,
}

/// The outcome of a call, as the isolate sends it.
pub type Reply = Result<Value, ScriptError>;

/// How long an extension may take to answer.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    pub hook: Duration,
    pub handler: Duration,
}

/// One extension.
pub struct Extension {
    pub info: ExtensionInfo,
    pub isolate: Option<Isolate>,
    pub calls: HashMap<CallId, oneshot::Sender<Reply>>,
    pub log: Log,
    /// Its subscription to events, while it is loaded.
    pub subscriber: Option<Arc<Subscriber>>,
    /// How long its hooks, and its handlers of requests, may take.
    pub deadlines: Deadlines,
    /// Set when its isolate has said its last word.
    ended: watch::Sender<bool>,
}

impl Extension {
    pub fn new(info: ExtensionInfo, deadlines: Deadlines) -> Self {
        Self {
            info,
            isolate: None,
            calls: HashMap::new(),
            log: Log::default(),
            subscriber: None,
            deadlines,
            ended: watch::Sender::new(false),
        }
    }

    /// Waits for its isolate's last word.
    pub fn last_word(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }

    /// Its isolate has said its last word.
    pub fn say_last_word(&self) {
        self.ended.send_replace(true);
    }

    /// Adds to its log.
    pub fn note(&mut self, level: LogLevel, text: impl Into<String>) {
        self.log.push(LogRecord { level, text: text.into() });
    }
}

/// A call did not bring a value.
#[derive(Debug, Clone)]
pub enum CallFailure {
    /// The handler threw.
    Threw(ScriptError),
    /// The extension ended before it answered, or is not loaded.
    Ended {
        /// Which one.
        id: String,
        /// Why, if that is known.
        reason: Option<String>,
    },
    /// It did not answer in time.
    Late(Duration),
}

impl CallFailure {
    /// What happened, and where, on one line.
    pub fn with_place(&self) -> String {
        match self {
            Self::Threw(ScriptError { file: Some(file), line: Some(line), message, .. }) => {
                format!("{message} ({file}:{line})")
            }
            other => other.to_string(),
        }
    }
}

impl std::fmt::Display for CallFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Threw(error) => f.write_str(&error.message),
            Self::Ended { id, reason: None } => write!(f, "{id} ended"),
            Self::Ended { id, reason: Some(reason) } => write!(f, "{id} ended: {reason}"),
            Self::Late(deadline) => write!(f, "no answer within {deadline:?}"),
        }
    }
}

/// What is under the lock.
#[derive(Default)]
pub struct State {
    pub map: BTreeMap<Key, Extension>,
    pub registry: Registry,
    /// What was offered when it was last announced: tools, commands, canvases.
    pub offered: [String; 3],
    next_call: CallId,
}

impl State {
    /// The extension, if it is still the same load of it.
    pub fn of(&mut self, peer: &Peer) -> Option<&mut Extension> {
        let extension = self.map.get_mut(&peer.key)?;
        (extension.info.generation == peer.generation).then_some(extension)
    }
}

/// All extensions of a session.
pub struct Extensions {
    state: Mutex<State>,
    /// Counts up whenever an extension's status changes.
    changed: watch::Sender<u64>,
}

impl Extensions {
    pub fn new() -> Self {
        Self { state: Mutex::default(), changed: watch::Sender::new(0) }
    }

    /// The state. No code of others runs under the lock, and nothing in it waits.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        // Every statement leaves the state whole, also one that panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that an extension's status changed.
    pub fn announce(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// Waits until no extension is starting.
    pub async fn settled(&self) {
        let is_starting = |extension: &Extension| extension.info.status == Status::Starting;
        let mut changed = self.changed.subscribe();
        while self.lock().map.values().any(is_starting) {
            // The sender lives as long as we do.
            let _ = changed.changed().await;
        }
    }

    /// Every extension, by scope and name.
    pub fn list(&self) -> Vec<ExtensionInfo> {
        self.lock().map.values().map(|extension| extension.info.clone()).collect()
    }

    /// The log of an extension.
    pub fn log(&self, info: &ExtensionInfo) -> Vec<LogLine> {
        let state = self.lock();
        let found = state.map.values().find(|extension| extension.info.path == info.path);
        found.map(|extension| extension.log.lines()).unwrap_or_default()
    }

    /// Adds to an extension's log.
    pub fn note(&self, key: &Key, level: LogLevel, text: impl Into<String>) {
        if let Some(extension) = self.lock().map.get_mut(key) {
            extension.note(level, text);
        }
    }

    /// The extension with an id that is loaded.
    pub fn loaded(&self, id: &str) -> Option<Key> {
        let state = self.lock();
        let is_it = |(_, extension): &(&Key, &Extension)| {
            extension.info.id == id && extension.isolate.is_some()
        };
        state.map.iter().find(is_it).map(|(key, _)| key.clone())
    }

    /// The next extension after `after`, in the order of hooks, that has a hook. Looked up anew for every
    /// step of a chain, so that one that came or went meanwhile is noticed.
    pub fn next_with_hook(&self, after: Option<&Key>, hook: Hook) -> Option<HookTarget> {
        self.next(after, |key, extension| {
            let declared =
                extension.info.hooks.iter().find(|declared| declared.name == hook.name())?;
            Some(HookTarget {
                key: key.clone(),
                id: extension.info.id.clone(),
                fails_closed: declared.fail_closed,
                deadline: extension.deadlines.hook,
            })
        })
    }

    /// The next extension after `after` that has a handler of the given name.
    pub fn next_with_handler(&self, after: Option<&Key>, handler: &str) -> Option<HandlerTarget> {
        self.next(after, |key, extension| {
            let has_it = extension.info.handlers.iter().any(|name| name == handler);
            has_it.then(|| HandlerTarget {
                key: key.clone(),
                id: extension.info.id.clone(),
                deadline: extension.deadlines.handler,
            })
        })
    }

    fn next<T>(
        &self,
        after: Option<&Key>,
        wanted: impl Fn(&Key, &Extension) -> Option<T>,
    ) -> Option<T> {
        let state = self.lock();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        state.map.range::<Key, _>((from, Bound::Unbounded)).find_map(|(key, extension)| {
            extension.isolate.as_ref()?;
            wanted(key, extension)
        })
    }

    /// Calls into an extension and waits for the reply. Dropping the future cancels the call.
    pub async fn call(
        &self,
        key: &Key,
        kind: CallKind,
        payload: String,
    ) -> Result<Value, CallFailure> {
        let (call, mut reply) = self.start_call(key, kind, payload)?;
        let mut guard = CancelOnDrop { extensions: self, key, call, armed: true };
        let reply = match spin(&mut reply) {
            Looked::Reply(reply) => Some(reply),
            Looked::Gone => None,
            Looked::NotYet => reply.await.ok(),
        };
        guard.armed = false;
        match reply {
            Some(Ok(value)) => Ok(value),
            Some(Err(error)) => Err(CallFailure::Threw(tenon_isolate::locate(error))),
            None => Err(self.ended_call(key)),
        }
    }

    /// The same with a deadline; a call that is late is cancelled.
    pub async fn call_within(
        &self,
        key: &Key,
        kind: CallKind,
        deadline: Duration,
        payload: String,
    ) -> Result<Value, CallFailure> {
        tokio::time::timeout(deadline, self.call(key, kind, payload))
            .await
            .unwrap_or(Err(CallFailure::Late(deadline)))
    }

    fn start_call(
        &self,
        key: &Key,
        kind: CallKind,
        payload: String,
    ) -> Result<(CallId, oneshot::Receiver<Reply>), CallFailure> {
        let mut state = self.lock();
        state.next_call += 1;
        let call = state.next_call;
        let running = state.map.get_mut(key);
        let Some(Extension { isolate: Some(isolate), calls, subscriber, .. }) = running else {
            drop(state);
            return Err(self.ended_call(key));
        };
        let (sender, receiver) = oneshot::channel();
        calls.insert(call, sender);
        // What happened before the call is heard of before the call.
        if let Some(batch) = subscriber.as_ref().and_then(|subscriber| subscriber.take_batch()) {
            isolate.send(ToIsolate::Events { batch });
        }
        isolate.send(ToIsolate::Call { call, kind, payload });
        Ok((call, receiver))
    }

    fn cancel(&self, key: &Key, call: CallId) {
        if let Some(extension) = self.lock().map.get_mut(key) {
            extension.calls.remove(&call);
            if let Some(isolate) = &extension.isolate {
                isolate.send(ToIsolate::Cancel { call, reason: "the call was cancelled".into() });
            }
        }
    }

    fn ended_call(&self, key: &Key) -> CallFailure {
        let state = self.lock();
        let error = state.map.get(key).and_then(|extension| extension.info.error.as_ref());
        let reason = error.map(|error| error.what.message.clone());
        CallFailure::Ended { id: id_of(key), reason }
    }
}

/// How long a caller looks for the reply before it goes to sleep. Many handlers take less time than putting
/// a thread to sleep and waking it does; those that take longer cost this much.
const SPIN: Duration = Duration::from_micros(40);

/// What became of a reply.
enum Looked {
    Reply(Reply),
    /// None will come. The receiver must not be asked again.
    Gone,
    NotYet,
}

/// Looks for a reply that comes at once.
fn spin(reply: &mut oneshot::Receiver<Reply>) -> Looked {
    let start = std::time::Instant::now();
    loop {
        match reply.try_recv() {
            Ok(value) => return Looked::Reply(value),
            Err(oneshot::error::TryRecvError::Closed) => return Looked::Gone,
            Err(oneshot::error::TryRecvError::Empty) if start.elapsed() >= SPIN => {
                return Looked::NotYet;
            }
            Err(oneshot::error::TryRecvError::Empty) => std::hint::spin_loop(),
        }
    }
}

/// An extension's hook, about to be run.
pub struct HookTarget {
    pub key: Key,
    pub id: String,
    pub fails_closed: bool,
    pub deadline: Duration,
}

/// An extension's handler of requests, about to be asked.
pub struct HandlerTarget {
    pub key: Key,
    pub id: String,
    pub deadline: Duration,
}

/// Tells the handler when nobody waits for it any more.
struct CancelOnDrop<'a> {
    extensions: &'a Extensions,
    key: &'a Key,
    call: CallId,
    armed: bool,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.extensions.cancel(self.key, self.call);
        }
    }
}
