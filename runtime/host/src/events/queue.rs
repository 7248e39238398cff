//! What one subscriber has not taken yet, within bounds.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::json;

use super::Event;
use super::Recorded;

/// The most events that wait for one subscriber: at ten thousand a second, more than a second's worth.
pub const MAX_QUEUED_EVENTS: usize = 16_384;

/// The most text that waits for one subscriber. Events are shared, so this bounds what a single slow
/// subscriber keeps alive.
pub const MAX_QUEUED_BYTES: usize = 32 * 1024 * 1024;

/// The most events in one batch: what a handler of a hundred microseconds gets through in a tenth of a
/// second, so that calls to the same extension need not wait longer.
const MAX_BATCH_EVENTS: usize = 1_024;

/// The most text in one batch, unless a single event is longer.
const MAX_BATCH_BYTES: usize = 1024 * 1024;

/// Events for one subscriber. When it is full, new events are dropped and counted until there is room;
/// then a warning takes their place.
#[derive(Default)]
pub struct Queue {
    events: VecDeque<Arc<Recorded>>,
    bytes: usize,
    dropped: u64,
    /// Batches that were handed out and not reported seen.
    in_flight: u32,
}

/// When a batch may be taken although others were not reported seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// Not: what comes meanwhile makes up the next batch.
    WhenIdle,
    /// One more may be on its way, because a call follows that must not overtake it.
    BeforeCall,
}

/// Batches on their way to a subscriber that is being called, at most: what bounds how much it has to get through before
/// it comes to the call, and how much of the queue waits elsewhere.
const MAX_IN_FLIGHT_BEFORE_CALL: u32 = 2;

/// What became of an event.
#[derive(Debug, PartialEq, Eq)]
pub enum Pushed {
    /// It waits.
    Queued,
    /// There was no room, for the first time since there last was.
    FirstDropped,
    /// There still was no room.
    Dropped,
}

impl Queue {
    /// Adds an event, if there is room.
    pub fn push(&mut self, event: &Arc<Recorded>) -> Pushed {
        if self.dropped > 0 || self.is_full() {
            self.dropped += 1;
            return if self.dropped == 1 { Pushed::FirstDropped } else { Pushed::Dropped };
        }
        self.bytes += event.text.len();
        self.events.push_back(event.clone());
        Pushed::Queued
    }

    /// Takes the oldest event.
    pub fn pop(&mut self, name: &str) -> Option<Arc<Recorded>> {
        let event = self.events.pop_front();
        if let Some(event) = &event {
            self.bytes -= event.text.len();
        }
        self.mark_gap(name);
        event
    }

    /// Takes a batch of the oldest events as a JSON array, if those before were seen.
    pub fn take_batch(&mut self, name: &str, urgency: Urgency) -> Option<String> {
        let most = match urgency {
            Urgency::WhenIdle => 1,
            Urgency::BeforeCall => MAX_IN_FLIGHT_BEFORE_CALL,
        };
        if self.in_flight >= most || self.events.is_empty() {
            return None;
        }
        let mut batch = String::with_capacity(self.bytes.min(MAX_BATCH_BYTES) + 2);
        batch.push('[');
        for count in 0..MAX_BATCH_EVENTS {
            let Some(event) = self.events.front() else { break };
            if count > 0 {
                if batch.len() + event.text.len() > MAX_BATCH_BYTES {
                    break;
                }
                batch.push(',');
            }
            batch.push_str(&event.text);
            self.bytes -= event.text.len();
            self.events.pop_front();
        }
        batch.push(']');
        self.in_flight += 1;
        self.mark_gap(name);
        Some(batch)
    }

    /// The oldest batch on its way was seen.
    pub fn seen(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Whether nothing waits and everything handed out was seen.
    pub fn is_done(&self) -> bool {
        self.events.is_empty() && self.in_flight == 0
    }

    /// Whether a batch can be taken that waits for nothing.
    pub fn is_ready(&self) -> bool {
        !self.events.is_empty() && self.in_flight == 0
    }

    fn is_full(&self) -> bool {
        self.events.len() >= MAX_QUEUED_EVENTS || self.bytes >= MAX_QUEUED_BYTES
    }

    /// Says where events are missing, as soon as there is room to say it.
    fn mark_gap(&mut self, name: &str) {
        if self.dropped == 0 || self.is_full() {
            return;
        }
        let count = std::mem::take(&mut self.dropped);
        let event = Event {
            kind: "session.warning".to_owned(),
            data: json!({
                "warningType": "events_dropped",
                "message": format!("{count} events were dropped because {name} did not keep up"),
                "count": count,
            })
            .into(),
            id: crate::ids::unique(),
            timestamp: chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
            parent_id: None,
            ephemeral: true,
        };
        let text = serde_json::to_string(&event).unwrap_or_default();
        self.bytes += text.len();
        self.events.push_back(Arc::new(Recorded { event, text }));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn event(text: &str) -> Arc<Recorded> {
        let event = Event {
            kind: "x".to_owned(),
            data: Value::Null.into(),
            id: String::new(),
            timestamp: String::new(),
            parent_id: None,
            ephemeral: true,
        };
        Arc::new(Recorded { event, text: text.to_owned() })
    }

    #[test]
    fn long_events_fill_the_queue_before_many_do() {
        let mut queue = Queue::default();
        let long = event(&"x".repeat(MAX_QUEUED_BYTES / 2));
        assert_eq!(queue.push(&long), Pushed::Queued);
        assert_eq!(queue.push(&long), Pushed::Queued);
        assert_eq!(queue.push(&long), Pushed::FirstDropped);
        assert_eq!(queue.push(&long), Pushed::Dropped);
    }

    #[test]
    fn a_batch_is_cut_at_its_size_but_never_empty() {
        let mut queue = Queue::default();
        queue.push(&event(&"1".repeat(MAX_BATCH_BYTES + 1)));
        queue.push(&event("2"));
        let take = |queue: &mut Queue| queue.take_batch("x", Urgency::WhenIdle);
        assert_eq!(take(&mut queue).unwrap().len(), MAX_BATCH_BYTES + 3);
        assert_eq!(take(&mut queue), None);
        queue.seen();
        assert_eq!(take(&mut queue).unwrap(), "[2]");
        queue.seen();
        for _ in 0..=MAX_BATCH_EVENTS {
            queue.push(&event("3"));
        }
        assert_eq!(take(&mut queue).unwrap().matches('3').count(), MAX_BATCH_EVENTS);
    }

    #[test]
    fn before_a_call_one_more_batch_is_on_its_way_and_no_third() {
        let mut queue = Queue::default();
        let mut batches = Vec::new();
        for number in ["1", "2", "3"] {
            queue.push(&event(number));
            batches.push(queue.take_batch("x", Urgency::BeforeCall));
        }
        assert_eq!(batches, [Some("[1]".to_owned()), Some("[2]".to_owned()), None]);
        queue.seen();
        // One is still on its way.
        assert!(!queue.is_ready() && queue.take_batch("x", Urgency::WhenIdle).is_none());
        queue.seen();
        assert!(queue.is_ready());
        assert_eq!(queue.take_batch("x", Urgency::WhenIdle).unwrap(), "[3]");
    }
}
