//! The events of a session: one bus, any number of subscribers, none of which can hold up another.

mod data;
mod journal;
mod queue;

use parking_lot::Mutex;
use parking_lot::MutexGuard;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::Weak;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use serde_json::json;
use tokio::sync::Notify;

pub use data::EventData;
pub use journal::FILE_NAME;
pub use journal::Journal;
pub use journal::JournalError;
use queue::Queue;
pub(crate) use queue::Urgency;

/// How late details are written to the journal: what is written together costs one write.
const DETAIL_DELAY: Duration = Duration::from_millis(2);

/// Something that happened in a session.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Its name, such as `tool.execution_start`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What there is to know of it.
    pub data: EventData,
    /// Unique.
    pub id: String,
    /// When it happened, ISO 8601.
    pub timestamp: String,
    /// The last event before it that was recorded.
    pub parent_id: Option<String>,
    /// Whether it is delivered but not recorded.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ephemeral: bool,
}

impl Event {
    /// A recorded event, for tests of those who get events.
    #[doc(hidden)]
    pub fn for_test(kind: &str, data: impl Into<EventData>) -> Self {
        Self {
            kind: kind.to_owned(),
            data: data.into(),
            id: "1".to_owned(),
            timestamp: "2026-01-01T00:00:00.000Z".to_owned(),
            parent_id: None,
            ephemeral: false,
        }
    }
}

/// An event and its JSON text, made once for everybody.
pub struct Recorded {
    /// The event.
    pub event: Event,
    /// The event as JSON.
    pub text: String,
}

/// Which events a subscriber wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    all: bool,
    kinds: HashSet<String>,
}

impl Filter {
    /// Every event.
    pub fn all() -> Self {
        Self { all: true, kinds: HashSet::new() }
    }

    /// Adds a type of event; `*` is every one.
    pub fn add(&mut self, kind: &str) {
        if kind == "*" {
            self.all = true;
        } else {
            self.kinds.insert(kind.to_owned());
        }
    }

    /// Takes a type of event away again.
    pub fn remove(&mut self, kind: &str) {
        if kind == "*" {
            self.all = false;
        } else {
            self.kinds.remove(kind);
        }
    }

    fn wants(&self, kind: &str) -> bool {
        self.all || self.kinds.contains(kind)
    }
}

/// One who wants events. Dropping it ends the subscription.
pub struct Subscriber {
    /// Named in the warning when events had to be dropped.
    name: String,
    filter: Mutex<Filter>,
    queue: Mutex<Queue>,
    /// Takes the next batch and delivers it; none for those who take events one by one.
    deliver: Option<Deliver>,
    arrived: Notify,
}

impl Subscriber {
    /// Changes what it wants, from the next event on.
    pub fn change(&self, change: impl FnOnce(&mut Filter)) {
        change(&mut lock(&self.filter));
    }

    /// The next batch, if there is one and those before allow it. Whoever takes it must deliver it.
    pub(crate) fn take_batch(&self, urgency: Urgency) -> Option<String> {
        lock(&self.queue).take_batch(&self.name, urgency)
    }

    /// Delivers what waits if the subscriber has nothing else to do.
    fn deliver(&self) {
        let Some(deliver) = &self.deliver else { return };
        let is_ready = lock(&self.queue).is_ready();
        if is_ready {
            deliver(self);
        }
    }

    /// The next event, in order.
    pub async fn next(&self) -> Arc<Recorded> {
        loop {
            let arrived = self.arrived.notified();
            if let Some(event) = lock(&self.queue).pop(&self.name) {
                return event;
            }
            arrived.await;
        }
    }
}

/// Takes a subscriber's next batch and delivers it.
type Deliver = Box<dyn Fn(&Subscriber) + Send + Sync>;

/// Looks at every event as it is emitted, in the emitter's thread. It must be quick and emit nothing.
type Tap = Box<dyn Fn(&Event) + Send + Sync>;

struct State {
    journal: Journal,
    last_recorded: Option<String>,
    subscribers: Vec<Weak<Subscriber>>,
    taps: Vec<Tap>,
    clock: Clock,
}

