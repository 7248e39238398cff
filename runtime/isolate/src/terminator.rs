//! Ending an isolate from outside, whatever it is doing, and saying why.
//!
//! An extension that reached a limit is interrupted first: on its own thread its stack is taken, and then it
//! is terminated. If it does not get to an interruption in time, because it is in native code, it is
//! terminated without a stack.

mod usage;

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::OnceLock;
use std::sync::Weak;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use std::time::Instant;

use deno_core::v8;
use tenon_protocol::limits::MEMORY_LIMIT;

use crate::background;
use crate::children;
use crate::children::Found;
use crate::floor::CpuClock;
use crate::interrupt;
use crate::limits;
use crate::message::Breach;
use crate::message::EndReason;
use crate::message::FromIsolate;
use crate::message::IsolateLimits;
use crate::outbox::Outbox;
use crate::watchdog;
use crate::watchdog::Heartbeat;
use crate::watchdog::Signs;
use crate::watchdog::TurnFlag;
use crate::watchdog::Watch;
use crate::watchdog::Watched;

/// Ends JavaScript from outside, whatever it is doing. Clones are of the same isolate.
#[derive(Clone, Default)]
pub struct Terminator(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    /// Known once the isolate has an extension.
    limits: OnceLock<IsolateLimits>,
    /// The clock of the extension's own thread.
    clock: OnceLock<Arc<CpuClock>>,
    /// Whether the process is the extension's own.
    is_alone: AtomicBool,
    heap_bytes: AtomicU64,
    buffer_bytes: AtomicU64,
    /// Some of its child processes have ended.
    #[cfg(target_os = "linux")]
    children_ended: tokio::sync::Notify,
}

#[derive(Default)]
struct State {
    /// The engine instances of the extension: its own first, then those of its workers.
    places: Vec<Place>,
    /// The threads that start processes for the extension.
    threads: Vec<i32>,
    /// Nothing that it has started outlives it.
    leaves_nothing: bool,
    /// A limit that was reached, while its stack is being taken.
    pending: Option<Pending>,
    reason: Option<EndReason>,
    /// No JavaScript of the extension's own thread runs any more.
    is_over: bool,
    /// It is terminated again and again.
    is_insisted_on: bool,
    /// Its thread has noticed that.
    is_noticed: bool,
    end_is_told: bool,
    start_is_over: bool,
    start_is_held: bool,
    wake: Option<std::task::Waker>,
    outbox: Option<Outbox>,
}

/// An engine instance and its thread.
struct Place {
    thread: i32,
    is_worker: bool,
    handle: v8::IsolateHandle,
    /// It was asked to measure its memory and has not yet.
    is_measuring: Arc<AtomicBool>,
}

/// The limit of the heap, in the user's configuration.
pub const HEAP_LIMIT: &str = "heap-mb";

/// How often an isolate that reached a limit is asked where it stands.
const ASK_AGAIN: Duration = Duration::from_millis(25);

/// How long a thread is waited for: some time on a processor, not on the clock, because a machine with much to do
/// lets a busy thread wait; but not for ever.
struct Patience<'a> {
    terminator: &'a Terminator,
    began: Instant,
    used: Duration,
    cpu: Duration,
    wall: Duration,
}

impl Patience<'_> {
    fn is_over(&self) -> bool {
        let used = self.terminator.cpu_time().saturating_sub(self.used);
        used >= self.cpu || self.began.elapsed() >= self.wall
    }
}

struct Pending {
    breach: Breach,
    thread: i32,
}

impl Terminator {
    /// Terminates; the first reason given is the one that is reported, and a limit that was reached before
    /// is one.
    pub fn terminate(&self, reason: EndReason) {
        self.end(reason);
        let terminator = self.clone();
        background::spawn(async move {
            // The event loop notices by itself when it next turns. Stopping a script that is loading one of the
            // platform's own modules can abort the process, so it gets the time to do that.
            let notices = terminator.patience(limits::NOTICE_GRACE, limits::NOTICE_PATIENCE);
            while !notices.is_over() && !terminator.has_noticed() {
                tokio::time::sleep(ASK_AGAIN).await;
            }
            if !terminator.has_noticed() {
                terminator.stop_scripts();
            }
        });
    }

