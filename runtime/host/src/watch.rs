//! Noticing changes on disk.
//!
//! Folders are watched, not files: editors save by renaming a new file over the old one, and a watch
//! would stay with the old one. What has to be watched is worked out anew whenever a folder comes or
//! goes (`watch/plan.rs`). Where the system cannot tell of changes, the same paths are looked at again
//! and again (`watch/stamps.rs`).

mod plan;
mod stamps;

use parking_lot::Mutex;
use parking_lot::MutexGuard;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use std::time::Instant;

use notify::ErrorKind;
use notify::EventKind;
use notify::RecommendedWatcher;
use notify::RecursiveMode;
use notify::Watcher as _;

use self::plan::Meaning;
use self::plan::Plan;
use self::stamps::Stamps;

/// How often to look where it was not asked for: a person does not notice the second, and looking at a
/// thousand extensions takes some milliseconds.
pub const FALLBACK_POLL: Duration = Duration::from_secs(1);

/// The shortest time between two looks, so that a mistake in the configuration does not take a core.
const MIN_POLL: Duration = Duration::from_millis(10);

/// In a storm of changes that never gets quiet, changes count at the latest after this many times the
/// time it should be quiet: long enough for a checkout, short enough not to look broken.
const MAX_WAIT: u32 = 8;

/// How often in a row the disk is looked at for more to watch. A path has hardly as many missing
/// folders; somebody who makes folders without end must not keep us busy.
const MAX_ROUNDS: usize = 16;

/// Signals that are taken together, so that a storm does not make us work out what to watch for each.
const MAX_BATCH: usize = 4096;

/// How changes are noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The system tells.
    Native,
    /// By looking, this often.
    Poll(Duration),
}

/// Changes cannot be noticed.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// There is no thread to do it.
    #[error("the thread that watches files cannot be started: {0}")]
    Thread(#[source] std::io::Error),
}

/// Notices changes on disk, until it is dropped.
pub struct Watcher {
    shared: Arc<Shared>,
    signals: mpsc::Sender<Signal>,
}

struct Shared {
    state: Mutex<State>,
    ended: AtomicBool,
}

/// What the watcher's thread is told.
enum Signal {
    Event(notify::Result<notify::Event>),
    /// Something has changed, as was noticed elsewhere.
    Changed,
    /// Look how long to wait.
    Wake,
}

impl Watcher {
    /// Starts a thread that calls `on_change` once it was quiet for `debounce` after a change. Nothing
    /// is watched yet. Where the system has no watches left, changes are noticed by looking instead,
    /// which [`Self::mode`] and [`Self::problems`] tell.
    pub fn new(
        mode: Mode,
        debounce: Duration,
        on_change: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, WatchError> {
        let (signals, received) = mpsc::channel();
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(mode, &signals)),
            ended: AtomicBool::new(false),
        });
        let thread = Thread { shared: shared.clone(), received, debounce, burst: None };
        std::thread::Builder::new()
            .name("tenon-watch".to_owned())
            .spawn(move || thread.run(&on_change))
            .map_err(WatchError::Thread)?;
        Ok(Self { shared, signals })
    }

    /// Replaces what is watched: `roots` are folders whose sub-folders are extensions, and need not
    /// exist; `files` are what extensions were loaded from, or wanted to be. Changes after this has
    /// returned are noticed; whoever read a file before looks at it once more.
    pub fn watch(&self, roots: &[PathBuf], files: impl FnOnce() -> BTreeSet<PathBuf>) {
        let mut state = self.shared.state();
        // What changed since the last look would be lost with what was seen then.
        let changed = state.look();
        state.roots = roots.to_vec();
        // Asked for under the lock, so that of two sets the newer one stays.
        state.files = files();
        state.arm_all();
        drop(state);
        let _ = self.signals.send(if changed { Signal::Changed } else { Signal::Wake });
    }

    /// Something has changed, as was noticed elsewhere. It is told when it is quiet, like all else.
    pub fn changed(&self) {
        let _ = self.signals.send(Signal::Changed);
    }

    /// How changes are really noticed.
    pub fn mode(&self) -> Mode {
        match &self.shared.state().how {
            How::Native { .. } => Mode::Native,
            How::Poll { interval, .. } => Mode::Poll(*interval),
        }
    }

    /// What could not be watched, in words.
    pub fn problems(&self) -> Vec<String> {
        let state = self.shared.state();
        let all = state.fallback.iter().chain(&state.plan.problems).chain(&state.refused);
        all.cloned().collect()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        // Not waited for: the thread may be in `on_change`, and that may be who drops us.
        let _ = self.signals.send(Signal::Wake);
    }
}

