//! The zygote as a session sees it: found or started, given orders, its reports passed on.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use sha2::Digest;
use tenon_protocol::descriptors;
use tenon_protocol::wire;
use tenon_protocol::wire::Decoder;
use tenon_protocol::wire::Json;
use tenon_protocol::zygote::COMMAND;
use tenon_protocol::zygote::IDLE_VARIABLE;
use tenon_protocol::zygote::Order;
use tenon_protocol::zygote::ProcessNumber;
use tenon_protocol::zygote::Report;
use tokio::io::AsyncBufReadExt;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::process::ChildStderr;
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::sync::oneshot;
use tokio::sync::watch;

use crate::store::make_private_folder;

/// The longest path of a socket, in bytes: `sun_path` has 108, the last one is zero.
const MAX_SOCKET_PATH: usize = 107;

/// Variables of the environment that a zygote gets. Extensions have the environment of their own session; this is for the
/// engine, the C library and the zygote itself.
const ENVIRONMENT: [&str; 8] =
    ["PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "RUST_BACKTRACE", IDLE_VARIABLE];

/// How long a zygote may take to start a process. It does nothing else, so a longer silence means that it is stopped, or
/// has no processor any more.
const START_DEADLINE: Duration = Duration::from_secs(30);

/// Lines of a dead zygote's standard error that are kept for the report.
const LAST_WORDS: usize = 8;

/// The longest of these lines, in characters.
const MAX_LAST_WORD: usize = 500;

/// Zygotes that die in a row before they have booted, until extensions are told that there is none. One may have been killed
/// just then; more have a cause that the next will meet, too.
const MAX_STILLBORN: u32 = 3;

/// How far a process has got, as the zygote tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It was asked for.
    Asked,
    /// It exists.
    Started(u32),
    /// The system gave none; with what it said.
    Failed(String),
    /// It has ended, with this wait status.
    Ended(i32),
    /// The zygote has died, and it with the zygote; with how that happened.
    Lost(String),
}

impl Fate {
    /// Whether nothing more can happen to it.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::Ended(_) | Self::Lost(_))
    }
}

/// An order on its way.
struct Outgoing {
    order: Order,
    files: Vec<OwnedFd>,
}

/// A connection to a zygote. When the last handle is dropped, the zygote kills what was started through it.
pub struct Zygote {
    orders: mpsc::UnboundedSender<Outgoing>,
    shared: Arc<Shared>,
    next: AtomicU64,
    /// How many before it, in a row, died before they had booted.
    stillborn: u32,
}

struct Shared {
    state: Mutex<State>,
    is_dead: watch::Sender<bool>,
    last_words: Mutex<VecDeque<String>>,
}