/// Tells the time as text. Many events come in one millisecond, and making the text takes longer than
/// looking at the clock.
#[derive(Default)]
struct Clock {
    millisecond: i64,
    text: String,
}

impl Clock {
    fn now(&mut self) -> String {
        let now = chrono::Utc::now();
        if now.timestamp_millis() != self.millisecond {
            self.millisecond = now.timestamp_millis();
            self.text = now.to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
        }
        self.text.clone()
    }
}

struct Inner {
    state: Mutex<State>,
    /// Something waits for a subscriber that takes batches.
    arrived: Arc<Notify>,
    /// A subscriber that takes batches has seen everything.
    drained: Notify,
}

/// The events of one session. Clones are the same bus.
#[derive(Clone)]
pub struct Bus(Arc<Inner>);

impl Bus {
    /// A bus that records into the journal. Must be made inside a tokio runtime.
    pub fn new(journal: Journal) -> Self {
        let last_recorded = journal.last_id();
        let state = State {
            journal,
            last_recorded,
            subscribers: Vec::new(),
            taps: Vec::new(),
            clock: Clock::default(),
        };
        let arrived = Arc::new(Notify::new());
        let inner = Arc::new(Inner {
            state: Mutex::new(state),
            arrived: arrived.clone(),
            drained: Notify::new(),
        });
        tokio::spawn(pump(Arc::downgrade(&inner), arrived));
        Self(inner)
    }

    /// Makes an event known; returns its id.
    pub fn emit(&self, kind: &str, data: impl Into<EventData>) -> String {
        self.publish(kind, data.into(), false)
    }

    /// Makes an event known without recording it; returns its id.
    pub fn emit_ephemeral(&self, kind: &str, data: impl Into<EventData>) -> String {
        self.publish(kind, data.into(), true)
    }

    /// Adds a tap.
    pub fn tap(&self, tap: impl Fn(&Event) + Send + Sync + 'static) {
        lock(&self.0.state).taps.push(Box::new(tap));
    }

    /// Adds a subscriber that takes events one by one.
    pub fn subscribe(&self, name: &str, filter: Filter) -> Arc<Subscriber> {
        self.add(name, filter, None)
    }

    /// Adds a subscriber that takes batches of events, each after it has [`Bus::seen`] the one before.
    pub fn subscribe_batches(
        &self,
        name: &str,
        deliver: impl Fn(&Subscriber) + Send + Sync + 'static,
    ) -> Arc<Subscriber> {
        self.add(name, Filter::default(), Some(Box::new(deliver)))
    }

    /// A subscriber has done with a batch. It gets what came meanwhile.
    pub fn seen(&self, subscriber: &Subscriber) {
        let is_done = {
            let mut queue = lock(&subscriber.queue);
            queue.seen();
            queue.is_done()
        };
        if is_done {
            self.0.drained.notify_waiters();
        } else {
            subscriber.deliver();
        }
    }

    /// A subscriber has gone; nobody waits for it any more.
    pub fn remove(&self, gone: &Arc<Subscriber>) {
        let is_gone = |one: &Weak<Subscriber>| std::ptr::eq(one.as_ptr(), Arc::as_ptr(gone));
        lock(&self.0.state).subscribers.retain(|subscriber| !is_gone(subscriber));
        self.0.drained.notify_waiters();
    }

    /// Waits until those who take batches have seen every event so far.
    pub async fn drained(&self) {
        loop {
            let drained = self.0.drained.notified();
            tokio::pin!(drained);
            drained.as_mut().enable();
            let waiting = lock(&self.0.state).subscribers.iter().filter_map(Weak::upgrade).any(
                |subscriber| subscriber.deliver.is_some() && !lock(&subscriber.queue).is_done(),
            );
            if !waiting {
                return;
            }
            drained.await;
        }
    }

    /// Everything that was recorded, oldest first.
    pub fn recorded(&self) -> Result<Vec<Value>, JournalError> {
        let reader = {
            let mut state = lock(&self.0.state);
            state.journal.flush();
            state.journal.reader()
        };
        // The file is read without the lock: a long history must not hold up the session.
        reader.read()
    }