    /// The same, but stops the scripts at once: for an isolate that has had its time to end.
    pub fn force(&self, reason: EndReason) {
        self.end(reason);
        self.stop_scripts();
    }

    fn end(&self, reason: EndReason) {
        let Ok(mut state) = self.0.state.lock() else { return };
        state.end(reason);
        drop(state);
        self.end_workers_later();
    }

    /// Stops the extension's own scripts, wherever they are.
    fn stop_scripts(&self) {
        if let Ok(state) = self.0.state.lock() {
            state.stop_own_scripts();
        }
        self.insist();
    }

    /// Whether the extension's thread has noticed that it was terminated, or has ended.
    fn has_noticed(&self) -> bool {
        self.0.state.lock().map_or(true, |state| state.is_over || state.is_noticed)
    }

    /// Stops the extension's own scripts again and again until its thread has noticed. Once is not enough on V8: some
    /// of Deno's ops catch a termination and throw `null` in its place, which the extension can catch too. QuickJS
    /// runs nothing more until the termination is taken back.
    fn insist(&self) {
        if cfg!(feature = "quickjs") {
            return;
        }
        {
            let Ok(mut state) = self.0.state.lock() else { return };
            if std::mem::replace(&mut state.is_insisted_on, true) {
                return;
            }
        }
        let inner = Arc::downgrade(&self.0);
        background::spawn(async move {
            loop {
                tokio::time::sleep(ASK_AGAIN).await;
                let Some(terminator) = Self::upgrade(&inner) else { return };
                let Ok(mut state) = terminator.0.state.lock() else { return };
                if state.is_over || state.is_noticed {
                    state.is_insisted_on = false;
                    return;
                }
                state.stop_own_scripts();
            }
        });
    }

    /// The extension's thread has noticed that it was terminated, and runs nothing more of the extension.
    pub fn notice(&self) {
        if let Ok(mut state) = self.0.state.lock() {
            state.is_noticed = true;
        }
    }

    /// The extension reached a limit: its stack is taken where it stands, and it is terminated.
    pub fn breach(&self, breach: Breach) {
        let thread = self.0.state.lock().ok().and_then(|state| Some(state.places.first()?.thread));
        self.breach_on(thread.unwrap_or_default(), breach);
    }

    /// The same for the isolate on the given thread, which may be a worker's. It may be called from inside
    /// the engine, in the middle of an allocation.
    pub fn breach_on(&self, thread: i32, breach: Breach) {
        let takes_memory = self.is_alone() && breach.limit == MEMORY_LIMIT;
        {
            let Ok(mut state) = self.0.state.lock() else { return };
            if state.reason.is_some() || state.is_over {
                // It was terminated and runs again, or still: a handler that runs at the end, a worker.
                state.stop_scripts(thread);
                return;
            }
            if state.pending.is_some() {
                return;
            }
            state.pending = Some(Pending { breach, thread });
        }
        self.ask_for_stack(thread);
        let terminator = self.clone();
        background::spawn(async move {
            let asked = if takes_memory {
                terminator.patience(limits::MEMORY_GRACE, limits::MEMORY_PATIENCE)
            } else {
                terminator.patience(limits::STACK_GRACE, limits::STACK_PATIENCE)
            };
            while !asked.is_over() {
                tokio::time::sleep(ASK_AGAIN).await;
                if takes_memory && terminator.has_far_too_much_memory()
                    || !terminator.ask_for_stack(thread)
                {
                    break;
                }
            }
            terminator.conclude(thread, String::new());
            let ends = if takes_memory {
                terminator.patience(limits::MEMORY_GRACE, limits::MEMORY_PATIENCE)
            } else {
                terminator.patience(limits::GIVE_UP_AFTER, limits::GIVE_UP_PATIENCE)
            };
            while !ends.is_over() {
                // Also when its thread has ended: others may go on.
                if takes_memory && terminator.has_far_too_much_memory() {
                    terminator.exit_at_once();
                    return;
                }
                if !takes_memory && terminator.is_over() {
                    break;
                }
                tokio::time::sleep(ASK_AGAIN).await;
            }
            terminator.give_up();
        });
    }

