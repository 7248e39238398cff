//! How much an extension may log.
//!
//! A log is kept, shown and written to disk by the session; an extension that logs without end would cost it
//! its time. What is too much is dropped and counted; what is far too much ends the extension.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use crate::background;
use crate::limits;
use crate::limits::LOG_BURST_LINES;
use crate::limits::LOG_FLOOD_LINES;
use crate::limits::LOG_LINES_PER_SECOND;
use crate::limits::LOG_QUIET;
use crate::limits::MAX_OUTPUT_LINE_BYTES;
use crate::message::Breach;
use crate::message::FromIsolate;
use crate::message::LogLevel;
use crate::message::LogRecord;
use crate::outbox::Outbox;
use crate::terminator::Terminator;

/// What becomes of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// They are kept.
    Admit,
    /// They are dropped.
    Drop,
    /// They are dropped, and they are so many that the extension ends. Said once.
    Flood,
}

/// A bucket of tokens, one for each line; it fills at a steady rate.
pub struct LogRate(Mutex<Bucket>);

struct Bucket {
    per_second: u32,
    tokens: f64,
    filled_at: Instant,
    /// Dropped and not yet reported.
    unreported: u64,
    /// Dropped since there was a quiet second.
    flood: u64,
    last_drop: Instant,
    is_flooded: bool,
}

impl LogRate {
    /// A full bucket.
    pub fn new(per_second: u32) -> Self {
        let now = Instant::now();
        Self(Mutex::new(Bucket {
            per_second,
            tokens: f64::from(LOG_BURST_LINES),
            filled_at: now,
            unreported: 0,
            flood: 0,
            last_drop: now,
            is_flooded: false,
        }))
    }

    /// Sets how many lines a second are kept in the long run.
    pub fn set_rate(&self, per_second: u32) {
        if let Ok(mut bucket) = self.0.lock() {
            bucket.per_second = per_second;
        }
    }

    /// Decides about so many lines.
    pub fn admit(&self, lines: u32) -> Admission {
        self.admit_at(lines, Instant::now())
    }

    /// The lines that were dropped since this was last asked, and the rate.
    pub fn take_dropped(&self) -> Option<(u64, u32)> {
        let mut bucket = self.0.lock().ok()?;
        let dropped = std::mem::take(&mut bucket.unreported);
        (dropped > 0).then_some((dropped, bucket.per_second))
    }

    fn admit_at(&self, lines: u32, now: Instant) -> Admission {
        // The lock is poisoned only if we panicked; then logging goes on.
        self.0.lock().map_or(Admission::Admit, |mut bucket| bucket.admit(lines, now))
    }
}

impl Bucket {
    fn admit(&mut self, lines: u32, now: Instant) -> Admission {
        let elapsed = now.saturating_duration_since(self.filled_at).as_secs_f64();
        let room = f64::from(LOG_BURST_LINES.max(self.per_second));
        self.tokens = (self.tokens + elapsed * f64::from(self.per_second)).min(room);
        self.filled_at = now;
        if f64::from(lines) <= self.tokens {
            self.tokens -= f64::from(lines);
            return Admission::Admit;
        }
        if now.saturating_duration_since(self.last_drop) >= LOG_QUIET {
            self.flood = 0;
        }
        self.last_drop = now;
        self.unreported += u64::from(lines);
        self.flood += u64::from(lines);
        if self.flood < LOG_FLOOD_LINES || self.is_flooded {
            return Admission::Drop;
        }
        self.is_flooded = true;
        Admission::Flood
    }
}

/// The way of everything an isolate says; what it logs has to pass.
#[derive(Clone)]
pub struct LogGate(Arc<Gate>);

struct Gate {
    rate: LogRate,
    outbox: Outbox,
    terminator: Terminator,
    /// A report about dropped lines is on its way.
    is_reporting: AtomicBool,
}

impl LogGate {
    /// A gate with the usual rate.
    pub fn new(outbox: Outbox, terminator: Terminator) -> Self {
        let (rate, is_reporting) = (LogRate::new(LOG_LINES_PER_SECOND), AtomicBool::new(false));
        Self(Arc::new(Gate { rate, outbox, terminator, is_reporting }))
    }

    /// Sets how many lines a second are kept in the long run.
    pub fn set_rate(&self, per_second: u32) {
        self.0.rate.set_rate(per_second);
    }

    /// Passes a message on, unless it is one log record too many, or the reply of an extension that was terminated.
    pub fn send(&self, message: FromIsolate) {
        // A handler that the engine stops may look to the SDK like one that threw nothing in particular. The
        // call is answered by the end of the extension, which says why.
        if matches!(message, FromIsolate::Reply { .. }) && self.0.terminator.reason().is_some() {
            return;
        }
        let FromIsolate::Log(record) = &message else { return self.0.outbox.send(message) };
        match self.0.rate.admit(count_lines(&record.text)) {
            Admission::Admit => self.0.outbox.send(message),
            Admission::Drop => self.report_later(),
            Admission::Flood => {
                self.report_later();
                self.0.terminator.breach(self.0.breach());
            }
        }
    }

