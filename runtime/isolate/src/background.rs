//! One thread for all isolates that does what an isolate's own thread cannot: read the pipe the
//! isolate may be blocked on, and notice that it is stuck.

use std::future::Future;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use tokio::runtime::Handle;

/// The thread's event loop; `None` if the system gave no thread.
static LOOP: LazyLock<Option<Handle>> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let handle = runtime.handle().clone();
    let thread = std::thread::Builder::new().name("tenon-background".into());
    thread.spawn(move || runtime.block_on(std::future::pending::<()>())).ok()?;
    Some(handle)
});

/// Whether this process is a zygote that has not forked: its forks would not have the thread.
static IS_FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// Whether there may be no such thread, and nothing may be left for later: in a zygote, not in a fork of one.
pub fn is_forbidden() -> bool {
    IS_FORBIDDEN.load(Relaxed)
}

/// Says whether there may be no such thread.
#[cfg(target_os = "linux")]
pub fn forbid(forbidden: bool) {
    IS_FORBIDDEN.store(forbidden, Relaxed);
}

/// Runs a task on the background thread. Without one, nothing happens.
pub fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    if is_forbidden() {
        return;
    }
    if let Some(handle) = LOOP.as_ref() {
        handle.spawn(task);
    }
}