#[derive(Default)]
struct State {
    pid: Option<u32>,
    /// It has reported something, which it does once it has booted.
    has_booted: bool,
    processes: HashMap<ProcessNumber, watch::Sender<Fate>>,
    pings: HashMap<u64, oneshot::Sender<()>>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Zygote {
    /// Finds the zygote that sessions like this one share, or starts one: `PROGRAM zygote`. Without a folder to meet in,
    /// the zygote is this session's own. Must be called inside a tokio runtime.
    pub fn connect(
        program: &Path,
        folder: Option<&Path>,
        stillborn: u32,
    ) -> std::io::Result<Arc<Self>> {
        let socket = folder.and_then(|folder| meeting_place(program, folder));
        if let Some(stream) = socket.as_ref().and_then(|path| find(path)) {
            return Ok(Self::over(stream, None, None, stillborn));
        }
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut command = Command::new(this_program(program));
        command.arg0("tenon").arg(COMMAND).args(socket);
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::piped());
        command.env_clear();
        command.envs(ENVIRONMENT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        // An interrupt at the terminal is the session's to handle.
        command.process_group(0);
        let mut child = command.spawn()?;
        let stderr = child.stderr.take();
        Ok(Self::over(UnixStream::from_std(ours)?, child.id(), stderr, stillborn))
    }

    fn over(
        stream: UnixStream,
        pid: Option<u32>,
        stderr: Option<ChildStderr>,
        stillborn: u32,
    ) -> Arc<Self> {
        let pid = pid.or_else(|| stream.peer_cred().ok()?.pid().map(i32::cast_unsigned));
        let shared = Arc::new(Shared {
            state: Mutex::new(State { pid, ..State::default() }),
            is_dead: watch::Sender::new(false),
            last_words: Mutex::default(),
        });
        let (orders, outgoing) = mpsc::unbounded_channel();
        let (reading, writing) = (Arc::new(stream), shared.clone());
        tokio::spawn(write(reading.clone(), outgoing));
        tokio::spawn(async move {
            let words = stderr.map(|stderr| tokio::spawn(listen(stderr, writing.clone())));
            read(&reading, &writing).await;
            if let Some(words) = words {
                // What it said last explains how it ended. A process that it left behind must not keep us.
                let _ = tokio::time::timeout(Duration::from_secs(1), words).await;
            }
            writing.die();
        });
        Arc::new(Self { orders, shared, next: AtomicU64::new(1), stillborn })
    }

    /// Orders a process. It has the given files as its socket and its standard error.
    pub fn start(
        &self,
        socket: OwnedFd,
        errors: OwnedFd,
    ) -> (ProcessNumber, watch::Receiver<Fate>) {
        let process = self.next.fetch_add(1, Relaxed);
        let (sender, fate) = watch::channel(Fate::Asked);
        self.shared.state().processes.insert(process, sender);
        self.order(Order::Start { process }, vec![socket, errors]);
        if *self.shared.is_dead.borrow() {
            self.shared.die();
        } else {
            tokio::spawn(expect_start(fate.clone(), self.shared.clone()));
        }
        (process, fate)
    }

    /// Has a process killed, with what it has started and not detached.
    pub fn kill(&self, process: ProcessNumber) {
        self.order(Order::Kill { process }, Vec::new());
    }

    fn order(&self, order: Order, files: Vec<OwnedFd>) {
        // A zygote that is gone takes none, which its death tells.
        let _ = self.orders.send(Outgoing { order, files });
    }

    /// Waits until the zygote has booted and answers; false if it dies instead.
    pub async fn answers(&self) -> bool {
        let request = self.next.fetch_add(1, Relaxed);
        let (sender, answer) = oneshot::channel();
        self.shared.state().pings.insert(request, sender);
        self.order(Order::Ping { request }, Vec::new());
        let mut is_dead = self.shared.is_dead.subscribe();
        tokio::select! {
            answer = answer => answer.is_ok(),
            _ = is_dead.wait_for(|dead| *dead) => false,
        }
    }

    /// Whether it has not died.
    pub fn is_alive(&self) -> bool {
        !*self.shared.is_dead.borrow()
    }

    /// Its number, and those of the processes that it has started for this session.
    pub fn pids(&self) -> Vec<u32> {
        let state = self.shared.state();
        let started = |fate: &watch::Sender<Fate>| match *fate.borrow() {
            Fate::Started(pid) => Some(pid),
            _ => None,
        };
        state.pid.into_iter().chain(state.processes.values().filter_map(started)).collect()
    }

    /// How many zygotes in a row have died before they had booted, up to this one.
    pub fn stillborn(&self) -> u32 {
        if self.is_alive() || self.shared.state().has_booted { 0 } else { self.stillborn + 1 }
    }

    /// Whether so many have died in this way that the next is expected to do the same.
    pub fn is_hopeless(&self) -> bool {
        self.stillborn() >= MAX_STILLBORN
    }

    /// How it died, in words.
    pub fn how_it_died(&self) -> String {
        self.shared.how_it_died()
    }
}

impl Shared {
    fn how_it_died(&self) -> String {
        let words = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        let mut how = "the zygote ended".to_owned();
        if !words.is_empty() {
            how = format!("{how}; its last words: {}", Vec::from(words.clone()).join(" | "));
        }
        how
    }

    /// The zygote has died: so have all processes, and nobody answers.
    fn die(&self) {
        self.is_dead.send_replace(true);
        let how = self.how_it_died();
        let mut state = self.state();
        state.pings.clear();
        for (_, fate) in state.processes.drain() {
            if let Fate::Started(pid) = *fate.borrow() {
                // The process died with the zygote; what it had started has not. As long as any of that is left, the
                // number of the group is nobody else's.
                // SAFETY: kill takes two integers.
                unsafe { libc::kill(-pid.cast_signed(), libc::SIGKILL) };
            }
            fate.send_if_modified(|fate| {
                let is_new = !fate.is_final();
                if is_new {
                    *fate = Fate::Lost(how.clone());
                }
                is_new
            });
        }
    }

