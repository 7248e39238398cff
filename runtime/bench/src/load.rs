//! Constant calls from several tasks, and what processes hold.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use serde::Serialize;
use tenon_console::error::CliError;
use tenon_host::Session;
use tenon_host::tool::ResultType;
use tokio::task::JoinHandle;

use crate::measured;
use crate::process;

/// Tasks that call.
const CALLERS: usize = 4;

/// Different failures that are kept, to be shown.
const MAX_FAILURES_SHOWN: usize = 5;

/// What became of calls.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Calls {
    /// Made.
    pub sent: u64,
    /// Answered, in whatever way.
    pub answered: u64,
    /// Answered with a result.
    pub succeeded: u64,
    /// Answered with a failure that says why.
    pub failed: u64,
    /// Refused, because nobody had the tool at that moment.
    pub unknown_tool: u64,
    /// Some of the failures, each once.
    pub failures: Vec<String>,
}

#[derive(Default)]
struct Shared {
    sent: AtomicU64,
    succeeded: AtomicU64,
    failed: AtomicU64,
    unknown_tool: AtomicU64,
    enough: AtomicBool,
    failures: std::sync::Mutex<Vec<String>>,
}

/// Tasks that call one tool after the other until they are told to stop.
pub struct Load {
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts calling.
    pub fn start(session: &Session, tools: &[String]) -> Self {
        let shared = Arc::new(Shared::default());
        let task = |first: usize| {
            let (session, shared, tools) = (session.clone(), shared.clone(), tools.to_vec());
            tokio::spawn(async move {
                // Every other call is for the first tool, which is the one that things happen to.
                let mut number = first;
                while !shared.enough.load(Ordering::Relaxed) {
                    number += 1;
                    let place =
                        if number.is_multiple_of(2) { 0 } else { (number / 2) % tools.len() };
                    shared.call(&session, &tools[place]).await;
                }
            })
        };
        let tasks = (0..CALLERS).map(task).collect();
        Self { shared, tasks }
    }

    /// Calls that were made so far.
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }

    /// Stops calling and waits for the answers that are still to come.
    pub async fn stop(self) -> Result<Calls, CliError> {
        let Self { shared, tasks } = self;
        shared.enough.store(true, Ordering::Relaxed);
        for task in tasks {
            // One that is never answered is the worst there is; the benchmark says so and ends.
            let ended = tokio::time::timeout(std::time::Duration::from_secs(60), task).await;
            if ended.is_err() {
                return Err(CliError::new("a call was not answered within 60 s"));
            }
        }
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (succeeded, failed) = (read(&shared.succeeded), read(&shared.failed));
        let unknown_tool = read(&shared.unknown_tool);
        let failures = shared.failures.lock().map(|kept| kept.clone()).unwrap_or_default();
        let sent = read(&shared.sent);
        let answered = succeeded + failed + unknown_tool;
        Ok(Calls { sent, answered, succeeded, failed, unknown_tool, failures })
    }
}

impl Shared {
    async fn call(&self, session: &Session, tool: &str) {
        self.sent.fetch_add(1, Ordering::Relaxed);
        let counter = match measured::call(session, tool).await {
            Ok(result) if result.result_type == ResultType::Success => &self.succeeded,
            Ok(result) => {
                self.keep(result.text_result_for_llm);
                &self.failed
            }
            Err(_) => {
                // Nobody is there to answer; asking again at once would only take the processor from
                // those who are on their way back.
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                &self.unknown_tool
            }
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn keep(&self, failure: String) {
        if let Ok(mut kept) = self.failures.lock()
            && kept.len() < MAX_FAILURES_SHOWN
            && !kept.contains(&failure)
        {
            kept.push(failure);
        }
    }
}

/// What processes hold.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct ResourceUsage {
    /// Memory, in megabytes: private, and a share of what is shared (PSS), with page tables.
    pub memory_mb: f64,
    /// Memory of their own making that is resident, in megabytes, shared with forks or not.
    pub anonymous_mb: f64,
    /// Threads.
    pub threads: usize,
    /// Open files.
    pub files: usize,
}

impl ResourceUsage {
    /// Of a process, now.
    pub fn of(pid: u32) -> Self {
        let memory = process::Memory::of(pid);
        Self {
            memory_mb: memory.whole() as f64 / 1e6,
            anonymous_mb: memory.anonymous as f64 / 1e6,
            threads: process::entries(pid, "task"),
            files: process::entries(pid, "fd"),
        }
    }

    /// Of several processes together, now.
    pub fn of_all(pids: &[u32]) -> Self {
        pids.iter().map(|&pid| Self::of(pid)).fold(Self::default(), |sum, more| Self {
            memory_mb: sum.memory_mb + more.memory_mb,
            anonymous_mb: sum.anonymous_mb + more.anonymous_mb,
            threads: sum.threads + more.threads,
            files: sum.files + more.files,
        })
    }

    /// Whether no more threads and files are held than another time, but for so many.
    pub fn is_like(&self, before: &Self, slack: usize) -> bool {
        self.threads <= before.threads + slack && self.files <= before.files + slack
    }
}
