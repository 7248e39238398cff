//! Events on their way from the session to standard output: none is lost, and only so much waits.
//!
//! The session's own subscribers lose events when they do not keep up, which is right for extensions and
//! wrong for a script that reads them. So a tap puts every event here, and a thread of its own prints it.
//! When too much waits, whoever emits waits too: the agent's output is not read any more, and a flood stops
//! at the agent. What is printed needs nothing of the session, so this cannot lock up; it lasts as long as
//! nobody reads standard output.

use std::collections::VecDeque;
use std::io::Error;
use std::io::ErrorKind;

use parking_lot::Condvar;
use parking_lot::Mutex;
use parking_lot::MutexGuard;
use serde_json::Value;
use tenon_host::events::Event;
use tokio::sync::Notify;

/// The most that waits to be printed, in bytes, beside one event that may be longer: some seconds of what the
/// fastest agent says, and little enough to keep in memory.
pub const MAX_WAITING_BYTES: usize = 32 * 1024 * 1024;

/// How much is printed at once, in bytes: enough to make few system calls, not so much that it shows.
const BATCH_BYTES: usize = 256 * 1024;

/// What a number, a name or a pair of brackets takes beside its text, in bytes. An estimate.
const NODE_BYTES: usize = 32;

/// What waits to be printed.
pub struct Backlog {
    limit: usize,
    state: Mutex<State>,
    /// Something came, or nothing more will.
    arrived: Condvar,
    /// Something was taken.
    taken: Condvar,
    /// It cannot be printed any more.
    given_up: Notify,
}

#[derive(Default)]
struct State {
    events: VecDeque<(Event, usize)>,
    bytes: usize,
    /// Nothing more will come.
    closed: bool,
    /// Somebody wants the program to end.
    interrupted: bool,
    /// Why it cannot be printed any more.
    problem: Option<(ErrorKind, String)>,
}

impl Backlog {
    /// One that holds so many bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            state: Mutex::default(),
            arrived: Condvar::new(),
            taken: Condvar::new(),
            given_up: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Adds an event, as soon as there is room. After [`Backlog::interrupt`] nobody waits for room, and what is not recorded
    /// is not printed.
    pub fn push(&self, event: &Event) {
        if event.ephemeral && self.is_interrupted() {
            return;
        }
        let bytes = weight(event);
        let event = event.clone();
        let is_full = |state: &mut State| {
            state.bytes >= self.limit && state.problem.is_none() && !state.interrupted
        };
        let mut state = self.lock();
        self.taken.wait_while(&mut state, is_full);
        if state.problem.is_some() || state.closed || (state.interrupted && event.ephemeral) {
            return;
        }
        state.bytes += bytes;
        state.events.push_back((event, bytes));
        self.arrived.notify_one();
    }

    /// The next events in order, once there are any; `None` when the last was taken.
    pub fn take(&self) -> Option<Vec<Event>> {
        let is_empty = |state: &mut State| state.events.is_empty() && !state.closed;
        let mut state = self.lock();
        self.arrived.wait_while(&mut state, is_empty);
        let mut batch = Vec::new();
        let mut taken = 0;
        while taken < BATCH_BYTES
            && let Some((event, bytes)) = state.events.pop_front()
        {
            taken += bytes;
            batch.push(event);
        }
        state.bytes -= taken;
        self.taken.notify_all();
        (!batch.is_empty()).then_some(batch)
    }

    /// Somebody wants the program to end: what an agent says in pieces is not printed any more. The rest is what it has
    /// done, and the end of it.
    pub fn interrupt(&self) {
        let mut state = self.lock();
        state.interrupted = true;
        state.events.retain(|(event, _)| !event.ephemeral);
        state.bytes = state.events.iter().map(|(_, bytes)| bytes).sum();
        drop(state);
        self.taken.notify_all();
    }

    /// Whether somebody wants the program to end.
    pub fn is_interrupted(&self) -> bool {
        self.lock().interrupted
    }

    /// Nothing more will come.
    pub fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_one();
    }

    /// It cannot be printed any more: what waits, and what comes, is forgotten.
    pub fn give_up(&self, why: &Error) {
        let mut state = self.lock();
        state.problem = Some((why.kind(), why.to_string()));
        state.events.clear();
        state.bytes = 0;
        drop(state);
        self.taken.notify_all();
        self.given_up.notify_one();
    }

    /// Waits until it cannot be printed any more, and says why. Only one may wait.
    pub async fn given_up(&self) -> Error {
        loop {
            if let Some(problem) = self.problem() {
                return problem;
            }
            self.given_up.notified().await;
        }
    }

    /// Why it cannot be printed any more, if that is so.
    pub fn problem(&self) -> Option<Error> {
        let state = self.lock();
        state.problem.as_ref().map(|(kind, text)| Error::new(*kind, text.clone()))
    }
}