    fn take(&self, report: Report) {
        let mut state = self.state();
        state.has_booted = true;
        match report {
            Report::Started { process, pid } => {
                if let Some(fate) = state.processes.get(&process) {
                    fate.send_replace(Fate::Started(pid));
                }
            }
            Report::Failed { process, why } => {
                if let Some(fate) = state.processes.remove(&process) {
                    fate.send_replace(Fate::Failed(why));
                }
            }
            Report::Ended { process, status } => {
                if let Some(fate) = state.processes.remove(&process) {
                    fate.send_replace(Fate::Ended(status));
                }
            }
            Report::Pong { request, pid } => {
                state.pid = Some(pid);
                if let Some(waiting) = state.pings.remove(&request) {
                    // The caller may have given up.
                    let _ = waiting.send(());
                }
            }
        }
    }
}

/// A zygote that does not start a process in time is given up: the next is asked of another.
async fn expect_start(mut fate: watch::Receiver<Fate>, shared: Arc<Shared>) {
    let started = fate.wait_for(|fate| *fate != Fate::Asked);
    if tokio::time::timeout(START_DEADLINE, started).await.is_err() {
        let mut words = shared.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        words.push_back(format!("it did not answer within {} s", START_DEADLINE.as_secs()));
        drop(words);
        shared.die();
    }
}

/// Writes orders until nobody gives any.
async fn write(stream: Arc<UnixStream>, mut outgoing: mpsc::UnboundedReceiver<Outgoing>) {
    while let Some(Outgoing { order, files }) = outgoing.recv().await {
        let Ok(frame) = wire::encode(&Json(order)) else { continue };
        let mut sent = 0;
        while sent < frame.len() {
            // Descriptors go with the first byte.
            let files: Vec<_> = files.iter().filter(|_| sent == 0).map(AsFd::as_fd).collect();
            let send = || descriptors::send(stream.as_fd(), &frame[sent..], &files);
            match stream.async_io(Interest::WRITABLE, send).await {
                Ok(count) => sent += count,
                Err(_) => return,
            }
        }
    }
    // The zygote finds the connection closed. The reader may hold on to it for as long as reports come.
    // SAFETY: the descriptor is open; shutdown takes integers.
    unsafe { libc::shutdown(std::os::fd::AsRawFd::as_raw_fd(&*stream), libc::SHUT_RDWR) };
}

/// Takes reports until the zygote is gone.
async fn read(stream: &UnixStream, shared: &Shared) {
    let mut decoder = Decoder::default();
    loop {
        match decoder.take::<Json<Report>>() {
            Ok(Some(Json(report))) => {
                shared.take(report);
                continue;
            }
            Ok(None) => {}
            Err(_) => return,
        }
        if stream.readable().await.is_err() {
            return;
        }
        match stream.try_read_buf(decoder.room()) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

/// Keeps the last lines of a zygote's standard error.
async fn listen(stderr: ChildStderr, shared: Arc<Shared>) {
    let mut lines = tokio::io::BufReader::new(stderr).split(b'\n');
    while let Ok(Some(line)) = lines.next_segment().await {
        let text = String::from_utf8_lossy(&line);
        let text: String = text.trim().chars().take(MAX_LAST_WORD).collect();
        // Addresses in the program tell nobody anything; what went wrong stands above them.
        if text.chars().any(char::is_alphanumeric) && !text.contains(" [0x") {
            let mut words = shared.last_words.lock().unwrap_or_else(PoisonError::into_inner);
            if words.len() == LAST_WORDS {
                words.pop_front();
            }
            words.push_back(text);
        }
    }
}

/// Where sessions that are alike find the same zygote. Those of another program, namespace, control group or with other
/// limits do not: their extensions must not get out of what the session itself is in.
fn meeting_place(program: &Path, folder: &Path) -> Option<PathBuf> {
    make_private_folder(folder).ok()?;
    let mut key = sha2::Sha256::new();
    let file = std::fs::metadata(this_program(program)).ok()?;
    for number in
        [file.dev(), file.ino(), file.size(), file.mtime() as u64, file.mtime_nsec() as u64]
    {
        key.update(number.to_le_bytes());
    }
    for space in ["mnt", "pid", "net", "user", "ipc", "uts"] {
        let space = std::fs::read_link(format!("/proc/self/ns/{space}")).unwrap_or_default();
        key.update(space.as_os_str().as_encoded_bytes());
    }
    for file in ["cgroup", "limits"] {
        key.update(std::fs::read(format!("/proc/self/{file}")).unwrap_or_default());
    }
    let key = key.finalize();
    let name: String = key[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let socket = folder.join(name + ".sock");
    (socket.as_os_str().len() <= MAX_SOCKET_PATH).then_some(socket)
}

/// The zygote at a socket, if there is one and it is the same user's.
fn find(path: &Path) -> Option<UnixStream> {
    let stream = std::os::unix::net::UnixStream::connect(path).ok()?;
    stream.set_nonblocking(true).ok()?;
    let stream = UnixStream::from_std(stream).ok()?;
    // SAFETY: geteuid only returns a number.
    let own = unsafe { libc::geteuid() };
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own).then_some(stream)
}

/// The program to start. If it is the one that runs, that very file, even if another has been put in its place.
fn this_program(program: &Path) -> PathBuf {
    let own = Path::new("/proc/self/exe");
    let is_own = std::env::current_exe().is_ok_and(|current| current == program);
    if is_own && own.exists() { own.to_owned() } else { program.to_owned() }
}
