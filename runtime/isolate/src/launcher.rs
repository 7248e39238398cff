//! Starting isolates, and keeping one warm.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use tenon_protocol::engine::Done;
use tenon_protocol::engine::Engine;
use tenon_protocol::engine::EngineIsolate;
use tenon_protocol::engine::Receive;
use tenon_protocol::engine::Spare;
use tenon_protocol::layers::Layers;
use tokio::sync::mpsc;
use tokio::sync::oneshot;
use tokio::sync::watch;

use crate::claim::Claim;
use crate::engine::EngineError;
use crate::limits::HEAP_BYTES;
use crate::limits::STARVED_GRACE;
use crate::limits::TERMINATE_GRACE;
use crate::message::EndReason;
use crate::message::FromIsolate;
use crate::message::IsolateUsage;
use crate::message::LoadSpec;
use crate::message::ToIsolate;
use crate::outbox::Outbox;
use crate::terminator::Terminator;
use crate::thread;
use crate::thread::Seat;

/// An isolate that waits.
struct Waiting {
    claim: oneshot::Sender<Claim>,
    outbox: Outbox,
    terminator: Terminator,
    warm: watch::Receiver<bool>,
    ended: watch::Receiver<bool>,
}

/// Starts isolates. Clones share the spare.
#[derive(Clone)]
pub struct Launcher {
    spare: Arc<Mutex<Place>>,
}

/// The spare's place.
struct Place {
    policy: Spare,
    spare: Option<Waiting>,
}

impl Launcher {
    /// A launcher. With [`Spare::Keep`] the first spare is made at once, in the background.
    pub fn new(policy: Spare) -> Self {
        let launcher = Self { spare: Arc::new(Mutex::new(Place { policy, spare: None })) };
        launcher.refill();
        launcher
    }

    /// Puts an extension on a thread of its own. Its messages go to `send`; the last is
    /// [`FromIsolate::Ended`].
    pub fn start(
        &self,
        spec: LoadSpec,
        send: impl Fn(FromIsolate) + Send + Sync + 'static,
    ) -> Result<Isolate, EngineError> {
        self.put(spec, Box::new(send))
    }

    fn put(&self, spec: LoadSpec, send: Receive) -> Result<Isolate, EngineError> {
        // A heap's limit is set when the engine is made, so a spare has the usual one.
        let usual = spec.limits.heap_bytes == HEAP_BYTES;
        let spare = if usual { self.place().spare.take() } else { None };
        let from_spare = spare.is_some();
        let waiting = match spare {
            Some(waiting) => waiting,
            None => launch(&spec.id, spec.limits.heap_bytes)?,
        };
        let (inbox_sender, inbox) = mpsc::unbounded_channel();
        waiting.outbox.connect(send);
        let stop_deadline = Duration::from_millis(spec.limits.stop_deadline_ms);
        let launcher = self.clone();
        let claim = Claim {
            spec,
            inbox,
            feed: None,
            is_alone: false,
            layers: Layers::default(),
            from_spare,
            on_ready: Some(Box::new(move || launcher.refill())),
        };
        // The thread waits for nothing else; should it have died, `ended` says so.
        let _ = waiting.claim.send(claim);
        Ok(Isolate {
            inbox: inbox_sender,
            terminator: waiting.terminator,
            ended: waiting.ended,
            stop_deadline,
        })
    }

    /// Waits until the spare, if one is kept, is ready to be claimed.
    pub async fn wait_for_spare(&self) {
        let warm = self.place().spare.as_ref().map(|spare| spare.warm.clone());
        if let Some(mut warm) = warm {
            // An error means that the spare's thread is gone; then there is nothing to wait for.
            let _ = warm.wait_for(|warm| *warm).await;
        }
    }

