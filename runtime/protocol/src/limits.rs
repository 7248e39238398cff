//! The limits that session and engine agree on, each with its unit and its reason. Limits that concern the engine
//! alone are in `isolate/src/limits.rs`.

use std::time::Duration;

use crate::message::IsolateLimits;

/// How long an extension may take from load to `joinSession`. Real ones take milliseconds, those that
/// install packages on first start take seconds; more would hold up a session's first prompt.
pub const START_DEADLINE: Duration = Duration::from_secs(10);

/// How long `SIGTERM` and `exit` handlers may take. The original gives about a second.
pub const STOP_DEADLINE: Duration = Duration::from_secs(1);

/// How long after the stop deadline an isolate that does not answer is terminated from outside.
pub const TERMINATE_GRACE: Duration = Duration::from_millis(250);

/// How much longer that takes for one that has not used the CPU time which the stop deadline is meant to give it: on
/// a machine with much to do it may have had no processor to say goodbye on.
pub const STARVED_GRACE: Duration = Duration::from_secs(5);

/// How long the end of a session waits for extensions to take its last events.
pub const LAST_EVENTS_DEADLINE: Duration = Duration::from_secs(3);

/// The largest JavaScript heap of one extension. Extensions use 5 to 20 MB; a bundle with a parser
/// in it uses 100.
pub const HEAP_BYTES: usize = 512 * 1024 * 1024;

/// The smallest heap that can be configured; the platform itself needs a good part of it.
pub const MIN_HEAP_BYTES: usize = 32 * 1024 * 1024;

/// The most memory of one extension outside the heap: array buffers, and Wasm memories. It is not
/// counted with the heap, so without a limit of its own one extension could take all there is.
pub const BUFFER_BYTES: usize = 512 * 1024 * 1024;

/// The most memory of an extension's process: its heap, its buffers, and what native code takes that neither counts, such
/// as databases, compression and workers.
pub const MEMORY_BYTES: usize = 1536 * 1024 * 1024;

/// The most CPU time an extension may use without returning to its event loop. CPU, not wall time: one
/// that waits for a synchronous child process is not in an endless loop. Bundlers and parsers have been
/// seen to compute for seconds; nobody waits longer than this for a tool.
pub const CPU_TIME: Duration = Duration::from_secs(10);

/// The most child processes an extension may have at a time. Real ones have one or two; a build tool
/// started by one may have as many as there are cores.
pub const CHILDREN: usize = 64;

/// The most worker threads an extension may have at a time. Pools have as many as there are cores. Each takes some ten
/// megabytes and several threads before it does anything.
pub const WORKERS: usize = 32;

/// The limit of all memory of an extension, in the user's configuration.
pub const MEMORY_LIMIT: &str = "memory-mb";

/// The limit of its child processes there.
pub const CHILDREN_LIMIT: &str = "children";

/// What an extension's control group may have beyond `memory-mb`, in bytes: memory of the kernel for it, and files it wrote that are
/// not on the disk yet. It also gives the extension's own watchdog the time to say where the extension stands.
pub const GROUP_MEMORY_SLACK_BYTES: usize = 128 * 1024 * 1024;

/// Threads of an extension's own process that its control group has room for: the engine's, those for blocking work, and several for
/// each of its workers.
pub const OWN_TASKS: usize = 512;

/// Threads of one child process that the group has room for. Programs such as node have a dozen, compilers as many as there
/// are processors.
pub const TASKS_OF_A_CHILD: usize = 64;

/// The most processes and threads in the control group of an extension with so many child processes.
pub fn tasks_of_group(children: usize) -> usize {
    OWN_TASKS.saturating_add(children.saturating_mul(TASKS_OF_A_CHILD))
}

/// Log lines per second that are kept in the long run; more are dropped and counted. Reading more than
/// that is not for people, and writing it costs the session its time.
pub const LOG_LINES_PER_SECOND: u32 = 1_000;

/// The longest result of a tool, in characters; a longer one fails the call. Models take far less.
pub const RESULT_CHARS: usize = 16 * 1024 * 1024;

/// How long a hook may take, usually.
pub const HOOK_DEADLINE: Duration = Duration::from_secs(30);

/// How long a handler of requests may take; people are often asked behind it.
pub const HANDLER_DEADLINE: Duration = Duration::from_secs(600);

/// How long a replaced load of an extension may go on with the calls it has.
pub const DRAIN_CALLS_DEADLINE: Duration = Duration::from_secs(30);

/// The most bytes that wait for one isolate that does not take them.
pub const MAX_UNSENT_BYTES: usize = 64 * 1024 * 1024;

/// The longest single message between an isolate and its session.
pub const MAX_MESSAGE_BYTES: usize = 256 * 1024 * 1024;

/// The most values in the JSON that an extension sends at once. Each may take 300 bytes of the session's memory, and two bytes of
/// text.
pub const MAX_JSON_VALUES: usize = 500_000;

/// The most files that one load of an extension is made from. The session looks at each of them again and again.
pub const MAX_LOADED_FILES: usize = 20_000;

/// The limits of an extension for which nothing else was configured.
pub fn default_limits() -> IsolateLimits {
    IsolateLimits {
        heap_bytes: HEAP_BYTES,
        buffer_bytes: BUFFER_BYTES,
        memory_bytes: MEMORY_BYTES,
        cpu_ms: CPU_TIME.as_millis() as u64,
        children: CHILDREN,
        log_lines_per_second: LOG_LINES_PER_SECOND,
        result_chars: RESULT_CHARS,
        start_deadline_ms: START_DEADLINE.as_millis() as u64,
        stop_deadline_ms: STOP_DEADLINE.as_millis() as u64,
    }
}