    /// Tells why the extension is ended, and ends its process, whatever its threads do.
    fn exit_at_once(&self) {
        let told = {
            let Ok(state) = self.0.state.lock() else { return };
            state.outbox.clone().zip(state.reason.clone())
        };
        // If its own thread has told, or is about to, it exits next.
        if let Some((outbox, reason)) = told
            && self.tell_end()
        {
            outbox.send(FromIsolate::Ended(reason));
            self.exit();
        }
    }

    /// Ends the process if it is the extension's own: what a thread does, such as allocating, it would do until the session has
    /// the process killed.
    fn exit(&self) {
        #[cfg(target_os = "linux")]
        if self.is_alone() {
            // SAFETY: it takes an integer and does not return.
            unsafe { libc::_exit(1) }
        }
    }

    /// Patience with the extension's own thread that begins now.
    fn patience(&self, cpu: Duration, wall: Duration) -> Patience<'_> {
        Patience { terminator: self, began: Instant::now(), used: self.cpu_time(), cpu, wall }
    }

    /// The CPU time of the extension's own thread.
    pub fn cpu_time(&self) -> Duration {
        self.0.clock.get().map(|clock| clock.read()).unwrap_or_default()
    }

    /// Interrupts the isolate on the given thread to see where it stands, if it still matters.
    fn ask_for_stack(&self, thread: i32) -> bool {
        let Ok(state) = self.0.state.lock() else { return false };
        let Some(pending) = &state.pending else { return false };
        let is_urgent = pending.breach.limit == HEAP_LIMIT;
        if let Some(place) = state.place(thread) {
            let inner = Arc::downgrade(&self.0);
            interrupt::request(&place.handle, move |isolate| {
                if let Some(terminator) = Self::upgrade(&inner) {
                    let stack = interrupt::stack(isolate);
                    // Nothing of the extension is running, only the platform. It may be in a moment, and unless
                    // memory runs out there is time to wait for that.
                    if !stack.is_empty() || is_urgent {
                        terminator.conclude(thread, stack);
                    }
                }
            });
        }
        true
    }

    /// Terminates for the limit that was reached, if one was and has not been acted upon. The stack is of
    /// the given thread.
    pub fn conclude(&self, thread: i32, stack: String) {
        let Ok(mut state) = self.0.state.lock() else { return };
        let Some(Pending { mut breach, thread: culprit }) = state.pending.take() else { return };
        if thread == culprit {
            breach.stack = stack;
        }
        state.end(EndReason::Limit(breach));
        state.stop_own_scripts();
        state.stop_scripts(culprit);
        drop(state);
        self.insist();
        self.end_workers_later();
    }

    /// The extension's thread has not ended: it is in a system call or in native code that does not return.
    /// Nobody waits for it any longer.
    fn give_up(&self) {
        let given_up = {
            let Ok(state) = self.0.state.lock() else { return };
            if state.is_over { None } else { state.outbox.clone().zip(state.reason.clone()) }
        };
        if let Some((outbox, reason)) = given_up
            && self.tell_end()
        {
            outbox.send(FromIsolate::Ended(reason));
            self.exit();
        }
    }

    /// Whether the end of the isolate is still to be told; true once.
    pub fn tell_end(&self) -> bool {
        self.0.state.lock().is_ok_and(|mut state| !std::mem::replace(&mut state.end_is_told, true))
    }

    /// Workers end by themselves once their extension is gone. Those that do not hear of it, because they
    /// run, are terminated. Not at once: one that is just starting would end the process.
    fn end_workers_later(&self) {
        let has_workers = |state: &State| state.places.iter().any(|place| place.is_worker);
        if !self.0.state.lock().is_ok_and(|state| has_workers(&state)) {
            return;
        }
        let inner = Arc::downgrade(&self.0);
        background::spawn(async move {
            loop {
                tokio::time::sleep(limits::TERMINATE_GRACE).await;
                let Some(terminator) = Self::upgrade(&inner) else { return };
                let Ok(state) = terminator.0.state.lock() else { return };
                if !has_workers(&state) {
                    return;
                }
                state.places.iter().filter(|place| place.is_worker).for_each(Place::stop_scripts);
            }
        });
    }

    fn upgrade(inner: &Weak<Inner>) -> Option<Self> {
        inner.upgrade().map(Self)
    }

    /// The extension has joined, or ended: its start deadline no longer counts.
    pub fn end_start(&self) {
        if let Ok(mut state) = self.0.state.lock() {
            state.start_is_over = true;
        }
    }

    /// While a person is being asked about the extension, its start deadline does not count.
    pub fn hold_start(&self, held: bool) {
        if let Ok(mut state) = self.0.state.lock() {
            state.start_is_held = held;
        }
    }

    /// Whether the start deadline does not count for now.
    pub fn start_is_held(&self) -> bool {
        self.0.state.lock().is_ok_and(|state| state.start_is_held)
    }

    /// Terminates the isolate if the extension has not joined when its deadline is over. The isolate
    /// looks at its own clock too; this is for one that does not get to look.
    pub fn watch_start(&self, deadline: Duration, outbox: &Outbox) {
        if let Ok(mut state) = self.0.state.lock() {
            state.outbox = Some(outbox.clone());
        }
        let terminator = self.clone();
        background::spawn(async move {
            // What it does with its own clock, saying goodbye included, takes that long at most.
            let patience = deadline + limits::STOP_DEADLINE + limits::TERMINATE_GRACE;
            tokio::time::sleep(patience).await;
            while terminator.start_is_held() {
                tokio::time::sleep(patience).await;
            }
            if terminator.start_is_over() {
                return;
            }
            let deadline_ms = deadline.as_millis() as u64;
            terminator.force(EndReason::NoJoin { deadline_ms });
            tokio::time::sleep(limits::TERMINATE_GRACE).await;
            if !terminator.start_is_over() {
                terminator.give_up();
            }
        });
    }

    fn start_is_over(&self) -> bool {
        self.0.state.lock().map_or(true, |state| state.start_is_over)
    }

    /// Why it was terminated, if it was.
    pub fn reason(&self) -> Option<EndReason> {
        self.0.state.lock().ok()?.reason.clone()
    }

    /// Whether the extension's own thread runs no JavaScript any more.
    pub fn is_over(&self) -> bool {
        self.0.state.lock().map_or(true, |state| state.is_over)
    }

    /// Wakes the given task on termination, so that an isolate that waits for work notices.
    pub fn notify(&self, waker: &std::task::Waker) {
        if let Ok(mut state) = self.0.state.lock() {
            state.wake = Some(waker.clone());
        }
    }

    /// Counts the calling thread among those that start processes for the extension.
    pub fn attach_thread(&self) {
        if let Ok(mut state) = self.0.state.lock() {
            state.threads.push(children::current_thread());
        }
    }

    /// The calling thread is the extension's, and has this engine instance.
    pub fn attach(&self, handle: v8::IsolateHandle) {
        let _ = self.0.clock.set(Arc::new(CpuClock::of_this_thread()));
        if let Ok(mut state) = self.0.state.lock() {
            state.places.insert(0, Place::here(handle, false));
        }
    }

    /// Ends the extension's processes, while the threads that started them still exist.
    pub fn detach(&self) {
        if let Some(clock) = self.0.clock.get() {
            clock.stop();
        }
        if let Ok(mut state) = self.0.state.lock() {
            state.is_over = true;
            state.places.retain(|place| place.is_worker);
            state.kill_children(false);
            state.threads.clear();
        }
        self.end_workers_later();
    }

    /// The calling thread is a worker's, and has this engine instance. It ends with the extension, and is
    /// watched; to be called inside the tokio runtime of its event loop, with the platform ready.
    pub fn attach_worker(&self, handle: v8::IsolateHandle) -> WorkerSeat {
        let thread = children::current_thread();
        if let Ok(mut state) = self.0.state.lock() {
            state.places.push(Place::here(handle, true));
        }
        let clock = Arc::new(CpuClock::of_this_thread());
        let watch = self.limits().map(|limits| {
            let heartbeat = Arc::new(Heartbeat::default());
            tokio::spawn(heartbeat.clone().answer());
            watchdog::watch(
                Box::new(self.clone()),
                thread,
                clock.clone(),
                Signs::Answers(heartbeat),
                limits,
            )
        });
        WorkerSeat { terminator: self.clone(), thread, clock, _watch: watch }
    }

    /// Sets the limits, once the extension is known, and has its thread, the calling one, watched until the
    /// result is dropped. It counts its turns in the given place.
    pub fn set_limits(&self, limits: IsolateLimits, turns: Arc<TurnFlag>) -> Option<Watch> {
        // Set once, when the isolate takes on its extension.
        let _ = self.0.limits.set(limits);
        let clock = self.0.clock.get()?.clone();
        let thread = children::current_thread();
        Some(watchdog::watch(Box::new(self.clone()), thread, clock, Signs::Turns(turns), limits))
    }

    /// The process is the extension's own, so that all its memory counts.
    #[cfg(target_os = "linux")]
    pub fn own_process(&self) {
        self.0.is_alone.store(true, Relaxed);
    }

    /// From now on nothing outlives the extension that it has started, detached or not.
    #[cfg(target_os = "linux")]
    pub fn leave_nothing(&self) {
        if let Ok(mut state) = self.0.state.lock() {
            state.leaves_nothing = true;
        }
    }

    /// Whether the process is the extension's own.
    pub fn is_alone(&self) -> bool {
        self.0.is_alone.load(Relaxed)
    }

    /// The limits, once the extension is known.
    pub fn limits(&self) -> Option<IsolateLimits> {
        self.0.limits.get().copied()
    }
}

