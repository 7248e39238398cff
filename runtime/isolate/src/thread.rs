//! The thread of one isolate, from the first instruction to the last.

use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::PoisonError;

use tokio::sync::oneshot;
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
        if let Some(reason) = reason
            && terminator.tell_end()
        {
            outbox.send(FromIsolate::Ended(reason));
        }
        let _ = ended.send(true);
    };
    builder.spawn(run).map(drop).map_err(|source| EngineError::Thread { id: id.to_owned(), source })
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
        let made = {
            let _turn = Turnstile::pass();
            worker::create(heap_bytes, outbox.clone(), terminator)
        };
        match made {
            Ok(mut worker) => {
                terminator.attach(worker.runtime.v8_isolate().thread_safe_handle());
                let reason = runtime.block_on(async {
                    let claim = driver::warm_up(&mut worker, claim, warm).await?;
                    Some(driver::serve(&mut worker, claim, outbox, terminator).await)
                });
                terminator.detach();
                let (output, log) = (worker.output, worker.log);
                drop(worker.runtime);
                output.wait();
                log.report();
                reason
            }
            Err(error) => Some(EndReason::Setup { message: error.to_string() }),
        }
    };
    // Blocking tasks that nobody waits for must not hold the thread.
    runtime.shutdown_background();
    reason
}
