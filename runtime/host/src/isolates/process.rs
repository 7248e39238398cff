//! A process that isolates live in, as the session's process sees it.

use std::collections::HashMap;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Child;
use std::process::ChildStderr;
use std::process::Command;
use std::process::ExitStatus;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::OnceLock;
use std::sync::PoisonError;
use std::sync::Weak;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tenon_protocol::control::COMMAND;
use tenon_protocol::control::IsolateId;
use tenon_protocol::control::Order;
use tenon_protocol::control::Report;
use tenon_protocol::descriptors;
use tenon_protocol::engine::Spare;
use tenon_protocol::message::IsolateUsage;
use tenon_protocol::slots::SLOTS;
use tenon_protocol::slots::Slot;
use tenon_protocol::slots::Slots;
use tenon_protocol::wire;
use tenon_protocol::wire::Decoder;
use tenon_protocol::wire::Json;
use tokio::sync::oneshot;
use tokio::sync::watch;

/// How long the host may take to take an order. It does nothing else, so a longer pause means that it
/// cannot be reached any more.
const ORDER_DEADLINE: Duration = Duration::from_secs(10);

/// How long the host may take to say what isolates use.
const USAGE_DEADLINE: Duration = Duration::from_secs(2);

/// How often it is asked whether it still listens.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// How often in a row it may fail to answer. Its main thread does nothing but listen; one that is silent for
/// half a minute is stopped, or has no processor any more.
const MAX_SILENT_BEATS: u32 = 4;

/// Lines of a dead host's standard error that are kept for the report.
const LAST_WORDS: usize = 8;

/// The longest of these lines.
const MAX_LAST_WORD: usize = 500;

/// How a host died.
#[derive(Debug, Clone)]
pub struct Death {
    /// In words.
    pub how: String,
    /// The isolates whose code was running.
    pub running: Vec<Slot>,
}

/// What isolates use, by their number.
type Usage = Vec<(IsolateId, IsolateUsage)>;

/// Who waits for the answer to which order.
type Answers = Arc<Mutex<HashMap<u64, oneshot::Sender<Usage>>>>;

/// A running host.
pub struct HostProcess {
    pid: u32,
    control: UnixStream,
    /// Held while an order is written, so that orders do not mix.
    writing: Mutex<()>,
    pub slots: Arc<Slots>,
    next: AtomicU64,
    /// Isolates that it was to start, and those of them that have ended.
    started: AtomicUsize,
    ended: AtomicUsize,
    /// How many may end in it before it takes no new ones; known once it is set up.
    max_ended: Arc<OnceLock<Option<usize>>>,
    reports: Answers,
    death: watch::Receiver<Option<Death>>,
}

impl HostProcess {
    /// Starts a host.
    pub fn start(program: &Path, spare: Spare) -> std::io::Result<Arc<Self>> {
        let (control, theirs) = UnixStream::pair()?;
        control.set_write_timeout(Some(ORDER_DEADLINE))?;
        let slots = Arc::new(Slots::new()?);
        let mut command = Command::new(program);
        command.arg(COMMAND).stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
        command.stderr(Stdio::piped());
        // A group of its own: an interrupt at the terminal is the session's to handle, and whatever its
        // extensions started can be ended with it.
        command.process_group(0);
        let mut child = command.spawn()?;
        let pid = child.id();
        let last_words = listen(child.stderr.take());
        let (dead, death) = watch::channel(None);
        let reports = Answers::default();
        let max_ended: Arc<OnceLock<Option<usize>>> = Arc::default();
        let watcher = Watcher {
            control: control.try_clone()?,
            reports: reports.clone(),
            max_ended: max_ended.clone(),
            slots: slots.clone(),
            dead,
            last_words,
        };
        let thread = std::thread::Builder::new().name("tenon-host-watch".into());
        thread.spawn(move || watcher.watch(child))?;
        let process = Self {
            pid,
            control,
            writing: Mutex::default(),
            slots,
            next: AtomicU64::new(1),
            started: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            max_ended,
            reports,
            death,
        };
        let setup = Order::Setup { spare: spare == Spare::Keep };
        process.order_with(setup, Some(process.slots.file().as_raw_fd()))?;
        let process = Arc::new(process);
        tokio::spawn(Self::look_after(Arc::downgrade(&process)));
        Ok(process)
    }