impl State {
    /// Stops the extension's own scripts and its processes, and wakes its thread.
    fn end(&mut self, reason: EndReason) {
        // A limit that was reached first is the reason, with or without a stack.
        let reason = match self.pending.take() {
            Some(pending) => {
                self.stop_scripts(pending.thread);
                EndReason::Limit(pending.breach)
            }
            None => reason,
        };
        let reason = self.reason.get_or_insert(reason);
        let takes_all =
            matches!(reason, EndReason::Limit(breach) if limits::counts_children(breach));
        // A synchronous child process would hold the thread as long as it runs.
        self.kill_children(takes_all);
        self.is_noticed = false;
        if let Some(waker) = self.wake.take() {
            waker.wake();
        }
    }

    /// Ends the processes that the extension has started, except those that may outlive it.
    fn kill_children(&self, even_detached: bool) {
        let kill = if even_detached || self.leaves_nothing {
            children::kill_even_detached
        } else {
            children::kill_all
        };
        self.threads.iter().for_each(|&thread| kill(thread));
    }

    fn stop_own_scripts(&self) {
        self.places.iter().filter(|place| !place.is_worker).for_each(Place::stop_scripts);
    }

    fn stop_scripts(&self, thread: i32) {
        if let Some(place) = self.place(thread) {
            place.stop_scripts();
        }
    }

