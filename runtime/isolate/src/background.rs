//! One thread for all isolates that does what an isolate's own thread cannot: read the pipe the
//! isolate may be blocked on, and notice that it is stuck.

use std::future::Future;
use std::sync::LazyLock;

use tokio::runtime::Handle;

/// The thread's event loop; `None` if the system gave no thread.
static LOOP: LazyLock<Option<Handle>> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let handle = runtime.handle().clone();
    let thread = std::thread::Builder::new().name("tenon-background".into());
    thread.spawn(move || runtime.block_on(std::future::pending::<()>())).ok()?;
    Some(handle)
});

/// Whether there may be no such thread: in a zygote, whose forks would not have it.
pub fn is_forbidden() -> bool {
    #[cfg(target_os = "linux")]
    return crate::zygote::is_zygote();
    #[cfg(not(target_os = "linux"))]
    false
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
