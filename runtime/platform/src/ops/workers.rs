//! How many worker threads an extension has: each is an engine instance, so there is a limit.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use deno_core::OpState;
use deno_core::op2;
use deno_error::JsErrorBox;
use tenon_protocol::limits::WORKERS;

/// Counts the workers of an extension, also those that its workers have started.
#[derive(Debug, Clone, Default)]
pub struct WorkerCount(Arc<AtomicUsize>);

/// A worker counts until this is dropped.
#[derive(Debug)]
pub struct CountedWorker(Arc<AtomicUsize>);

impl WorkerCount {
    /// One more.
    pub fn add(&self) -> CountedWorker {
        self.0.fetch_add(1, Relaxed);
        CountedWorker(self.0.clone())
    }
}

impl Drop for CountedWorker {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Asked before a worker is made. Whoever makes one waits until it is counted, so only threads that make one at the same
/// moment can exceed the limit, each by one.
#[op2(fast)]
pub fn op_tenon_worker(state: &mut OpState) -> Result<(), JsErrorBox> {
    let count = state.try_borrow::<WorkerCount>().map_or(0, |count| count.0.load(Relaxed));
    if count < WORKERS {
        return Ok(());
    }
    Err(JsErrorBox::range_error(format!(
        "an extension can have at most {WORKERS} workers at a time; terminate one before you start another"
    )))
}