impl Shared {
    /// Never held while `on_change` runs.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Changes that were noticed and not told yet.
#[derive(Clone, Copy)]
struct Burst {
    first: Instant,
    last: Instant,
}

struct Thread {
    shared: Arc<Shared>,
    received: mpsc::Receiver<Signal>,
    debounce: Duration,
    burst: Option<Burst>,
}

impl Thread {
    fn run(mut self, on_change: &dyn Fn()) {
        while let Some(signals) = self.wait() {
            let changed = {
                let mut state = self.shared.state();
                let told = state.take_in(signals);
                state.look_if_due() || told
            };
            // The time after arming counts: what was made in a new folder before it was watched is
            // there when `on_change` looks.
            let now = Instant::now();
            if changed {
                let first = self.burst.map_or(now, |burst| burst.first);
                self.burst = Some(Burst { first, last: now });
            }
            if self.call_at().is_some_and(|at| at <= now) {
                self.burst = None;
                on_change();
            }
        }
    }

    /// When the changes that were noticed are told.
    fn call_at(&self) -> Option<Instant> {
        let Burst { first, last } = self.burst?;
        Some((last + self.debounce).min(first + self.debounce * MAX_WAIT))
    }

    /// Waits for signals or for something that is due; `None` at the end.
    fn wait(&self) -> Option<Vec<Signal>> {
        let due = [self.call_at(), self.shared.state().next_look()].into_iter().flatten().min();
        let first = match due {
            None => self.received.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(due) => self.received.recv_timeout(due.saturating_duration_since(Instant::now())),
        };
        let mut signals = match first {
            Ok(signal) => vec![signal],
            Err(RecvTimeoutError::Timeout) => Vec::new(),
            Err(RecvTimeoutError::Disconnected) => return None,
        };
        signals.extend(self.received.try_iter().take(MAX_BATCH));
        (!self.shared.ended.load(Ordering::Relaxed)).then_some(signals)
    }
}

struct State {
    roots: Vec<PathBuf>,
    files: BTreeSet<PathBuf>,
    plan: Plan,
    how: How,
    /// Why the system's notifications are not used although they were asked for.
    fallback: Option<String>,
    /// Folders that cannot be watched, with the reason.
    refused: Vec<String>,
}

enum How {
    Native {
        watcher: RecommendedWatcher,
        /// The folders that are watched, and which folder had the name then; `None` if something has
        /// happened to it since.
        armed: BTreeMap<PathBuf, Option<(u64, u64)>>,
    },
    Poll {
        interval: Duration,
        next: Instant,
        seen: Stamps,
    },
}

impl State {
    fn new(mode: Mode, signals: &mpsc::Sender<Signal>) -> Self {
        let mut state = Self {
            roots: Vec::new(),
            files: BTreeSet::new(),
            plan: Plan::default(),
            how: How::poll(FALLBACK_POLL),
            fallback: None,
            refused: Vec::new(),
        };
        match mode {
            Mode::Poll(interval) => state.how = How::poll(interval),
            Mode::Native => match native(signals.clone()) {
                Ok(watcher) => state.how = How::Native { watcher, armed: BTreeMap::new() },
                Err(error) => state.fall_back(&error),
            },
        }
        state
    }

    /// Takes what the thread was told; whether anything has changed that matters.
    fn take_in(&mut self, signals: Vec<Signal>) -> bool {
        let (mut changed, mut structure) = (false, false);
        for signal in signals {
            match signal {
                Signal::Wake => {}
                Signal::Changed => changed = true,
                Signal::Event(Ok(event)) if !event.need_rescan() => {
                    for path in &event.paths {
                        let meaning = self.plan.meaning(path);
                        changed |= meaning != Meaning::Nothing;
                        if meaning == Meaning::Structure {
                            structure = true;
                            self.forget(path);
                        }
                    }
                }
                // Events were lost, so anything may have happened.
                Signal::Event(_) => {
                    (changed, structure) = (true, true);
                    self.forget(Path::new("/"));
                }
            }
        }
        if structure {
            self.arm_all();
        }
        changed
    }

    /// Something happened to a folder, so it and what is below may no longer be watched: `notify` ends
    /// the watches of a folder that goes and of all below it, by name.
    fn forget(&mut self, folder: &Path) {
        if let How::Native { armed, .. } = &mut self.how {
            let below = armed.range_mut(folder.to_owned()..);
            below
                .take_while(|(armed, _)| armed.starts_with(folder))
                .for_each(|(_, identity)| *identity = None);
        }
    }

