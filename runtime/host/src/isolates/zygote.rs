//! The session's connection to the zygote: finds or starts one, sends orders, reads reports.

use parking_lot::Mutex;
use parking_lot::MutexGuard;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use sha2::Digest;
use tenon_protocol::descriptors;
use tenon_protocol::wire;
use tenon_protocol::wire::Decoder;
use tenon_protocol::wire::Json;
use tenon_protocol::zygote::COMMAND;
use tenon_protocol::zygote::GroupLimit;
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

use super::last_lines::LastLines;
use crate::private_socket::MAX_PATH_BYTES;
use crate::store::make_private_folder;

/// Variables of the environment that a zygote gets. Extensions have the environment of their own session; this is for the
/// engine, the C library and the zygote itself.
const ENVIRONMENT: [&str; 8] =
    ["PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "RUST_BACKTRACE", IDLE_VARIABLE];

/// How long a zygote may take to start a process. It does nothing else, so a longer silence means that it is stopped, or
/// has no processor any more.
const START_DEADLINE: Duration = Duration::from_secs(30);

/// How long to wait for the end of a dead zygote's standard error.
const LAST_LINES_DEADLINE: Duration = Duration::from_secs(1);

/// Zygotes that die in a row before they have booted, until extensions are told that there is none. One may have been killed
/// just then; more have a cause that the next will meet, too.
const MAX_FAILED_BOOTS: u32 = 3;

/// The state of a process, as the zygote reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessState {
    /// The session has asked for it.
    Asked,
    /// It exists.
    Started(u32),
    /// The system refused to make one, for this reason.
    Failed(String),
    /// It has ended, with this wait status, and because of this limit of its control group, if it was one.
    Ended(i32, Option<GroupLimit>),
    /// The zygote died, in this way, and the process with it.
    Lost(String),
}

impl ProcessState {
    /// Whether the process does not exist any more.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::Ended(..) | Self::Lost(_))
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
    failed_boots: u32,
}

struct Shared {
    open: Mutex<Open>,
    is_dead: watch::Sender<bool>,
    last_lines: Mutex<LastLines>,
}

/// What the session has asked of the zygote and is not over yet.
#[derive(Default)]
struct Open {
    pid: Option<u32>,
    /// It has reported something, which it does once it has booted.
    has_booted: bool,
    processes: HashMap<ProcessNumber, watch::Sender<ProcessState>>,
    pings: HashMap<u64, oneshot::Sender<()>>,
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock()
    }

    fn last_lines(&self) -> MutexGuard<'_, LastLines> {
        self.last_lines.lock()
    }
}

impl Zygote {
    /// Finds the zygote that sessions like this one share, or starts one: `PROGRAM zygote`. Without a folder to meet in,
    /// the zygote is this session's own. This blocks. Must be called inside a tokio runtime.
    pub fn connect(
        program: &Path,
        folder: Option<&Path>,
        failed_boots: u32,
    ) -> std::io::Result<Arc<Self>> {
        let socket = folder.and_then(|folder| meeting_place(program, folder));
        if let Some(stream) = socket.as_ref().and_then(|path| find(path)) {
            return Ok(Self::over(stream, None, None, failed_boots));
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
        Ok(Self::over(UnixStream::from_std(ours)?, child.id(), stderr, failed_boots))
    }

    fn over(
        stream: UnixStream,
        pid: Option<u32>,
        stderr: Option<ChildStderr>,
        failed_boots: u32,
    ) -> Arc<Self> {
        let pid = pid.or_else(|| stream.peer_cred().ok()?.pid().map(i32::cast_unsigned));
        let shared = Arc::new(Shared {
            open: Mutex::new(Open { pid, ..Open::default() }),
            is_dead: watch::Sender::new(false),
            last_lines: Mutex::default(),
        });
        let (orders, outgoing) = mpsc::unbounded_channel();
        let (reading, writing) = (Arc::new(stream), shared.clone());
        tokio::spawn(write(reading.clone(), outgoing));
        tokio::spawn(async move {
            let lines = stderr.map(|stderr| tokio::spawn(keep_last_lines(stderr, writing.clone())));
            read(&reading, &writing).await;
            if let Some(lines) = lines {
                // Its last lines explain how it ended. A process that it left behind may keep the pipe open.
                let _ = tokio::time::timeout(LAST_LINES_DEADLINE, lines).await;
            }
            writing.die();
        });
        Arc::new(Self { orders, shared, next: AtomicU64::new(1), failed_boots })
    }

    /// Orders a process. It has the given files as its socket and its standard error.
    pub fn start(
        &self,
        socket: OwnedFd,
        errors: OwnedFd,
    ) -> (ProcessNumber, watch::Receiver<ProcessState>) {
        let process = self.next.fetch_add(1, Relaxed);
        let (sender, state) = watch::channel(ProcessState::Asked);
        self.shared.open().processes.insert(process, sender);
        self.order(Order::Start { process }, vec![socket, errors]);
        if *self.shared.is_dead.borrow() {
            self.shared.die();
        } else {
            tokio::spawn(expect_start(state.clone(), self.shared.clone()));
        }
        (process, state)
    }

    /// Has a process killed, with everything that it has started.
    pub fn kill(&self, process: ProcessNumber) {
        self.order(Order::Kill { process }, Vec::new());
    }

    fn order(&self, order: Order, files: Vec<OwnedFd>) {
        // This fails if the zygote has died, which `is_dead` says.
        let _ = self.orders.send(Outgoing { order, files });
    }

    /// Waits until the zygote has booted and answers; false if it dies instead.
    pub async fn answers(&self) -> bool {
        let request = self.next.fetch_add(1, Relaxed);
        let (sender, answer) = oneshot::channel();
        self.shared.open().pings.insert(request, sender);
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
        let open = self.shared.open();
        let started = |state: &watch::Sender<ProcessState>| match *state.borrow() {
            ProcessState::Started(pid) => Some(pid),
            _ => None,
        };
        open.pid.into_iter().chain(open.processes.values().filter_map(started)).collect()
    }

    /// How many zygotes in a row have died before they had booted, up to this one.
    pub fn failed_boots(&self) -> u32 {
        if self.is_alive() || self.shared.open().has_booted { 0 } else { self.failed_boots + 1 }
    }

    /// Whether so many have died in this way that the next is expected to do the same.
    pub fn keeps_failing(&self) -> bool {
        self.failed_boots() >= MAX_FAILED_BOOTS
    }

    /// How it died, in words.
    pub fn how_it_died(&self) -> String {
        self.shared.how_it_died()
    }
}

impl Shared {
    fn how_it_died(&self) -> String {
        self.last_lines().explain("the zygote ended".to_owned())
    }