    /// Makes sure that what was recorded survives a loss of power.
    pub async fn sync(&self) {
        let file = {
            let mut state = lock(&self.0.state);
            state.journal.flush();
            state.journal.file()
        };
        if let Some(file) = file {
            // A disk that cannot keep its promise is not the session's to repair.
            let _ = tokio::task::spawn_blocking(move || file.sync_data()).await;
        }
    }

    /// Lets another program record the session.
    pub fn release(&self) {
        if let Some(file) = lock(&self.0.state).journal.file() {
            // Not being able to is the same as not having been asked: the lock ends with the program.
            let _ = file.unlock();
        }
    }

    fn add(&self, name: &str, filter: Filter, deliver: Option<Deliver>) -> Arc<Subscriber> {
        let subscriber = Arc::new(Subscriber {
            name: name.to_owned(),
            filter: Mutex::new(filter),
            queue: Mutex::default(),
            deliver,
            arrived: Notify::new(),
        });
        let mut state = lock(&self.0.state);
        state.subscribers.retain(|subscriber| subscriber.strong_count() > 0);
        state.subscribers.push(Arc::downgrade(&subscriber));
        subscriber
    }

    fn publish(&self, kind: &str, data: EventData, ephemeral: bool) -> String {
        let mut late = Vec::new();
        // Somebody has to write what is not written at once.
        let mut waiting = is_detail(kind);
        let id = {
            let mut state = lock(&self.0.state);
            let recorded = state.record(kind, data, ephemeral);
            for tap in &state.taps {
                tap(&recorded.event);
            }
            for subscriber in state.subscribers.iter().filter_map(Weak::upgrade) {
                if !lock(&subscriber.filter).wants(kind) {
                    continue;
                }
                let mut queue = lock(&subscriber.queue);
                if queue.push(&recorded) == queue::Pushed::FirstDropped {
                    late.push(subscriber.name.clone());
                }
                // One that is busy gets it when it has seen what it has.
                waiting |= subscriber.deliver.is_some() && queue.is_ready();
                subscriber.arrived.notify_one();
            }
            recorded.event.id.clone()
        };
        if waiting {
            self.0.arrived.notify_one();
        }
        for name in late {
            let message = format!(
                "{name} does not keep up with the session's events; the newest are dropped until it does"
            );
            self.emit_ephemeral(
                "session.warning",
                json!({ "warningType": "events_dropped", "message": message }),
            );
        }
        id
    }
}

impl State {
    fn record(&mut self, kind: &str, data: EventData, ephemeral: bool) -> Arc<Recorded> {
        let event = Event {
            kind: kind.to_owned(),
            data,
            id: crate::ids::unique(),
            timestamp: self.clock.now(),
            parent_id: self.last_recorded.clone(),
            ephemeral,
        };
        // Plain strings and JSON values always have a JSON text.
        let text = serde_json::to_string(&event).unwrap_or_default();
        let recorded = Arc::new(Recorded { event, text });
        if !ephemeral {
            self.last_recorded = Some(recorded.event.id.clone());
            self.journal.append(&recorded, is_detail(kind));
        }
        recorded
    }
}

/// Whether an event only says how another came about. There are many such, and they need not be on disk
/// before anybody hears of them.
fn is_detail(kind: &str) -> bool {
    kind.starts_with("hook.")
}

impl Drop for Inner {
    fn drop(&mut self) {
        lock(&self.state).journal.flush();
        self.arrived.notify_one();
    }
}

/// Hands out batches until the bus is gone. An event that comes while a subscriber is at rest is delivered as soon as this
/// task runs, with what has come by then; while a subscriber is busy, [`Bus::seen`] takes care of it.
async fn pump(bus: Weak<Inner>, arrived: Arc<Notify>) {
    let mut details_due = None;
    loop {
        let is_due = match details_due {
            None => {
                arrived.notified().await;
                false
            }
            Some(due) => tokio::time::timeout_at(due, arrived.notified()).await.is_err(),
        };
        let Some(inner) = bus.upgrade() else { return };
        if is_due {
            details_due = None;
            lock(&inner.state).journal.flush();
        } else {
            let has_details = hand_out(&inner);
            if has_details && details_due.is_none() {
                details_due = Some(tokio::time::Instant::now() + DETAIL_DELAY);
            }
        }
    }
}