    /// Works out what to watch, and watches it.
    fn arm_all(&mut self) {
        for _ in 0..MAX_ROUNDS {
            self.plan = Plan::new(&self.roots, &self.files);
            // What came into a folder before it was watched was not told; so look again.
            if !self.arm() {
                break;
            }
        }
        if let How::Poll { seen, .. } = &mut self.how {
            *seen = Stamps::of(&self.plan);
        }
    }

    /// Watches the folders of the plan; whether there was a new one among them.
    fn arm(&mut self) -> bool {
        let How::Native { watcher, armed } = &mut self.how else { return false };
        armed.retain(|folder, _| {
            let wanted = self.plan.folders.contains(folder);
            if !wanted {
                // It may be gone, and its watch with it.
                let _ = watcher.unwatch(folder);
            }
            wanted
        });
        self.refused.clear();
        let mut any_new = false;
        for folder in &self.plan.folders {
            let Some(identity) = stamps::identity(folder) else { continue };
            match armed.get(folder) {
                Some(known) if *known == Some(identity) => continue,
                // The watch may belong to another folder that had this name.
                Some(_) => drop(watcher.unwatch(folder)),
                None => {}
            }
            match watcher.watch(folder, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    armed.insert(folder.clone(), Some(identity));
                    any_new = true;
                }
                Err(error) if is_limit(&error) => {
                    self.fall_back(&error);
                    return false;
                }
                // It has gone again; whoever took it away is told of in the folder above.
                Err(notify::Error { kind: ErrorKind::PathNotFound, .. }) => {}
                Err(notify::Error { kind, .. }) => {
                    let reason = notify::Error::new(kind);
                    self.refused.push(format!("{} cannot be watched: {reason}", folder.display()));
                }
            }
        }
        any_new
    }

    /// The system cannot tell of changes: look for them.
    fn fall_back(&mut self, error: &notify::Error) {
        self.fallback = Some(format!(
            "changes are looked for every {} s, because the system does not tell of them: {}",
            FALLBACK_POLL.as_secs(),
            explain(error)
        ));
        self.how = How::poll(FALLBACK_POLL);
    }

    fn next_look(&self) -> Option<Instant> {
        match &self.how {
            How::Poll { next, .. } => Some(*next),
            How::Native { .. } => None,
        }
    }

    fn look_if_due(&mut self) -> bool {
        self.next_look().is_some_and(|next| next <= Instant::now()) && self.look()
    }

    /// Looks whether something is different, where changes are noticed that way.
    fn look(&mut self) -> bool {
        let How::Poll { interval, next, seen } = &mut self.how else { return false };
        self.plan = Plan::new(&self.roots, &self.files);
        let now = Stamps::of(&self.plan);
        // From the end of the look: a slow disk must not be looked at all the time.
        *next = Instant::now() + *interval;
        let changed = *seen != now;
        *seen = now;
        changed
    }
}

impl How {
    fn poll(interval: Duration) -> Self {
        let interval = interval.max(MIN_POLL);
        Self::Poll { interval, next: Instant::now() + interval, seen: Stamps::default() }
    }
}

/// The system's notifications. That a file is opened or closed is no change.
fn native(signals: mpsc::Sender<Signal>) -> notify::Result<RecommendedWatcher> {
    // The library panics with the first folder if it was given no thread.
    let thread = std::thread::Builder::new().spawn(|| {}).map_err(notify::Error::io)?;
    // It does nothing that could panic.
    let _ = thread.join();
    notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let is_access = matches!(&event, Ok(event) if matches!(event.kind, EventKind::Access(_)));
        if !is_access {
            let _ = signals.send(Signal::Event(event));
        }
    })
}

/// Whether the system has nothing left to watch with.
fn is_limit(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::MaxFilesWatch => true,
        ErrorKind::Io(error) => {
            matches!(
                error.raw_os_error(),
                Some(libc::ENOSPC | libc::EMFILE | libc::ENFILE | libc::EAGAIN)
            )
        }
        _ => false,
    }
}

fn explain(error: &notify::Error) -> String {
    match &error.kind {
        ErrorKind::MaxFilesWatch => {
            "its limit of watched folders is reached (fs.inotify.max_user_watches)".to_owned()
        }
        ErrorKind::Io(error) if error.raw_os_error() == Some(libc::EMFILE) => {
            "its limit of watchers or open files is reached (fs.inotify.max_user_instances, \
             ulimit -n)"
                .to_owned()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