    /// Makes a spare if one is wanted and there is none.
    pub(crate) fn refill(&self) {
        let mut place = self.place();
        if place.policy == Spare::Keep && place.spare.is_none() {
            // Without a spare the next start is slower; that is all.
            place.spare = launch("spare", HEAP_BYTES).ok();
        }
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn launch(id: &str, heap_bytes: usize) -> Result<Waiting, EngineError> {
    let (claim, receiver) = oneshot::channel();
    let outbox = Outbox::default();
    let terminator = Terminator::default();
    let (warm_sender, warm) = watch::channel(false);
    let (ended_sender, ended) = watch::channel(false);
    let seat = Seat {
        heap_bytes,
        claim: receiver,
        outbox: outbox.clone(),
        terminator: terminator.clone(),
        warm: warm_sender,
        ended: ended_sender,
    };
    thread::spawn(id, seat)?;
    Ok(Waiting { claim, outbox, terminator, warm, ended })
}

/// A running isolate. Dropping it ends the isolate without ceremony; [`Isolate::stop`] lets the
/// extension say goodbye.
pub struct Isolate {
    inbox: mpsc::UnboundedSender<ToIsolate>,
    terminator: Terminator,
    ended: watch::Receiver<bool>,
    stop_deadline: Duration,
}

impl Isolate {
    /// Sends a message. An isolate that has ended ignores it.
    pub fn send(&self, message: ToIsolate) {
        let _ = self.inbox.send(message);
    }

    /// Lets the extension's `SIGTERM` and `exit` handlers run, and ends it; by force when it does
    /// not answer. Its requests can be answered until then.
    pub fn stop(&self) -> impl Future<Output = ()> + Send + 'static {
        self.send(ToIsolate::Stop);
        self.end_by_force()
    }

    fn end_by_force(&self) -> impl Future<Output = ()> + Send + 'static {
        let (deadline, terminator) = (self.stop_deadline, self.terminator.clone());
        let mut ended = self.ended.clone();
        async move {
            tokio::select! {
                // An error means that the thread is gone, which is what we wait for.
                _ = ended.wait_for(|ended| *ended) => return,
                () = overdue(deadline, &terminator) => {}
            }
            let reason = "it did not stop in time".to_owned();
            terminator.force(EndReason::Terminated { reason });
            // A thread inside a blocking system call cannot be interrupted. It ends when the call returns;
            // nobody waits for it.
            let patience = deadline + TERMINATE_GRACE;
            let _ = tokio::time::timeout(patience, ended.wait_for(|ended| *ended)).await;
        }
    }

    /// What it uses.
    pub fn usage(&self) -> IsolateUsage {
        self.terminator.usage()
    }

    /// Says whether the start deadline counts: not while a person is asked about the extension.
    pub fn hold_start(&self, held: bool) {
        self.terminator.hold_start(held);
    }
}

/// Waits until an isolate that was told to stop is overdue. One that had no processor has some more time.
async fn overdue(deadline: Duration, terminator: &Terminator) {
    let used = terminator.cpu_time();
    tokio::time::sleep(deadline + TERMINATE_GRACE).await;
    let starved_until = tokio::time::Instant::now() + STARVED_GRACE;
    while terminator.cpu_time().saturating_sub(used) < deadline
        && tokio::time::Instant::now() < starved_until
    {
        tokio::time::sleep(TERMINATE_GRACE).await;
    }
}

impl Drop for Isolate {
    fn drop(&mut self) {
        if !*self.ended.borrow() {
            self.terminator.terminate(EndReason::Stopped);
        }
    }
}

impl Engine for Launcher {
    fn start(&self, spec: LoadSpec, receive: Receive) -> Result<Box<dyn EngineIsolate>, String> {
        let isolate = self.put(spec, receive).map_err(|error| error.to_string())?;
        Ok(Box::new(isolate))
    }

    fn spare_is_warm(&self) -> Done {
        let launcher = self.clone();
        Box::pin(async move { launcher.wait_for_spare().await })
    }
}

impl EngineIsolate for Isolate {
    fn send(&self, message: ToIsolate) {
        Self::send(self, message);
    }

    fn stop(&self) -> Done {
        Box::pin(Self::stop(self))
    }

    fn hold_start(&self, held: bool) {
        Self::hold_start(self, held);
    }

    fn usage(&self) -> IsolateUsage {
        Self::usage(self)
    }
}
