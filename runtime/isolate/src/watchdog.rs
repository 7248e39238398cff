//! One watcher for all isolates: it notices those that do not return to their event loop, and those with too
//! many child processes.
//!
//! An isolate at rest costs it one look at a number, a worker at rest one at its clock. An isolate in a turn
//! costs it a look at its clock, too, and one in a long turn is asked to measure its memory. When all are at rest and
//! have no child processes, it sleeps until the next turn begins.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::fence;
use std::time::Duration;
use std::time::Instant;

use tenon_protocol::limits::CHILDREN_LIMIT;
use tenon_protocol::limits::MEMORY_LIMIT;
use tokio::sync::Notify;

use crate::background;
use crate::children::Count;
use crate::children::Found;
use crate::floor::CpuClock;
use crate::floor::process_cpu_time;
use crate::limits;
use crate::limits::CHILDREN_INTERVAL;
use crate::limits::LOOKS_BEFORE_SLEEP;
use crate::limits::WATCH_IDLE_INTERVAL;
use crate::limits::WATCH_INTERVAL;
use crate::memory;
use crate::message::Breach;
use crate::message::IsolateLimits;

/// Counts the turns of an event loop: odd while one is going on, even at rest. Only the isolate's thread
/// writes; anybody may read.
#[derive(Default)]
pub struct TurnFlag(AtomicU32);

impl TurnFlag {
    /// The number of the turn; odd while it is going on.
    pub fn count(&self) -> u32 {
        self.0.load(Relaxed)
    }

    /// A turn begins; it is over when the result is dropped. The watcher wakes up if it sleeps.
    pub fn enter(&self) -> Turn<'_> {
        self.0.store(self.0.load(Relaxed) | 1, Relaxed);
        // Pairs with the fence of the watcher, which looks at the turns again after it has said that it sleeps.
        fence(SeqCst);
        if IS_ASLEEP.load(Relaxed) && IS_ASLEEP.swap(false, Relaxed) {
            AWAKE.notify_one();
        }
        Turn(&self.0)
    }
}

/// Whether the watcher sleeps until a turn begins.
static IS_ASLEEP: AtomicBool = AtomicBool::new(false);

/// Wakes the watcher.
static AWAKE: Notify = Notify::const_new();

/// A turn that is going on.
pub struct Turn<'a>(&'a AtomicU32);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store((self.0.load(Relaxed) | 1).wrapping_add(1), Relaxed);
    }
}

/// Asks an event loop that is not ours whether it still turns. The answer comes from a task on that loop.
#[derive(Default)]
pub struct Heartbeat {
    asked: AtomicU32,
    answered: AtomicU32,
    question: Notify,
}

impl Heartbeat {
    /// Answers for as long as the event loop is there that runs this.
    pub async fn answer(self: Arc<Self>) {
        loop {
            self.question.notified().await;
            self.answered.store(self.asked.load(Relaxed), Relaxed);
        }
    }

    fn ask(&self) {
        self.asked.fetch_add(1, Relaxed);
        self.question.notify_one();
    }

    fn is_answered(&self) -> bool {
        self.asked.load(Relaxed) == self.answered.load(Relaxed)
    }
}

/// What is done about the extension whose event loop is watched.
pub trait Watched: Send {
    /// Ends the extension for a limit that the given thread has reached.
    fn breach_on(&self, thread: i32, breach: Breach);

    /// Has the given thread measure its memory.
    fn measure(&self, thread: i32);

    /// Whether the process is the extension's own.
    fn is_alone(&self) -> bool;

    /// Its child processes, up to one more than the given number.
    fn find_children(&self, most: usize) -> Found;

    /// Has its own thread reap the child processes that it has adopted and that have ended.
    fn have_adopted_reaped(&self);
}

/// How an event loop shows that it turns.
pub enum Signs {
    /// It counts its turns: the extension's own.
    Turns(Arc<TurnFlag>),
    /// It answers: a worker's, which deno_runtime runs.
    Answers(Arc<Heartbeat>),
}

/// CPU time that a worker must have used before it is asked. Answering takes some itself, and must not be
/// the reason to ask again.
const WORTH_ASKING: Duration = Duration::from_millis(5);