    /// Says how many lines were dropped, if any were and it was not said yet.
    pub fn report(&self) {
        if let Some((dropped, per_second)) = self.0.rate.take_dropped() {
            let text = format!("{dropped} log lines were dropped: more than {per_second} a second");
            let record = LogRecord { level: LogLevel::Warning, text };
            self.0.outbox.send(FromIsolate::Log(record));
        }
    }

    /// One warning a second at most: in a flood, warnings would be a flood too.
    fn report_later(&self) {
        if self.0.is_reporting.swap(true, Relaxed) {
            return;
        }
        let gate = self.clone();
        background::spawn(async move {
            tokio::time::sleep(LOG_QUIET).await;
            gate.0.is_reporting.store(false, Relaxed);
            // At its end an isolate reports itself; nothing may follow.
            if !gate.0.terminator.is_over() {
                gate.report();
            }
        });
    }
}

impl Gate {
    fn breach(&self) -> Breach {
        let per_second = self.terminator.limits().map(|limits| limits.log_lines_per_second);
        let allowed = format!(
            "it logged more than {} lines a second, and {LOG_FLOOD_LINES} lines were dropped without a \
             second of quiet",
            per_second.unwrap_or(LOG_LINES_PER_SECOND)
        );
        limits::breach("log-lines-per-second", allowed)
    }
}

/// Lines of a text; a very long one counts as several.
fn count_lines(text: &str) -> u32 {
    let breaks = text.bytes().filter(|&byte| byte == b'\n').count();
    let lines = 1 + breaks + text.len() / MAX_OUTPUT_LINE_BYTES;
    u32::try_from(lines).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::message::EndReason;

    #[test]
    fn a_burst_is_kept_and_what_is_more_is_dropped_and_counted() {
        let rate = LogRate::new(10);
        let now = Instant::now();
        assert_eq!(rate.admit_at(LOG_BURST_LINES, now), Admission::Admit);
        assert_eq!(rate.admit_at(1, now), Admission::Drop);
        assert_eq!(rate.admit_at(2, now), Admission::Drop);
        assert_eq!(rate.take_dropped(), Some((3, 10)));
        assert_eq!(rate.take_dropped(), None);
    }

    #[test]
    fn time_fills_the_bucket_at_the_rate_that_was_set() {
        let rate = LogRate::new(10);
        let now = Instant::now();
        assert_eq!(rate.admit_at(LOG_BURST_LINES, now), Admission::Admit);
        rate.set_rate(100);
        let later = now + Duration::from_secs(1);
        assert_eq!(rate.admit_at(101, later), Admission::Drop);
        assert_eq!(rate.admit_at(100, later), Admission::Admit);
        assert_eq!(rate.admit_at(1, later), Admission::Drop);
    }

    #[test]
    fn the_bucket_holds_no_more_than_a_burst() {
        let rate = LogRate::new(1);
        let later = Instant::now() + Duration::from_secs(1_000_000);
        assert_eq!(rate.admit_at(LOG_BURST_LINES + 1, later), Admission::Drop);
        assert_eq!(rate.admit_at(LOG_BURST_LINES, later), Admission::Admit);
    }

    #[test]
    fn a_flood_is_told_once() {
        let rate = LogRate::new(1);
        let now = Instant::now();
        let flood = u32::try_from(LOG_FLOOD_LINES).unwrap();
        assert_eq!(rate.admit_at(flood - 1, now), Admission::Drop);
        assert_eq!(rate.admit_at(LOG_BURST_LINES + 1, now), Admission::Flood);
        assert_eq!(rate.admit_at(LOG_BURST_LINES + 1, now), Admission::Drop);
    }

    #[test]
    fn a_quiet_second_ends_a_flood() {
        let rate = LogRate::new(1);
        let now = Instant::now();
        let flood = u32::try_from(LOG_FLOOD_LINES).unwrap();
        assert_eq!(rate.admit_at(flood - 1, now), Admission::Drop);
        let later = now + LOG_QUIET;
        assert_eq!(rate.admit_at(LOG_BURST_LINES + 10, later), Admission::Drop);
    }

    #[test]
    fn a_terminated_extension_replies_to_no_call() {
        let (outbox, terminator) = (Outbox::default(), Terminator::default());
        let replies = Arc::new(Mutex::new(Vec::new()));
        let sent = replies.clone();
        outbox.connect(Box::new(move |message| {
            if let FromIsolate::Reply { call, .. } = message {
                sent.lock().unwrap().push(call);
            }
        }));
        let gate = LogGate::new(outbox, terminator.clone());
        let reply = |call| FromIsolate::Reply { call, result: Ok("null".to_owned()) };
        gate.send(reply(1));
        terminator.terminate(EndReason::Stopped);
        gate.send(reply(2));
        assert_eq!(*replies.lock().unwrap(), [1]);
    }

    #[test]
    fn breaks_and_length_count() {
        assert_eq!(count_lines("one"), 1);
        assert_eq!(count_lines("one\ntwo\nthree"), 3);
        assert_eq!(count_lines(&"x".repeat(3 * MAX_OUTPUT_LINE_BYTES)), 4);
    }
}