    /// Asks from time to time whether the host still listens, and ends one that does not.
    async fn look_after(host: Weak<Self>) {
        let mut silent = 0;
        loop {
            tokio::time::sleep(HEARTBEAT).await;
            let Some(host) = host.upgrade() else { return };
            if !host.is_alive() {
                return;
            }
            let request = host.number();
            let answer = host.ask(request, Order::Usage { request }, USAGE_DEADLINE).await;
            silent = if answer.is_some() { 0 } else { silent + 1 };
            if silent == MAX_SILENT_BEATS {
                host.end();
            }
        }
    }

    /// Ends the process, and whatever its extensions have started.
    pub fn end(&self) {
        let _ = self.control.shutdown(std::net::Shutdown::Both);
        if self.is_alive() {
            // SAFETY: kill takes two integers. It is waited for only after its control socket is found
            // closed, and the thread that does so kills the group as well; a moment later the number
            // could be somebody else's only if numbers came round at once.
            unsafe { libc::kill(-self.pid.cast_signed(), libc::SIGKILL) };
        }
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it has not died.
    pub fn is_alive(&self) -> bool {
        self.death.borrow().is_none()
    }

    /// An isolate is started in it.
    pub fn one_starts(&self) {
        self.started.fetch_add(1, Ordering::Relaxed);
    }

    /// An isolate in it has ended.
    pub fn one_ended(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether so many isolates have ended in it that the next are better off in another.
    pub fn is_worn_out(&self) -> bool {
        let ended = self.ended.load(Ordering::Relaxed);
        let most = self.max_ended.get().copied().flatten();
        is_worn_out(most, self.started.load(Ordering::Relaxed), ended)
    }

    /// A number for an isolate or a request.
    pub fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends an order; a host that is gone takes none, which its death will tell.
    pub fn order(&self, order: Order) {
        let _ = self.order_with(order, None);
    }

    /// Sends an order with a descriptor.
    pub fn order_with(&self, order: Order, descriptor: Option<i32>) -> std::io::Result<()> {
        let frame = wire::encode(&Json(order)).map_err(std::io::Error::other)?;
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let written = match descriptor {
            Some(descriptor) => descriptors::send(&self.control, &frame, descriptor),
            None => (&self.control).write_all(&frame),
        };
        if written.is_err() {
            // Half an order cannot be taken back: whoever reads it would misunderstand the next.
            let _ = self.control.shutdown(std::net::Shutdown::Both);
        }
        written
    }

    /// Waits until it has died.
    pub async fn died(&self) -> Death {
        let mut death = self.death.clone();
        let unknown = || Death { how: "nobody knows how".into(), running: Vec::new() };
        match death.wait_for(Option::is_some).await {
            Ok(death) => death.clone().unwrap_or_else(unknown),
            // The thread that watches is gone, which does not happen.
            Err(_) => unknown(),
        }
    }

    /// What its isolates use.
    pub async fn usage(&self) -> HashMap<IsolateId, IsolateUsage> {
        let request = self.number();
        let report = self.ask(request, Order::Usage { request }, USAGE_DEADLINE).await;
        report.map(|usage| usage.into_iter().collect()).unwrap_or_default()
    }

    /// Waits until it has answered a question that is asked now.
    pub async fn answers(&self) {
        loop {
            let request = self.number();
            if self.ask(request, Order::Usage { request }, USAGE_DEADLINE).await.is_some() {
                return;
            }
            if !self.is_alive() {
                return std::future::pending().await;
            }
        }
    }

    /// Waits until the spare, if one is kept, is ready.
    pub async fn await_spare(&self) {
        let request = self.number();
        self.ask(request, Order::AwaitSpare { request }, ORDER_DEADLINE).await;
    }

    async fn ask(&self, request: u64, order: Order, deadline: Duration) -> Option<Usage> {
        let (sender, answer) = oneshot::channel();
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).insert(request, sender);
        self.order(order);
        let answer = tokio::select! {
            answer = tokio::time::timeout(deadline, answer) => answer.ok().and_then(Result::ok),
            _ = self.died() => None,
        };
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).remove(&request);
        answer
    }
}

impl Drop for HostProcess {
    fn drop(&mut self) {
        // The host ends when it cannot hear us any more, and the thread that watches it with it.
        let _ = self.control.shutdown(std::net::Shutdown::Both);
    }
}

/// What the thread that watches a host has.
struct Watcher {
    control: UnixStream,
    reports: Answers,
    max_ended: Arc<OnceLock<Option<usize>>>,
    slots: Arc<Slots>,
    dead: watch::Sender<Option<Death>>,
    last_words: Arc<Mutex<Vec<String>>>,
}