    fn place(&self, thread: i32) -> Option<&Place> {
        self.places.iter().find(|place| place.thread == thread)
    }
}

impl Place {
    fn here(handle: v8::IsolateHandle, is_worker: bool) -> Self {
        Self { thread: children::current_thread(), is_worker, handle, is_measuring: Arc::default() }
    }

    fn stop_scripts(&self) {
        self.handle.terminate_execution();
    }
}

impl Watched for Terminator {
    fn breach_on(&self, thread: i32, breach: Breach) {
        Self::breach_on(self, thread, breach);
    }

    fn measure(&self, thread: i32) {
        Self::measure(self, thread);
    }

    fn is_alone(&self) -> bool {
        Self::is_alone(self)
    }

    fn find_children(&self, most: usize) -> Found {
        Self::find_children(self, most)
    }

    fn have_adopted_reaped(&self) {
        Self::have_adopted_reaped(self);
    }
}

/// A worker's thread belongs to its extension until this is dropped, on that thread.
pub struct WorkerSeat {
    terminator: Terminator,
    thread: i32,
    clock: Arc<CpuClock>,
    _watch: Option<Watch>,
}

impl Drop for WorkerSeat {
    fn drop(&mut self) {
        self.clock.stop();
        let Ok(mut state) = self.terminator.0.state.lock() else { return };
        state.places.retain(|place| place.thread != self.thread);
        state.threads.retain(|&thread| thread != self.thread);
        drop(state);
        // Once the thread is gone nobody knows whose its processes are.
        children::kill_all(self.thread);
    }
}
