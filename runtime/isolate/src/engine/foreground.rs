//! What V8 wants to be run on an isolate's own thread: finished compilations, finalizers, expired waits.
//!
//! deno_core's platform hands delayed tasks to the tokio runtime in which an isolate was made. That runtime does not
//! outlive the fork, so processes of the zygote have this platform instead. It keeps tasks until the isolate's event
//! loop takes them, and wakes the loop.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::task::Context;
use std::task::Waker;
use std::time::Duration;
use std::time::Instant;

use deno_core::v8;

use crate::background;

/// The tasks of every isolate, by the isolate's address.
static QUEUES: LazyLock<Mutex<HashMap<usize, Arc<Queue>>>> = LazyLock::new(Mutex::default);

/// Tasks that are due later and were posted before the fork, when there is no thread that could wait for them.
static DEFERRED: Mutex<Vec<(usize, Instant, v8::Task)>> = Mutex::new(Vec::new());

#[derive(Default)]
struct Queue {
    tasks: Mutex<Vec<v8::Task>>,
    waker: Mutex<Option<Waker>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn queue(isolate: usize) -> Arc<Queue> {
    lock(&QUEUES).entry(isolate).or_default().clone()
}

fn post(isolate: usize, task: v8::Task) {
    let queue = queue(isolate);
    lock(&queue.tasks).push(task);
    if let Some(waker) = lock(&queue.waker).take() {
        waker.wake();
    }
}

fn post_later(isolate: usize, task: v8::Task, delay: Duration) {
    if background::is_forbidden() {
        return lock(&DEFERRED).push((isolate, Instant::now() + delay, task));
    }
    background::spawn(async move {
        tokio::time::sleep(delay).await;
        post(isolate, task);
    });
}

/// After the fork: has the tasks run that were posted before it.
pub fn resume() {
    for (isolate, due, task) in lock(&DEFERRED).drain(..) {
        post_later(isolate, task, due.saturating_duration_since(Instant::now()));
    }
}

/// The platform of a zygote and its processes, as V8 sees it.
pub struct ForegroundPlatform;

impl v8::PlatformImpl for ForegroundPlatform {
    fn post_task(&self, isolate: *mut c_void, task: v8::Task) {
        post(isolate as usize, task);
    }

    fn post_non_nestable_task(&self, isolate: *mut c_void, task: v8::Task) {
        post(isolate as usize, task);
    }

    fn post_delayed_task(&self, isolate: *mut c_void, task: v8::Task, seconds: f64) {
        post_later(isolate as usize, task, Duration::from_secs_f64(seconds));
    }

    fn post_non_nestable_delayed_task(&self, isolate: *mut c_void, task: v8::Task, seconds: f64) {
        post_later(isolate as usize, task, Duration::from_secs_f64(seconds));
    }

    fn post_idle_task(&self, _isolate: *mut c_void, _task: v8::IdleTask) {
        // Idle tasks are switched off, so none is posted; one that is dropped is not missed.
    }
}

/// The tasks of one isolate. Made and used on its thread; dropping it forgets the isolate.
pub struct Foreground {
    isolate: usize,
    queue: Arc<Queue>,
}

impl Foreground {
    /// The tasks of an isolate.
    pub fn of(isolate: &mut v8::Isolate) -> Self {
        // SAFETY: the type is a transparent wrapper around a pointer; only its value is taken, as a key.
        let isolate = unsafe {
            std::mem::transmute::<v8::UnsafeRawIsolatePtr, usize>(isolate.as_raw_isolate_ptr())
        };
        Self { isolate, queue: queue(isolate) }
    }

    /// Runs what has been posted, and has the given task woken when there is more. To be called on the isolate's thread. Says
    /// whether there was anything: then the event loop has to turn, for what follows from it.
    pub fn run(&self, cx: &Context<'_>) -> bool {
        let mut has_run = false;
        *lock(&self.queue.waker) = Some(cx.waker().clone());
        loop {
            let tasks = std::mem::take(&mut *lock(&self.queue.tasks));
            if tasks.is_empty() {
                return has_run;
            }
            has_run = true;
            tasks.into_iter().for_each(v8::Task::run);
        }
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        lock(&QUEUES).remove(&self.isolate);
    }
}