impl Watcher {
    /// Takes reports until the host is gone, then says how it went.
    fn watch(self, mut child: Child) {
        let mut decoder = Decoder::default();
        let mut read = || -> std::io::Result<Option<Json<Report>>> {
            loop {
                if let Some(report) = decoder.take().map_err(std::io::Error::other)? {
                    return Ok(Some(report));
                }
                let mut nothing = Vec::new();
                if descriptors::receive(&self.control, decoder.room(), &mut nothing)? == 0 {
                    return Ok(None);
                }
            }
        };
        while let Ok(Some(Json(report))) = read() {
            match report {
                // It is set up once.
                Report::Ready { max_ended } => drop(self.max_ended.set(max_ended)),
                Report::Answer { request, usage } => {
                    let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(waiting) = reports.remove(&request) {
                        // The caller may have given up.
                        let _ = waiting.send(usage);
                    }
                }
            }
        }
        // Everybody in its group ends with it; until it is waited for, the number is its own.
        // SAFETY: kill takes two integers.
        unsafe { libc::kill(-child.id().cast_signed(), libc::SIGKILL) };
        let status = child.wait();
        let running: Vec<Slot> =
            (0..SLOTS as Slot).filter(|&slot| self.slots.is_running(slot)).collect();
        let mut how = status.map_or_else(|error| error.to_string(), describe);
        let words = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        if !words.is_empty() {
            how = format!("{how}; its last words: {}", words.join(" | "));
        }
        drop(words);
        self.dead.send_replace(Some(Death { how, running }));
    }
}

/// Keeps the last lines of a host's standard error.
fn listen(stderr: Option<ChildStderr>) -> Arc<Mutex<Vec<String>>> {
    let words: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = words.clone();
    let Some(stderr) = stderr else { return words };
    let thread = std::thread::Builder::new().name("tenon-host-words".into());
    // Without the thread its last words are not known; that is all.
    let _ = thread.spawn(move || {
        let mut reader = BufReader::new(stderr);
        let mut line = Vec::new();
        // Lines are read in bounded pieces: what is written there is nobody's to trust.
        while std::io::Read::take(&mut reader, 64 * 1024).read_until(b'\n', &mut line).unwrap_or(0)
            > 0
        {
            let text = String::from_utf8_lossy(&line);
            let text: String = text.trim().chars().take(MAX_LAST_WORD).collect();
            line.clear();
            if text.chars().any(char::is_alphanumeric) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() == LAST_WORDS {
                    kept.remove(0);
                }
                kept.push(text);
            }
        }
    });
    words
}

/// How a process ended, in words.
fn describe(status: ExitStatus) -> String {
    let name = |signal: i32| match signal {
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGILL => "SIGILL",
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGTERM => "SIGTERM",
        libc::SIGTRAP => "SIGTRAP",
        _ => "a signal",
    };
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("it was ended by {} ({signal})", name(signal)),
        (None, Some(code)) => format!("it exited with code {code}"),
        (None, None) => "it ended".to_owned(),
    }
}

/// Whether a process takes no new isolates: so many have ended in it, and no more live in it.
fn is_worn_out(most: Option<usize>, started: usize, ended: usize) -> bool {
    let live = started.saturating_sub(ended);
    most.is_some_and(|most| ended >= most.max(live))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_worn_out_by_as_many_ended_isolates_as_the_limit_or_as_live_in_it() {
        assert!(!is_worn_out(Some(32), 41, 31));
        assert!(is_worn_out(Some(32), 42, 32));
        assert!(!is_worn_out(Some(32), 99, 49), "50 live");
        assert!(is_worn_out(Some(32), 100, 50), "50 live");
        assert!(!is_worn_out(None, 1000, 1000));
    }

    #[test]
    fn a_death_is_described_by_signal_or_code() {
        assert_eq!(describe(ExitStatus::from_raw(11)), "it was ended by SIGSEGV (11)");
        assert_eq!(describe(ExitStatus::from_raw(3 << 8)), "it exited with code 3");
    }

    #[tokio::test]
    async fn a_program_that_is_no_host_is_reported_dead() {
        let process = HostProcess::start(Path::new("/bin/false"), Spare::None);
        // The order to set up may fail already: then it cannot even be started.
        if let Ok(process) = process {
            assert_eq!(process.died().await.how, "it exited with code 1");
            assert!(!process.is_alive());
        }
    }
}
