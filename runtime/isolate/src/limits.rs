//! Every limit of an isolate, with its unit and its reason.

use std::time::Duration;

use crate::message::IsolateLimits;

/// How long an extension may take from load to `joinSession`. Real ones take milliseconds, those that
/// install packages on first start take seconds; more would hold up a session's first prompt.
pub const START_DEADLINE: Duration = Duration::from_secs(10);

/// How long `SIGTERM` and `exit` handlers may take. The original gives about a second.
pub const STOP_DEADLINE: Duration = Duration::from_secs(1);

/// How long after the stop deadline an isolate that does not answer is terminated from outside.
pub const TERMINATE_GRACE: Duration = Duration::from_millis(250);

/// How long the end of an isolate waits for output that is still in its pipe.
pub const DRAIN_DEADLINE: Duration = Duration::from_millis(100);

/// The largest JavaScript heap of one extension. Extensions use 5 to 20 MB; a bundle with a parser
/// in it uses 100.
pub const HEAP_BYTES: usize = 512 * 1024 * 1024;

/// What is added to a heap that reached its limit, so that the engine can finish the allocation it is in
/// and unwind, instead of aborting the process. It is room, not memory: termination is under way.
pub const HEAP_UNWIND_BYTES: usize = 4 * 1024 * 1024 * 1024;

/// The smallest heap that can be configured; the platform itself needs a good part of it.
pub const MIN_HEAP_BYTES: usize = 32 * 1024 * 1024;

/// Threads for blocking file operations of one extension; idle ones end by themselves.
pub const MAX_BLOCKING_THREADS: usize = 8;

/// How long an idle thread for blocking operations waits for more work.
pub const BLOCKING_THREAD_KEEP_ALIVE: Duration = Duration::from_millis(500);

/// Stack of an isolate's thread. V8 limits JavaScript to just under one megabyte of it; the rest is
/// for ops and for deeply nested values on their way through serde.
pub const THREAD_STACK_BYTES: usize = 8 * 1024 * 1024;

/// The longest line of output that is kept in one piece; a longer one is cut into several.
pub const MAX_OUTPUT_LINE_BYTES: usize = 64 * 1024;

/// The limits of an extension for which nothing else was configured.
pub fn default_limits() -> IsolateLimits {
    IsolateLimits {
        heap_bytes: HEAP_BYTES,
        start_deadline_ms: START_DEADLINE.as_millis() as u64,
        stop_deadline_ms: STOP_DEADLINE.as_millis() as u64,
    }
}
