//! V8's worker threads, started in a forked process when V8 first has work for them.
//!
//! Threads do not survive a fork, and V8's own pool cannot be restarted. So V8's platform is made to hand its background
//! tasks to a pool of ours. V8 has no interface for that: three functions are replaced in the table of virtual functions
//! of the one platform object. Their places are those of `v8-platform.h` in the version that [`KNOWN_VERSION`] names;
//! with any other version nothing is replaced, and the engine compiles on the extension's own thread.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::Once;
use std::sync::PoisonError;
use std::time::Duration;

use deno_core::v8;

use crate::background;
use crate::limits::ENGINE_THREADS;

/// The version of V8 whose table is known.
const KNOWN_VERSION: &str = "15.0.245.2-rusty";

/// Virtual functions of `v8::Platform`, its two destructors included.
const FUNCTIONS: usize = 22;
/// Words before the first function: the offset to the whole object, and the type information.
const PREFIX: usize = 2;
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

static TASKS: Mutex<VecDeque<BackgroundTask>> = Mutex::new(VecDeque::new());
static POSTED: Condvar = Condvar::new();

/// Whether the known version of V8 is linked, so that its threads can be replaced.
pub fn are_possible() -> bool {
    v8::V8::get_version() == KNOWN_VERSION
}

/// Has a platform hand its background tasks to our threads.
///
/// # Safety
///
/// The platform must be the object of the known version, and not be used by another thread.
pub unsafe fn install(platform: &v8::UniqueRef<v8::Platform>) {
    let object = std::ptr::from_ref::<v8::Platform>(platform).cast_mut().cast::<*const usize>();
    // SAFETY: an object with virtual functions begins with the address of its table, in front of which are the words of
    // the prefix. The new table has the same functions but for three, lives as long as the program, and is put in
    // place before V8 knows the platform.
    unsafe {
        let old = (*object).sub(PREFIX);
        let mut table: Vec<usize> = (0..PREFIX + FUNCTIONS).map(|place| *old.add(place)).collect();
        table[PREFIX + NUMBER_OF_WORKER_THREADS] = number_of_threads as *const () as usize;
        table[PREFIX + POST_TASK_ON_WORKER_THREAD] = post as *const () as usize;
        table[PREFIX + POST_DELAYED_TASK_ON_WORKER_THREAD] = post_later as *const () as usize;
        object.write_volatile(Vec::leak(table).as_ptr().add(PREFIX));
    }
}

/// After the fork: starts on what was posted before it.
pub fn resume() {
    if !lock().is_empty() {
        start();
    }
}

fn lock() -> std::sync::MutexGuard<'static, VecDeque<BackgroundTask>> {
    TASKS.lock().unwrap_or_else(PoisonError::into_inner)
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
    if super::is_zygote() {
        return enqueue(task);
    }
    background::spawn(async move {
        tokio::time::sleep(Duration::from_secs_f64(delay.max(0.0))).await;
        enqueue(task);
    });
}

fn enqueue(task: BackgroundTask) {
    lock().push_back(task);
    if !super::is_zygote() {
        start();
        POSTED.notify_one();
    }
}

/// Starts the threads, once.
fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        for _ in 0..ENGINE_THREADS {
            let thread = std::thread::Builder::new().name("tenon-engine".into());
            // With fewer threads, or none, V8 does more of its work on the extension's own.
            let _ = thread.spawn(|| {
                loop {
                    let waited = POSTED.wait_while(lock(), |tasks| tasks.is_empty());
                    let task = waited.unwrap_or_else(PoisonError::into_inner).pop_front();
                    task.into_iter().for_each(BackgroundTask::run);
                }
            });
        }
    });
}