/// CPU time of the process between two looks that means that something works. A look takes some itself.
const WORTH_LOOKING: Duration = Duration::from_millis(2);

/// One event loop that is watched.
struct Subject {
    id: u64,
    extension: Box<dyn Watched>,
    thread: i32,
    clock: Arc<CpuClock>,
    signs: Signs,
    limits: IsolateLimits,
    /// The turn it was last seen in.
    turn: u32,
    /// The CPU time it had used when it was first seen in that turn, or asked.
    cpu: Duration,
    /// When its child processes were last counted.
    counted_at: Option<Instant>,
    /// Whether it has done something since then.
    uncounted: bool,
    /// How many child processes it had then.
    children: usize,
}

/// What an event loop is found doing.
#[derive(PartialEq, Eq)]
enum Doing {
    /// Nothing, since the last look.
    Rest,
    /// Something else than at the last look.
    Work,
    /// Still the same as at the last look.
    LongTurn,
}

impl Subject {
    /// Looks once; false if it was at rest.
    fn look(&mut self, now: Instant) -> bool {
        let doing = self.find();
        let is_busy = doing != Doing::Rest;
        if doing == Doing::LongTurn {
            self.judge_turn();
        }
        // Also at rest, if it came to rest too soon after the last count: what it started last still runs. And as long
        // as something runs: what it has started may start more.
        self.uncounted |= is_busy || self.children > 0;
        let is_due = self.counted_at.is_none_or(|at| now.duration_since(at) >= CHILDREN_INTERVAL);
        if self.uncounted && is_due {
            self.counted_at = Some(now);
            self.uncounted = false;
            self.judge_children();
        }
        is_busy
    }

    /// Whether nothing can happen before its next turn. A worker does not say when its turns begin.
    fn can_be_left(&self) -> bool {
        matches!(self.signs, Signs::Turns(_)) && !self.uncounted && self.children == 0
    }

    /// Whether a turn is going on, or has been since the last look.
    fn has_moved(&self) -> bool {
        match &self.signs {
            Signs::Turns(flag) => flag.count() != self.turn || flag.count() % 2 == 1,
            Signs::Answers(_) => true,
        }
    }

    fn find(&mut self) -> Doing {
        match &self.signs {
            Signs::Turns(flag) => {
                let turn = flag.count();
                let is_inside = turn % 2 == 1;
                if turn == self.turn {
                    return if is_inside { Doing::LongTurn } else { Doing::Rest };
                }
                self.turn = turn;
                if is_inside {
                    self.cpu = self.clock.read();
                }
                Doing::Work
            }
            Signs::Answers(heartbeat) => {
                if !heartbeat.is_answered() {
                    return Doing::LongTurn;
                }
                let cpu = self.clock.read();
                if cpu.saturating_sub(self.cpu) < WORTH_ASKING {
                    return Doing::Rest;
                }
                self.cpu = cpu;
                heartbeat.ask();
                Doing::Work
            }
        }
    }

    fn judge_turn(&mut self) {
        let allowed = Duration::from_millis(self.limits.cpu_ms);
        let used = self.clock.read().saturating_sub(self.cpu);
        if used >= allowed {
            self.extension.breach_on(self.thread, self.cpu_breach());
        } else if cfg!(feature = "v8") {
            // What is outside QuickJS's heap is not counted, and measuring it takes long.
            self.extension.measure(self.thread);
        }
    }

    fn cpu_breach(&self) -> Breach {
        let time = show_time(self.limits.cpu_ms);
        let allowed = match self.signs {
            Signs::Turns(_) => {
                format!("its code ran for {time} of CPU time without returning to the event loop")
            }
            Signs::Answers(_) => format!(
                "a worker of it ran for {time} of CPU time without returning to its event loop"
            ),
        };
        limits::breach("cpu-ms", allowed)
    }

    /// All memory of the process, where it is the extension's alone.
    fn judge_memory(&self) {
        let most = self.limits.memory_bytes;
        if self.extension.is_alone() && memory::resident_bytes() > most {
            let megabytes = most / (1024 * 1024);
            let allowed = format!("the memory of its process reached the limit of {megabytes} MB");
            self.extension.breach_on(self.thread, limits::breach(MEMORY_LIMIT, allowed));
        }
    }

