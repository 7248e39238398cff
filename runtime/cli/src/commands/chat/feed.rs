//! The events of a session on their way to the terminal.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use tenon_host::events::Event;
use tenon_host::session::Tap;
use tokio::sync::mpsc;

/// The most events that wait to be printed. A terminal keeps up with any agent; one that was stopped does
/// not, and must not make us grow.
const MAX_WAITING: usize = 20_000;

/// Events that nobody sees on a terminal.
const UNSEEN: [&str; 6] =
    ["hook.", "external_tool.", "permission.", "elicitation.", "user_input.", "acp."];

/// Events from the first of a session on. Whoever emits them never waits; what there is no room for is
/// counted.
pub struct Feed {
    events: mpsc::UnboundedReceiver<Event>,
    waiting: Arc<Waiting>,
}

#[derive(Default)]
struct Waiting {
    count: AtomicUsize,
    lost: AtomicUsize,
}

impl Feed {
    /// A feed, and what the session gives every event to.
    pub fn new() -> (Self, Tap) {
        let (sender, events) = mpsc::unbounded_channel();
        let waiting = Arc::new(Waiting::default());
        let counted = waiting.clone();
        let tap: Tap = Arc::new(move |event: &Event| {
            if UNSEEN.iter().any(|prefix| event.kind.starts_with(prefix)) {
                return;
            }
            if counted.count.load(Ordering::Relaxed) >= MAX_WAITING {
                counted.lost.fetch_add(1, Ordering::Relaxed);
                return;
            }
            counted.count.fetch_add(1, Ordering::Relaxed);
            // Whoever closes a conversation may not want to see its end.
            let _ = sender.send(without_result(event));
        });
        (Self { events, waiting }, tap)
    }

    /// The next event. Never comes back when there will be none.
    pub async fn next(&mut self) -> Event {
        match self.events.recv().await {
            Some(event) => self.taken(event),
            None => std::future::pending().await,
        }
    }

    /// The next event, if it is there.
    pub fn try_next(&mut self) -> Option<Event> {
        let event = self.events.try_recv().ok()?;
        Some(self.taken(event))
    }

    fn taken(&mut self, event: Event) -> Event {
        self.waiting.count.fetch_sub(1, Ordering::Relaxed);
        event
    }

    /// How many events were lost since this was last asked.
    pub fn lost(&self) -> usize {
        self.waiting.lost.swap(0, Ordering::Relaxed)
    }
}

/// An event as it is printed: what a tool gave back is long, and not shown.
fn without_result(event: &Event) -> Event {
    if event.kind != "tool.execution_complete" {
        return event.clone();
    }
    let shown = ["toolCallId", "toolName", "success", "error", "suppressOutput"];
    Event {
        kind: event.kind.clone(),
        data: event.data.only(&shown).into(),
        id: event.id.clone(),
        timestamp: event.timestamp.clone(),
        parent_id: event.parent_id.clone(),
        ephemeral: event.ephemeral,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use serde_json::json;

    use super::*;

    #[test]
    fn events_come_in_order_without_what_is_not_shown() {
        let (mut feed, tap) = Feed::new();
        tap(&Event::for_test("a", json!(1)));
        tap(&Event::for_test("hook.start", json!(2)));
        let result = json!({ "toolName": "t", "success": true, "result": { "content": "long" } });
        tap(&Event::for_test("tool.execution_complete", result));
        assert_eq!(feed.try_next().unwrap().data, json!(1));
        assert_eq!(feed.try_next().unwrap().data, json!({ "toolName": "t", "success": true }));
        assert!(feed.try_next().is_none());
    }

    #[test]
    fn only_so_many_wait_and_the_rest_is_counted() {
        let (mut feed, tap) = Feed::new();
        for _ in 0..MAX_WAITING + 5 {
            tap(&Event::for_test("a", Value::Null));
        }
        assert_eq!(feed.lost(), 5);
        assert_eq!(feed.lost(), 0);
        feed.try_next().unwrap();
        tap(&Event::for_test("b", Value::Null));
        assert_eq!(std::iter::from_fn(|| feed.try_next()).count(), MAX_WAITING);
    }
}
