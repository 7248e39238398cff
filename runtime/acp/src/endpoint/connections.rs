//! How many connections the endpoint keeps open: those that have shown the token, and those that have not yet.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// The most connections at a time that have shown the token; requests on more wait. A client has one for each request
/// that runs and one to listen.
const MAX_AUTHENTICATED: usize = 256;

/// The most connections at a time that have not shown the token yet. Any local user can connect, and must not keep
/// clients with the token out: another connection ends the oldest of these. A client shows the token at once.
pub const MAX_UNAUTHENTICATED: usize = 256;

/// The open connections of one endpoint.
pub struct Connections {
    authenticated: Semaphore,
    unauthenticated: Mutex<Unauthenticated>,
}

/// Connections that have not shown the token, oldest first.
#[derive(Default)]
struct Unauthenticated {
    last: u64,
    open: VecDeque<(u64, CancellationToken)>,
}

impl Default for Connections {
    fn default() -> Self {
        Self { authenticated: Semaphore::new(MAX_AUTHENTICATED), unauthenticated: Mutex::default() }
    }
}

impl Connections {
    /// Counts another connection. If too many have not shown the token, the oldest of them ends.
    pub fn add(self: &Arc<Self>) -> Slot {
        let evicted = CancellationToken::new();
        let mut unauthenticated = self.unauthenticated.lock();
        if unauthenticated.open.len() >= MAX_UNAUTHENTICATED
            && let Some((_, oldest)) = unauthenticated.open.pop_front()
        {
            oldest.cancel();
        }
        unauthenticated.last += 1;
        let number = unauthenticated.last;
        unauthenticated.open.push_back((number, evicted.clone()));
        drop(unauthenticated);
        let (is_authenticated, holds_permit) = (AtomicBool::new(false), AtomicBool::new(false));
        Slot { connections: self.clone(), number, evicted, is_authenticated, holds_permit }
    }
}

/// The place of one connection; dropping it frees the place.
pub struct Slot {
    connections: Arc<Connections>,
    number: u64,
    /// Cancelled when another connection takes the place.
    evicted: CancellationToken,
    is_authenticated: AtomicBool,
    /// Whether it counts among those that have shown the token.
    holds_permit: AtomicBool,
}

impl Slot {
    /// The connection has shown the token. The first time, this waits until there is room for it.
    pub async fn authenticated(&self) {
        if self.is_authenticated.swap(true, Ordering::AcqRel) {
            return;
        }
        self.forget_unauthenticated();
        // The semaphore is never closed.
        if let Ok(permit) = self.connections.authenticated.acquire().await {
            permit.forget();
            self.holds_permit.store(true, Ordering::Release);
        }
    }

    /// Whether the connection has shown the token.
    pub fn is_authenticated(&self) -> bool {
        self.is_authenticated.load(Ordering::Acquire)
    }

    /// Ends when another connection has taken the place.
    pub async fn evicted(&self) {
        self.evicted.cancelled().await;
    }

    fn forget_unauthenticated(&self) {
        self.connections.unauthenticated.lock().open.retain(|(number, _)| *number != self.number);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.forget_unauthenticated();
        if self.holds_permit.load(Ordering::Acquire) {
            self.connections.authenticated.add_permits(1);
        }
    }
}