/// Gives every subscriber that is ready its next batch; says whether details wait to be written.
fn hand_out(inner: &Inner) -> bool {
    let (subscribers, has_details) = {
        let state = lock(&inner.state);
        let subscribers: Vec<_> = state.subscribers.iter().filter_map(Weak::upgrade).collect();
        (subscribers, state.journal.is_waiting())
    };
    subscribers.iter().for_each(|subscriber| subscriber.deliver());
    has_details
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is under these locks is whole after every statement, so also after a panic.
    mutex.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bus() -> Bus {
        Bus::new(Journal::in_memory())
    }

    #[tokio::test]
    async fn subscribers_get_what_they_want_in_order() {
        let bus = bus();
        let mut filter = Filter::default();
        filter.add("a");
        let some = bus.subscribe("some", filter);
        let all = bus.subscribe("all", Filter::all());
        bus.emit("a", json!(1));
        bus.emit("b", json!(2));
        bus.emit("a", json!(3));
        let mut seen = Vec::new();
        for _ in 0..2 {
            seen.push(some.next().await.event.data.value().clone());
        }
        for _ in 0..3 {
            seen.push(all.next().await.event.data.value().clone());
        }
        assert_eq!(seen, [json!(1), json!(3), json!(1), json!(2), json!(3)]);
    }

    #[tokio::test]
    async fn an_events_parent_is_the_last_one_recorded() {
        let bus = bus();
        let all = bus.subscribe("all", Filter::all());
        let first = bus.emit("a", Value::Null);
        bus.emit_ephemeral("b", Value::Null);
        bus.emit("c", Value::Null);
        let mut parents = Vec::new();
        for _ in 0..3 {
            parents.push(all.next().await.event.parent_id.clone());
        }
        assert_eq!(parents, [None, Some(first.clone()), Some(first)]);
        assert_eq!(bus.recorded().unwrap().len(), 2);
    }

    #[tokio::test]
    async fn a_batch_comes_only_after_the_one_before_was_seen() {
        let bus = bus();
        let (sender, mut batches) = tokio::sync::mpsc::unbounded_channel();
        let deliver = move |subscriber: &Subscriber| {
            if let Some(batch) = subscriber.take_batch(Urgency::WhenIdle) {
                sender.send(batch).unwrap();
            }
        };
        let subscriber = bus.subscribe_batches("x", deliver);
        subscriber.change(|filter| filter.add("*"));
        bus.emit("a", Value::Null);
        let first = batches.recv().await.unwrap();
        assert!(first.starts_with(r#"[{"type":"a""#), "{first}");
        bus.emit("b", Value::Null);
        bus.emit("c", Value::Null);
        hand_out(&bus.0);
        assert!(batches.try_recv().is_err());
        bus.seen(&subscriber);
        let second: Vec<Value> = serde_json::from_str(&batches.recv().await.unwrap()).unwrap();
        assert_eq!(second.len(), 2);
    }

    #[tokio::test]
    async fn one_that_does_not_keep_up_loses_events_and_is_told_where() {
        let bus = bus();
        let witness = bus.subscribe("witness", {
            let mut filter = Filter::default();
            filter.add("session.warning");
            filter
        });
        let mut filter = Filter::default();
        filter.add("tick");
        let slow = bus.subscribe("project:slow", filter);
        for _ in 0..queue::MAX_QUEUED_EVENTS + 5 {
            bus.emit_ephemeral("tick", Value::Null);
        }
        let warning = witness.next().await;
        assert!(warning.event.data["message"].as_str().unwrap().starts_with("project:slow does"));
        for _ in 0..queue::MAX_QUEUED_EVENTS {
            assert_eq!(slow.next().await.event.kind, "tick");
        }
        let gap = slow.next().await;
        assert_eq!(gap.event.data["warningType"], "events_dropped");
        assert_eq!(gap.event.data["count"], 5);
        bus.emit_ephemeral("tick", Value::Null);
        assert_eq!(slow.next().await.event.kind, "tick");
    }
}
