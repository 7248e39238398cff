//! The thread of one isolate, from the first instruction to the last.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use deno_core::v8;
use tokio::sync::oneshot;
use tokio::sync::watch;

use crate::background;
use crate::children;
use crate::driver;
use crate::engine::EngineError;
use crate::launcher::Claim;
use crate::launcher::Outbox;
use crate::limits;
use crate::message::EndReason;
use crate::message::FromIsolate;
use crate::worker;

/// Ends JavaScript from outside, whatever it is doing.
#[derive(Clone, Default)]
pub struct Terminator(Arc<Mutex<TerminatorState>>);

#[derive(Default)]
struct TerminatorState {
    handle: Option<v8::IsolateHandle>,
    threads: Vec<i32>,
    reason: Option<EndReason>,
    start_is_over: bool,
    start_is_held: bool,
    wake: Option<std::task::Waker>,
}

impl Terminator {
    /// Terminates; the first reason given is the one that is reported.
    pub fn terminate(&self, reason: EndReason) {
        let Ok(mut state) = self.0.lock() else { return };
        state.reason.get_or_insert(reason);
        if let Some(handle) = &state.handle {
            handle.terminate_execution();
        }
        // A synchronous child process would hold the thread as long as it runs.
        state.threads.iter().for_each(|&thread| children::kill_all(thread));
        if let Some(waker) = state.wake.take() {
            waker.wake();
        }
    }

    /// The extension has joined, or ended: its start deadline no longer counts.
    pub fn end_start(&self) {
        if let Ok(mut state) = self.0.lock() {
            state.start_is_over = true;
        }
    }

    /// While a person is being asked about the extension, its start deadline does not count.
    pub fn hold_start(&self, held: bool) {
        if let Ok(mut state) = self.0.lock() {
            state.start_is_held = held;
        }
    }

    /// Whether the start deadline does not count for now.
    pub fn start_is_held(&self) -> bool {
        self.0.lock().is_ok_and(|state| state.start_is_held)
    }

    /// Terminates the isolate if the extension has not joined when its deadline is over. The isolate
    /// looks at its own clock too; this is for one that does not get to look.
    pub fn watch_start(&self, deadline: Duration, outbox: &Outbox) {
        let (terminator, outbox) = (self.clone(), outbox.clone());
        background::spawn(async move {
            // What it does with its own clock, saying goodbye included, takes that long at most.
            let patience = deadline + limits::STOP_DEADLINE + limits::TERMINATE_GRACE;
            tokio::time::sleep(patience).await;
            while terminator.start_is_held() {
                tokio::time::sleep(patience).await;
            }
            let is_over = || terminator.0.lock().map_or(true, |state| state.start_is_over);
            if is_over() {
                return;
            }
            let deadline_ms = deadline.as_millis() as u64;
            terminator.terminate(EndReason::NoJoin { deadline_ms });
            tokio::time::sleep(limits::TERMINATE_GRACE).await;
            // A thread in a system call that does not return cannot be ended; it is given up.
            if !is_over() {
                outbox.send(FromIsolate::Ended(EndReason::NoJoin { deadline_ms }));
            }
        });
    }

    /// Why it was terminated, if it was.
    pub fn reason(&self) -> Option<EndReason> {
        self.0.lock().ok()?.reason.clone()
    }

    /// Wakes the given task on termination, so that an isolate that waits for work notices.
    pub fn notify(&self, waker: &std::task::Waker) {
        if let Ok(mut state) = self.0.lock() {
            state.wake = Some(waker.clone());
        }
    }

    /// Counts the calling thread among those that start processes for the extension.
    pub fn attach_thread(&self) {
        if let Ok(mut state) = self.0.lock() {
            state.threads.push(children::current_thread());
        }
    }

    fn attach(&self, handle: v8::IsolateHandle) {
        if let Ok(mut state) = self.0.lock() {
            state.handle = Some(handle);
        }
    }

    /// Ends the extension's processes, while the threads that started them still exist.
    fn detach(&self) {
        if let Ok(mut state) = self.0.lock() {
            state.handle = None;
            state.threads.drain(..).for_each(children::kill_all);
        }
    }
}

/// What a new thread is given.
pub struct Seat {
    pub heap_bytes: usize,
    pub claim: oneshot::Receiver<Claim>,
    pub outbox: Outbox,
    pub terminator: Terminator,
    /// Set when the isolate is ready to be claimed.
    pub warm: watch::Sender<bool>,
    /// Set when the thread has nothing left to do.
    pub ended: watch::Sender<bool>,
}

/// Starts the thread. It bootstraps an engine instance, waits for its claim and serves it.
pub fn spawn(id: &str, seat: Seat) -> Result<(), EngineError> {
    crate::init_engine();
    let builder =
        std::thread::Builder::new().name(id.to_owned()).stack_size(limits::THREAD_STACK_BYTES);
    let run = move || {
        let Seat { heap_bytes, claim, outbox, terminator, warm, ended } = seat;
        let reason = live(heap_bytes, claim, &outbox, &terminator, &warm);
        terminator.end_start();
        if let Some(reason) = reason {
            outbox.send(FromIsolate::Ended(reason));
        }
        let _ = ended.send(true);
    };
    builder.spawn(run).map(drop).map_err(|source| EngineError::Thread { id: id.to_owned(), source })
}

/// The life of the thread; `None` if nobody ever claimed it.
fn live(
    heap_bytes: usize,
    claim: oneshot::Receiver<Claim>,
    outbox: &Outbox,
    terminator: &Terminator,
    warm: &watch::Sender<bool>,
) -> Option<EndReason> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(limits::MAX_BLOCKING_THREADS)
        .thread_keep_alive(limits::BLOCKING_THREAD_KEEP_ALIVE)
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return Some(EndReason::Setup { message: error.to_string() }),
    };
    let reason = {
        // The engine schedules work on the runtime it was made in.
        let _inside = runtime.enter();
        terminator.attach_thread();
        match worker::create(heap_bytes, outbox.clone(), terminator) {
            Ok(mut worker) => {
                terminator.attach(worker.runtime.v8_isolate().thread_safe_handle());
                let service = driver::serve(&mut worker, claim, outbox, terminator, warm);
                let reason = runtime.block_on(service);
                terminator.detach();
                let output = worker.output;
                drop(worker.runtime);
                output.wait();
                reason
            }
            Err(error) => Some(EndReason::Setup { message: error.to_string() }),
        }
    };
    // Blocking tasks that nobody waits for must not hold the thread.
    runtime.shutdown_background();
    reason
}
