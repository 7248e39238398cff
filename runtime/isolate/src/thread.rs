//! The thread of one isolate, from the first instruction to the last.

use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::PoisonError;

use tokio::sync::watch;

use crate::claim::Claim;
use crate::driver;
use crate::engine::EngineError;
use crate::limits;
use crate::message::EndReason;
use crate::message::FromIsolate;
use crate::outbox::Outbox;
use crate::terminator::Terminator;
use crate::worker;

/// What a new thread is given.
pub struct Seat {
    pub claim: Claim,
    pub outbox: Outbox,
    pub terminator: Terminator,
    /// Set when the thread has nothing left to do.
    pub ended: watch::Sender<bool>,
}

/// Starts the thread. It makes an engine instance and serves the extension.
pub fn spawn(seat: Seat) -> Result<(), EngineError> {
    crate::init_engine();
    let id = seat.claim.spec.id.clone();
    let builder =
        std::thread::Builder::new().name(id.clone()).stack_size(limits::THREAD_STACK_BYTES);
    let run = move || {
        let Seat { claim, outbox, terminator, ended } = seat;
        let reason = live(claim, &outbox, &terminator);
        terminator.end_start();
        if terminator.tell_end() {
            outbox.send(FromIsolate::Ended(reason));
        }
        let _ = ended.send(true);
    };
    builder.spawn(run).map(drop).map_err(|source| EngineError::Thread { id, source })
}

/// Lets as many threads make an engine instance at a time as there are processors. It is nothing but computing
/// and taking memory from the process: a thousand at once would be ready later, all of them, and take half as
/// much CPU time again, because they wait for each other inside the kernel and push each other out of caches.
struct Turnstile {
    inside: Mutex<usize>,
    left: Condvar,
}

static TURNSTILE: Turnstile = Turnstile { inside: Mutex::new(0), left: Condvar::new() };

impl Turnstile {
    /// Waits for its turn, which lasts until what is returned is dropped.
    fn pass() -> impl Drop {
        let most = std::thread::available_parallelism().map_or(2, usize::from).max(2);
        let inside = TURNSTILE.inside.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = TURNSTILE.left.wait_while(inside, |inside| *inside >= most);
        *waited.unwrap_or_else(PoisonError::into_inner) += 1;
        Inside
    }
}

/// One that has its turn.
struct Inside;

impl Drop for Inside {
    fn drop(&mut self) {
        *TURNSTILE.inside.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        TURNSTILE.left.notify_one();
    }
}

/// The life of the thread.
fn live(claim: Claim, outbox: &Outbox, terminator: &Terminator) -> EndReason {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(limits::MAX_BLOCKING_THREADS)
        .thread_keep_alive(limits::BLOCKING_THREAD_KEEP_ALIVE)
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return EndReason::Setup { message: error.to_string() },
    };
    let reason = {
        // The engine schedules work on the runtime it was made in.
        let _inside = runtime.enter();
        terminator.attach_thread();
        let made = {
            let _turn = Turnstile::pass();
            worker::create(claim.spec.limits.heap_bytes, outbox.clone(), terminator)
        };
        match made {
            Ok(mut worker) => {
                terminator.attach(worker.runtime.v8_isolate().thread_safe_handle());
                let reason = runtime.block_on(async {
                    driver::register_names(&mut worker).await;
                    driver::serve(&mut worker, claim, outbox, terminator).await
                });
                terminator.detach();
                let (output, log) = (worker.output, worker.log);
                drop(worker.runtime);
                output.wait();
                log.report();
                reason
            }
            Err(error) => EndReason::Setup { message: error.to_string() },
        }
    };
    // Blocking tasks that nobody waits for must not hold the thread.
    runtime.shutdown_background();
    reason
}
