//! Starting isolates in this process.

use std::time::Duration;

use tenon_protocol::engine::Done;
use tenon_protocol::engine::Engine;
use tenon_protocol::engine::EngineIsolate;
use tenon_protocol::engine::Receive;
use tenon_protocol::layers::Layers;
use tokio::sync::mpsc;
use tokio::sync::watch;

use crate::claim::Claim;
use crate::engine::EngineError;
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

/// Starts isolates, each on a thread of its own.
#[derive(Debug, Clone, Copy, Default)]
pub struct Launcher;

impl Launcher {
    /// Puts an extension on a thread of its own. Its messages go to `send`; the last is
    /// [`FromIsolate::Ended`].
    pub fn start(
        &self,
        spec: LoadSpec,
        send: impl Fn(FromIsolate) + Send + Sync + 'static,
    ) -> Result<Isolate, EngineError> {
        launch(spec, Box::new(send))
    }
}

fn launch(spec: LoadSpec, send: Receive) -> Result<Isolate, EngineError> {
    let (inbox_sender, inbox) = mpsc::unbounded_channel();
    let (outbox, terminator) = (Outbox::default(), Terminator::default());
    outbox.connect(send);
    let (ended_sender, ended) = watch::channel(false);
    let stop_deadline = Duration::from_millis(spec.limits.stop_deadline_ms);
    let layers = Layers::default();
    let claim = Claim { spec, inbox, feed: None, is_alone: false, layers };
    let seat = Seat { claim, outbox, terminator: terminator.clone(), ended: ended_sender };
    thread::spawn(seat)?;
    Ok(Isolate { inbox: inbox_sender, terminator, ended, stop_deadline })
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
        let isolate = launch(spec, receive).map_err(|error| error.to_string())?;
        Ok(Box::new(isolate))
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
