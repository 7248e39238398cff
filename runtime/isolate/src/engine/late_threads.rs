//! V8's worker threads, started in a forked process when V8 first has work for them.
//!
//! Threads do not survive a fork, and V8's own pool cannot be restarted. So V8's platform is made to hand its background
//! tasks to a pool of ours, by replacing three virtual functions. With an unknown version of V8 nothing is replaced, and
//! the engine compiles on the extension's own thread.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use deno_core::v8;

use super::virtual_table;
use crate::background;
use crate::limits::ENGINE_THREAD_KEEP_ALIVE;
use crate::limits::ENGINE_THREADS;

/// Virtual functions of `v8::Platform`, its two destructors included.
const FUNCTIONS: usize = 22;
const NUMBER_OF_WORKER_THREADS: usize = 6;
const POST_TASK_ON_WORKER_THREAD: usize = 20;
const POST_DELAYED_TASK_ON_WORKER_THREAD: usize = 21;

unsafe extern "C" {
    fn v8__Task__Run(task: *mut c_void);
    fn v8__Task__DELETE(task: *mut c_void);
}

/// A task of V8's for any thread.
struct BackgroundTask(*mut c_void);

// SAFETY: V8 hands these tasks over to be run on another thread.
unsafe impl Send for BackgroundTask {}

impl BackgroundTask {
    fn run(self) {
        // SAFETY: V8 gave us the task with its ownership; it is run once and deleted once.
        unsafe {
            v8__Task__Run(self.0);
            v8__Task__DELETE(self.0);
        }
    }
}

/// What V8 has posted, and the threads that do it.
struct Pool {
    tasks: VecDeque<BackgroundTask>,
    threads: usize,
    /// Threads that wait for a task.
    idle: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { tasks: VecDeque::new(), threads: 0, idle: 0 });
static POSTED: Condvar = Condvar::new();

/// Has a platform hand its background tasks to our threads.
///
/// # Safety
///
/// The platform must be the object of the known version, and not be used by another thread.
pub unsafe fn install(platform: &v8::UniqueRef<v8::Platform>) {
    let object = std::ptr::from_ref::<v8::Platform>(platform).cast_mut().cast::<()>();
    let replaced = [
        (NUMBER_OF_WORKER_THREADS, number_of_threads as *const ()),
        (POST_TASK_ON_WORKER_THREAD, post as *const ()),
        (POST_DELAYED_TASK_ON_WORKER_THREAD, post_later as *const ()),
    ];
    // SAFETY: demanded above; the functions have the signatures of those that they replace.
    unsafe { virtual_table::replace(object, FUNCTIONS, &replaced) };
}

/// Before the fork: does what was posted, on this thread; says whether there was anything.
pub fn run_now() -> bool {
    let mut has_run = false;
    while let Some(task) = { lock().tasks.pop_front() } {
        task.run();
        has_run = true;
    }
    has_run
}

fn lock() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn number_of_threads(_platform: *const c_void) -> i32 {
    ENGINE_THREADS as i32
}

extern "C" fn post(
    _platform: *mut c_void,
    _priority: u8,
    task: *mut c_void,
    _place: *const c_void,
) {
    enqueue(BackgroundTask(task));
}

extern "C" fn post_later(
    _platform: *mut c_void,
    _priority: u8,
    task: *mut c_void,
    delay: f64,
    _place: *const c_void,
) {
    let task = BackgroundTask(task);
    // Before the fork nobody can wait; sooner is better than never.
    if background::is_forbidden() {
        return enqueue(task);
    }
    background::spawn(async move {
        tokio::time::sleep(Duration::from_secs_f64(delay.max(0.0))).await;
        enqueue(task);
    });
}

fn enqueue(task: BackgroundTask) {
    let mut pool = lock();
    pool.tasks.push_back(task);
    if background::is_forbidden() {
        return;
    }
    if pool.tasks.len() > pool.idle && pool.threads < ENGINE_THREADS {
        pool.threads += 1;
        drop(pool);
        start();
    } else {
        drop(pool);
        POSTED.notify_one();
    }
}

/// Starts one more thread.
fn start() {
    let thread = std::thread::Builder::new().name("tenon-engine".into());
    let started = thread.spawn(|| {
        let mut pool = lock();
        loop {
            if let Some(task) = pool.tasks.pop_front() {
                drop(pool);
                task.run();
                pool = lock();
                continue;
            }
            pool.idle += 1;
            let waited = POSTED.wait_timeout(pool, ENGINE_THREAD_KEEP_ALIVE);
            let is_idle;
            (pool, is_idle) = waited.unwrap_or_else(PoisonError::into_inner);
            pool.idle -= 1;
            if is_idle.timed_out() && pool.tasks.is_empty() {
                pool.threads -= 1;
                return;
            }
        }
    });
    // With fewer threads, or none, V8 does more of its work on the extension's own.
    if started.is_err() {
        lock().threads -= 1;
    }
}