    fn judge_children(&mut self) {
        let most = self.limits.children;
        let found = self.extension.find_children(most);
        let count = found.count();
        self.children = count.running + count.ended;
        if let Some(allowed) = too_many(count, most) {
            self.extension.breach_on(self.thread, limits::breach(CHILDREN_LIMIT, allowed));
            return;
        }
        if count.ended > 0 {
            self.extension.have_adopted_reaped();
        }
        if count.running > 0 {
            self.judge_memory_of_all(found.running);
        }
    }

    /// The memory of the programs that it started, and of its own process where that is the extension's alone. A control group
    /// counts the same, if there is one, and more.
    fn judge_memory_of_all(&self, mut processes: Vec<i32>) {
        let most = self.limits.memory_bytes;
        if self.extension.is_alone() {
            processes.push(std::process::id().cast_signed());
        }
        if memory::together_exceed(&processes, most) {
            let megabytes = most / (1024 * 1024);
            let allowed = format!(
                "it and the programs that it started reached the limit of {megabytes} MB of memory together"
            );
            self.extension.breach_on(self.thread, limits::breach(MEMORY_LIMIT, allowed));
        }
    }
}

/// What is wrong with so many child processes, if they are more than the limit.
fn too_many(count: Count, most: usize) -> Option<String> {
    if count.running > most {
        return Some(format!("it had more than {most} child processes"));
    }
    #[cfg(target_os = "linux")]
    if count.ended > limits::MAX_ENDED_CHILDREN {
        let ended = limits::MAX_ENDED_CHILDREN;
        return Some(format!(
            "more than {ended} of its child processes had ended and it waited for none of them"
        ));
    }
    None
}

/// `10 s`, `250 ms`.
fn show_time(milliseconds: u64) -> String {
    match milliseconds {
        0 => "0 ms".to_owned(),
        time if time % 1000 == 0 => format!("{} s", time / 1000),
        time => format!("{time} ms"),
    }
}

/// Everything that is watched.
struct Subjects {
    subjects: Vec<Subject>,
    next_id: u64,
    /// Whether the watcher's task exists; it ends when nothing is left to watch.
    is_running: bool,
}

static WATCHED: Mutex<Subjects> =
    Mutex::new(Subjects { subjects: Vec::new(), next_id: 0, is_running: false });

/// An event loop is watched until this is dropped.
pub struct Watch(u64);

impl Drop for Watch {
    fn drop(&mut self) {
        if let Ok(mut watched) = WATCHED.lock() {
            watched.subjects.retain(|subject| subject.id != self.0);
        }
    }
}

/// Watches the event loop of the thread with the given number and clock.
pub fn watch(
    extension: Box<dyn Watched>,
    thread: i32,
    clock: Arc<CpuClock>,
    signs: Signs,
    limits: IsolateLimits,
) -> Watch {
    // The lock is poisoned only if we panicked; then nothing is watched.
    let Ok(mut watched) = WATCHED.lock() else { return Watch(u64::MAX) };
    let id = watched.next_id;
    watched.next_id += 1;
    let (turn, cpu) = (0, clock.read());
    let counted_at = None;
    watched.subjects.push(Subject {
        id,
        extension,
        thread,
        clock,
        signs,
        limits,
        turn,
        cpu,
        counted_at,
        uncounted: false,
        children: 0,
    });
    if !std::mem::replace(&mut watched.is_running, true) {
        background::spawn(run());
    }
    IS_ASLEEP.store(false, Relaxed);
    AWAKE.notify_one();
    Watch(id)
}

