//! Every limit of an isolate, with its unit and its reason.

use std::time::Duration;

pub use tenon_protocol::limits::*;

use crate::message::Breach;

/// How long the end of an isolate waits for output that is still in its pipe. It takes that long only if a detached
/// child keeps the pipe open.
pub const DRAIN_DEADLINE: Duration = Duration::from_secs(2);

/// What is added, once, to a heap that reached its limit, so that the engine can finish the allocation it
/// is in and unwind, instead of aborting the process. It is room, not memory: termination is under way.
/// The largest single allocations of V8, a full array that is copied into a larger one, take half of it.
/// What still fills it is native code that allocates in a loop; memory for more the machine may not have.
#[cfg(feature = "v8")]
pub const HEAP_UNWIND_BYTES: usize = 4 * 1024 * 1024 * 1024;
/// What is added, once, to a heap that reached its limit, so that code that is not prepared to be refused
/// memory can unwind. QuickJS does not abort when it has none: it throws.
#[cfg(feature = "quickjs")]
pub const HEAP_UNWIND_BYTES: usize = 256 * 1024 * 1024;

/// What may be allocated above the limit of buffers while the extension is being terminated. Some native
/// code cannot be refused memory without ending the process; none of it asks for more than a few megabytes.
pub const BUFFER_UNWIND_BYTES: usize = 64 * 1024 * 1024;

/// The largest single Wasm memory, in pages of 64 KiB: 1 GiB. V8 does not ask our allocator for these, so
/// they are seen only afterwards; this bounds how far one call can overshoot. It holds for the process.
pub const WASM_MAX_PAGES: u32 = 16 * 1024;

/// How often the CPU time of busy isolates is looked at. It is how late a loop may be noticed.
pub const WATCH_INTERVAL: Duration = Duration::from_millis(20);

/// The same while no isolate is busy.
pub const WATCH_IDLE_INTERVAL: Duration = Duration::from_millis(100);

/// Looks that find nothing to do before the watcher sleeps until the next turn, so that a program at rest is not woken
/// up.
pub const LOOKS_BEFORE_SLEEP: u32 = 5;

/// V8's threads for compilation in one extension's process; they start when V8 first has work for them.
#[cfg(feature = "v8")]
pub const ENGINE_THREADS: usize = 2;

/// How long such a thread waits for more work before it ends: V8 compiles in bursts, and most extensions rest afterwards.
#[cfg(feature = "v8")]
pub const ENGINE_THREAD_KEEP_ALIVE: Duration = Duration::from_millis(500);

/// The machine code of a worker's engine instance. V8 makes all of this room writable at once, and with its usual 512 MB
/// the sixth worker is more than the system lets the process allocate.
#[cfg(feature = "v8")]
pub const WORKER_CODE_BYTES: usize = 32 * 1024 * 1024;

/// What the system lets a process allocate above its limit of memory: stacks of threads, and what is reserved and not
/// touched.
#[cfg(target_os = "linux")]
pub const MEMORY_SLACK_BYTES: usize = 2 * 1024 * 1024 * 1024;

/// Files, sockets and pipes that an extension's process can have open at a time, and each program that it starts. Servers and
/// bundlers use hundreds. What the kernel keeps for a socket, such as data that nobody reads, counts for no limit of memory outside
/// of a control group.
#[cfg(target_os = "linux")]
pub const MAX_DESCRIPTORS: u64 = 4_096;

/// Descriptors that a new process closes one by one where the system cannot close a range.
#[cfg(target_os = "linux")]
pub const MAX_DESCRIPTORS_TO_CLOSE: i32 = 65_536;

/// The least time between two measurements of one isolate's memory. V8 measures in microseconds.
#[cfg(feature = "v8")]
pub const MEASURE_INTERVAL: Duration = Duration::from_millis(250);
/// The least time between two measurements of one isolate's memory. QuickJS walks the whole heap to measure
/// it, which takes milliseconds.
#[cfg(feature = "quickjs")]
pub const MEASURE_INTERVAL: Duration = Duration::from_secs(2);

/// The most frames of a stack that are kept; more are not read by anybody.
pub const STACK_FRAMES: usize = 20;