/// About how much memory an event takes, in bytes.
fn weight(event: &Event) -> usize {
    let parent = event.parent_id.as_ref().map_or(0, String::len);
    let envelope = event.kind.len() + event.id.len() + event.timestamp.len() + parent;
    // What is kept as a text is not read to be weighed: this runs under the event bus's lock.
    let data =
        event.data.text().map_or_else(|| weight_of(&event.data), |text| NODE_BYTES + text.len());
    NODE_BYTES + envelope + data
}

fn weight_of(value: &Value) -> usize {
    let inner = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight_of).sum(),
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| name.len() + weight_of(field)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    NODE_BYTES + inner
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc;

    use serde_json::json;
    use tenon_host::events::EventData;

    use super::*;

    fn event(number: usize, text: &str) -> Event {
        let event = Event::for_test("x", json!({ "text": text }));
        Event { id: number.to_string(), ephemeral: true, ..event }
    }

    fn ids(backlog: &Backlog) -> Vec<String> {
        let batches = std::iter::from_fn(|| backlog.take());
        batches.flatten().map(|event| event.id).collect()
    }

    #[test]
    fn every_event_of_a_flood_arrives_in_order_and_only_so_much_waits() {
        let backlog = Arc::new(Backlog::new(64 * 1024));
        let (sender, done) = mpsc::channel();
        let flood = std::thread::spawn({
            let backlog = backlog.clone();
            move || {
                for number in 0..10_000 {
                    backlog.push(&event(number, &"x".repeat(100)));
                    sender.send(()).unwrap();
                }
                backlog.close();
            }
        });
        // As much as fits, and not one more, until somebody takes.
        let one = weight(&event(1_000, &"x".repeat(100)));
        let fit = (64 * 1024) / one;
        for _ in 0..fit {
            done.recv().unwrap();
        }
        let waiting = backlog.lock().bytes;
        assert!(waiting < 64 * 1024 + one, "{waiting}");
        let seen = ids(&backlog);
        flood.join().unwrap();
        assert_eq!(seen, (0..10_000).map(|number| number.to_string()).collect::<Vec<_>>());
        assert_eq!(backlog.lock().bytes, 0);
    }

    #[test]
    fn one_event_that_is_longer_than_the_limit_passes() {
        let backlog = Backlog::new(1024);
        backlog.push(&event(1, &"x".repeat(1024 * 1024)));
        backlog.close();
        assert_eq!(ids(&backlog), ["1"]);
    }

    #[test]
    fn whoever_waits_goes_on_when_nobody_reads_any_more() {
        let backlog = Arc::new(Backlog::new(1));
        backlog.push(&event(1, ""));
        let waiting = std::thread::spawn({
            let backlog = backlog.clone();
            move || backlog.push(&event(2, ""))
        });
        backlog.give_up(&ErrorKind::BrokenPipe.into());
        waiting.join().unwrap();
        backlog.close();
        assert_eq!(ids(&backlog), Vec::<String>::new());
    }

    #[tokio::test]
    async fn giving_up_is_noticed_also_by_who_asks_later() {
        let backlog = Backlog::new(1);
        backlog.give_up(&ErrorKind::StorageFull.into());
        assert_eq!(backlog.given_up().await.kind(), ErrorKind::StorageFull);
    }

    #[test]
    fn an_event_weighs_what_its_text_does() {
        let small = weight(&event(1, ""));
        assert_eq!(weight(&event(1, &"x".repeat(500))), small + 500);
    }

    #[test]
    fn what_is_kept_as_a_text_is_neither_read_to_be_weighed_nor_to_wait() {
        let weigh = |length: usize| {
            let data = EventData::written(&json!({ "arguments": "x".repeat(length) }));
            weight(&Event::for_test("tool.execution_start", data))
        };
        assert_eq!(weigh(500), weigh(0) + 500);
        let event = Event::for_test("hook.start", EventData::written(&json!({ "input": {} })));
        let backlog = Backlog::new(1024);
        backlog.push(&event);
        let waiting = backlog.take().unwrap();
        assert!(!event.data.is_read() && !waiting[0].data.is_read());
    }
}