    /// The zygote has died: so have all processes, and nobody answers.
    fn die(&self) {
        self.is_dead.send_replace(true);
        let how = self.how_it_died();
        let mut open = self.open();
        open.pings.clear();
        for (_, state) in open.processes.drain() {
            if let ProcessState::Started(pid) = *state.borrow() {
                // The process died with the zygote, but its children may live. As long as one does, the system does
                // not reuse the number of their process group.
                // SAFETY: kill takes two integers.
                unsafe { libc::kill(-pid.cast_signed(), libc::SIGKILL) };
            }
            state.send_if_modified(|state| {
                let is_new = !state.is_final();
                if is_new {
                    *state = ProcessState::Lost(how.clone());
                }
                is_new
            });
        }
    }

    fn take(&self, report: Report) {
        let mut open = self.open();
        open.has_booted = true;
        match report {
            Report::Started { process, pid } => {
                if let Some(state) = open.processes.get(&process) {
                    state.send_replace(ProcessState::Started(pid));
                }
            }
            Report::Failed { process, why } => {
                if let Some(state) = open.processes.remove(&process) {
                    state.send_replace(ProcessState::Failed(why));
                }
            }
            Report::Ended { process, status, limit } => {
                if let Some(state) = open.processes.remove(&process) {
                    state.send_replace(ProcessState::Ended(status, limit));
                }
            }
            Report::Pong { request, pid } => {
                open.pid = Some(pid);
                if let Some(waiting) = open.pings.remove(&request) {
                    // The caller may have given up.
                    let _ = waiting.send(());
                }
            }
        }
    }
}

/// Gives the zygote up if it does not start a process in time. The next start connects to another one.
async fn expect_start(mut state: watch::Receiver<ProcessState>, shared: Arc<Shared>) {
    let started = state.wait_for(|state| *state != ProcessState::Asked);
    if tokio::time::timeout(START_DEADLINE, started).await.is_err() {
        let line = format!("it did not answer within {} s", START_DEADLINE.as_secs());
        shared.last_lines().push(line.as_bytes());
        shared.die();
    }
}

/// Sends orders to the zygote until the session drops its handle.
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

/// Reads reports until the zygote closes the connection.
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

/// Reads a zygote's standard error.
async fn keep_last_lines(stderr: ChildStderr, shared: Arc<Shared>) {
    let mut lines = tokio::io::BufReader::new(stderr).split(b'\n');
    while let Ok(Some(line)) = lines.next_segment().await {
        shared.last_lines().push(&line);
    }
}

/// Where sessions that are alike find the same zygote. Those of another program, namespace, control group or with other
/// limits do not: their extensions must not get out of what the session itself is in.
pub(super) fn meeting_place(program: &Path, folder: &Path) -> Option<PathBuf> {
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
    // The zygote refuses whoever is confined further than itself.
    #[cfg(target_os = "linux")]
    key.update(tenon_protocol::peer::own_confinement());
    let key = key.finalize();
    let name: String = key[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let socket = folder.join(name + ".sock");
    (socket.as_os_str().len() <= MAX_PATH_BYTES).then_some(socket)
}

/// The zygote at a socket, if there is one and it is the same user's. The same check as the zygote's own: where the system does
/// not show one process what another may do, the zygote would refuse this session, which then starts one of its own.
fn find(path: &Path) -> Option<UnixStream> {
    let stream = std::os::unix::net::UnixStream::connect(path).ok()?;
    stream.set_nonblocking(true).ok()?;
    let stream = UnixStream::from_std(stream).ok()?;
    crate::private_socket::may_give_orders(&stream).then_some(stream)
}

/// The program to start. If it is the one that runs, that very file, even if another has been put in its place.
fn this_program(program: &Path) -> PathBuf {
    let own = Path::new("/proc/self/exe");
    let is_own = std::env::current_exe().is_ok_and(|current| current == program);
    if is_own && own.exists() { own.to_owned() } else { program.to_owned() }
}