/// CPU time that an isolate which was terminated for a limit may take to end before it is given up: its thread is
/// in native code that does not return, and the session must not wait for it.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(2);

/// The same on the clock: its thread is in a system call that does not return, or does not get a processor.
pub const GIVE_UP_PATIENCE: Duration = Duration::from_secs(5);

/// CPU time in which the event loop of an isolate that is not wanted any more has to notice that before its scripts
/// are stopped. QuickJS takes that long to load the platform.
pub const NOTICE_GRACE: Duration = Duration::from_millis(500);

/// The same on the clock.
pub const NOTICE_PATIENCE: Duration = Duration::from_secs(5);

/// CPU time that an extension whose process reached its limit of memory has, first to say where it stands and then to end,
/// before its process exits: native code that allocates takes a gigabyte in a second.
pub const MEMORY_GRACE: Duration = Duration::from_millis(50);

/// The same on the clock, for one that does not get a processor.
pub const MEMORY_PATIENCE: Duration = Duration::from_secs(1);

/// How far above its limit of memory an extension's process may get before it exits at once. Native code takes a gigabyte in
/// a second, on another thread or without returning to JavaScript. JavaScript that can say where it stands does so in
/// milliseconds.
#[cfg(target_os = "linux")]
pub const MEMORY_EXCESS_BYTES: usize = 64 * 1024 * 1024;

/// CPU time in which an isolate that reached a limit has to say where it stands before it is terminated
/// without.
pub const STACK_GRACE: Duration = Duration::from_millis(500);

/// The same on the clock, for one that does not get a processor.
pub const STACK_PATIENCE: Duration = Duration::from_secs(5);

/// The least time between two counts of a busy isolate's child processes: a count reads several files.
pub const CHILDREN_INTERVAL: Duration = Duration::from_millis(250);

/// Child processes that have ended and that nobody has waited for, until they count as too many. Each takes a number and some
/// kilobytes of the kernel's memory. Those that a child leaves behind wait here until the extension's thread returns to
/// its event loop; a shell that starts programs in the background makes a few of them.
#[cfg(target_os = "linux")]
pub const MAX_ENDED_CHILDREN: usize = 1_000;

/// Log lines that may come at once before any is dropped: a stack dump, a directory listing.
pub const LOG_BURST_LINES: u32 = 5_000;

/// Dropped log lines, without a second of quiet between them, that end an extension.
pub const LOG_FLOOD_LINES: u64 = 500_000;

/// How long dropped log lines are counted before a warning says how many there were, and the quiet after
/// which a flood counts as over.
pub const LOG_QUIET: Duration = Duration::from_secs(1);

/// Threads for blocking file operations of one extension; idle ones end by themselves.
pub const MAX_BLOCKING_THREADS: usize = 8;

/// How long operations on these threads may take after the extension's last message, such as a file that is being written, before
/// the process exits. One may take for ever: a pipe that nobody opens at the other end. The session waits a few seconds.
#[cfg(target_os = "linux")]
pub const LAST_OPERATIONS_GRACE: Duration = Duration::from_millis(500);

/// How long an idle thread for blocking operations waits for more work.
pub const BLOCKING_THREAD_KEEP_ALIVE: Duration = Duration::from_millis(500);

/// Stack of an isolate's thread. V8 limits JavaScript to just under one megabyte of it; the rest is
/// for ops and for deeply nested values on their way through serde.
pub const THREAD_STACK_BYTES: usize = 8 * 1024 * 1024;

/// The longest line of output that is kept in one piece; a longer one is cut into several.
pub const MAX_OUTPUT_LINE_BYTES: usize = 64 * 1024;

/// Whether a limit counts what the extension has started with it: beyond it all of that ends, detached or not.
pub(crate) fn counts_children(breach: &Breach) -> bool {
    [CHILDREN_LIMIT, MEMORY_LIMIT].contains(&breach.limit.as_str())
}

/// A limit that was reached: its name in the user's configuration, and what happened, in words.
pub(crate) fn breach(limit: &str, allowed: String) -> Breach {
    Breach { limit: limit.to_owned(), allowed, stack: String::new() }
}