async fn run() {
    let mut interval = WATCH_INTERVAL;
    let mut quiet = 0;
    let mut used = process_cpu_time();
    loop {
        tokio::time::sleep(interval).await;
        let sleeps = {
            let Ok(mut watched) = WATCHED.lock() else { return };
            if watched.subjects.is_empty() {
                watched.is_running = false;
                return;
            }
            let now = Instant::now();
            let mut is_busy = false;
            for subject in &mut watched.subjects {
                is_busy |= subject.look(now);
            }
            // Native code takes memory on threads of its own, also while the event loop rests.
            let used_before = std::mem::replace(&mut used, process_cpu_time());
            if is_busy || used.saturating_sub(used_before) >= WORTH_LOOKING {
                watched.subjects.iter().for_each(Subject::judge_memory);
                is_busy = true;
            }
            interval = if is_busy { WATCH_INTERVAL } else { WATCH_IDLE_INTERVAL };
            quiet = if is_busy { 0 } else { quiet + 1 };
            quiet >= LOOKS_BEFORE_SLEEP && watched.fall_asleep()
        };
        if sleeps {
            AWAKE.notified().await;
            (interval, quiet) = (WATCH_INTERVAL, 0);
        }
    }
}

impl Subjects {
    /// Says that the watcher sleeps, unless something has begun meanwhile.
    fn fall_asleep(&self) -> bool {
        if !self.subjects.iter().all(Subject::can_be_left) {
            return false;
        }
        IS_ASLEEP.store(true, Relaxed);
        // A turn that begins now either sees that, or is seen below.
        fence(SeqCst);
        let stays_awake = self.subjects.iter().any(Subject::has_moved);
        if stays_awake {
            IS_ASLEEP.store(false, Relaxed);
        }
        !stays_awake
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminator::Terminator;

    #[test]
    fn a_turn_is_odd_while_it_goes_on() {
        let flag = TurnFlag::default();
        assert_eq!(flag.count(), 0);
        let turn = flag.enter();
        assert_eq!(flag.count(), 1);
        drop(turn);
        assert_eq!(flag.count(), 2);
        drop(flag.enter());
        assert_eq!(flag.count(), 4);
    }

    #[tokio::test]
    async fn an_event_loop_that_turns_answers() {
        let heartbeat = Arc::new(Heartbeat::default());
        let task = tokio::spawn(heartbeat.clone().answer());
        assert!(heartbeat.is_answered());
        heartbeat.ask();
        assert!(!heartbeat.is_answered());
        while !heartbeat.is_answered() {
            tokio::task::yield_now().await;
        }
        task.abort();
    }

    #[test]
    fn what_was_done_before_a_rest_is_counted_at_rest() {
        let flag = Arc::new(TurnFlag::default());
        let mut subject = Subject {
            id: 0,
            extension: Box::new(Terminator::default()),
            thread: 0,
            clock: Arc::new(CpuClock::of_this_thread()),
            signs: Signs::Turns(flag.clone()),
            limits: limits::default_limits(),
            turn: 0,
            cpu: Duration::ZERO,
            counted_at: None,
            uncounted: false,
            children: 0,
        };
        let first = Instant::now();
        drop(flag.enter());
        assert!(subject.look(first));
        assert_eq!(subject.counted_at, Some(first));
        drop(flag.enter());
        assert!(subject.look(first + CHILDREN_INTERVAL / 5));
        assert_eq!(subject.counted_at, Some(first));
        // It rests from now on; what it did last is looked at once.
        let due = first + CHILDREN_INTERVAL;
        assert!(!subject.look(due));
        assert_eq!(subject.counted_at, Some(due));
        assert!(!subject.look(due + CHILDREN_INTERVAL));
        assert_eq!(subject.counted_at, Some(due));
    }

    #[test]
    fn running_and_ended_children_have_limits_of_their_own() {
        let count = |running, ended| Count { running, ended };
        assert_eq!(too_many(count(4, 900), 4), None);
        assert!(too_many(count(5, 0), 4).unwrap().contains("more than 4 child processes"));
        #[cfg(target_os = "linux")]
        assert!(too_many(count(0, limits::MAX_ENDED_CHILDREN + 1), 4).is_some());
    }

    #[test]
    fn times_are_shown_in_the_unit_that_fits() {
        assert_eq!(show_time(10_000), "10 s");
        assert_eq!(show_time(1_500), "1500 ms");
        assert_eq!(show_time(0), "0 ms");
    }
}
