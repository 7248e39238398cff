//! The zygote: a process that has booted one engine and forks itself for every extension.
//!
//! Sessions of one user share it. It listens on a socket, takes orders, forks, and reports which of the processes
//! have ended. It runs no code of an extension and reads none of its data: a fork is a copy of a clean process. What
//! makes a fork safe is in [`boot`]; what a fork does next is in [`child`].

mod boot;
mod child;
mod confinement;
mod connection;
mod fork;
#[cfg(feature = "v8")]
mod fork_memory;
mod full_heap;
mod leftovers;
mod rehearsal;
mod room;

use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::os::fd::FromRawFd;
use std::os::fd::OwnedFd;
use std::os::fd::RawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tenon_protocol::zygote::COMMAND;
use tenon_protocol::zygote::GroupLimit;
use tenon_protocol::zygote::IDLE_VARIABLE;
use tenon_protocol::zygote::Order;
use tenon_protocol::zygote::ProcessNumber;
use tenon_protocol::zygote::Report;
use tenon_sandbox::control_groups::Group;
use tenon_sandbox::control_groups::Groups;
use tenon_sandbox::control_groups::TaskEvents;

use crate::background;
use crate::children;
use connection::Connection;
use fork::Forked;
use leftovers::EndSignals;
use leftovers::Ends;
use leftovers::Leftovers;

/// How long the zygote outlives its last session. The next command then starts without booting an engine.
const IDLE: Duration = Duration::from_secs(10);

/// How often ended processes are looked for where the system has no descriptors for processes (before Linux 5.3).
const REAP_INTERVAL: Duration = Duration::from_millis(100);

/// How many connections are refused in a row before something else gets its turn, so that who connects again and again holds
/// up nobody.
const REFUSED_AT_ONCE: usize = 16;

/// Serves as zygote if that is what this process was started for: `PROGRAM zygote [SOCKET]`. Call it first thing in
/// `main`. A fork of the zygote does not return from it either: it runs its extension and exits.
pub fn serve_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != COMMAND) {
        return None;
    }
    let socket = arguments.next().map(PathBuf::from);
    if arguments.next().is_some() {
        return None;
    }
    Some(match serve(socket) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "the zygote cannot go on: {error}");
            ExitCode::FAILURE
        }
    })
}

/// Executes orders until the last session has disconnected and the idle time is over.
fn serve(socket: Option<PathBuf>) -> std::io::Result<()> {
    let starter = standard_input()?;
    let session = session_of(&starter);
    leave_the_session();
    // Before the engine boots: memory belongs to the group in which it was first written to. Without groups, or with some that
    // limit nothing, extensions run all the same.
    let groups = Groups::prepare(session).ok();
    let listener = socket.and_then(|path| Listener::open(&path));
    let end_signals = EndSignals::block()?;
    // As the extensions' processes: what comes here has to be of one that has ended. Otherwise it is the system's.
    if children::are_distinguishable() {
        let _ = children::adopt_orphans();
    }
    background::forbid(true);
    let booted = boot::boot()?;
    let mut zygote = Zygote {
        connections: vec![(0, Connection::new(starter)?)],
        next_connection: 1,
        listener,
        processes: Vec::new(),
        idle: idle_time(),
        groups,
        end_signals,
        leftovers: Leftovers::default(),
    };
    match zygote.run()? {
        Outcome::Idle => Ok(()),
        Outcome::Forked(files, group) => {
            background::forbid(false);
            // The child closes the zygote's descriptors. Dropping its values would only copy shared pages.
            std::mem::forget(zygote);
            child::run(booted, files, group)
        }
    }
}

/// Takes the socket that is standard input, and leaves nothing there.
fn standard_input() -> std::io::Result<UnixStream> {
    let socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    // Says whether it is a socket at all: somebody may have typed the command.
    socket.local_addr().map_err(|_| {
        std::io::Error::other("it is started by tenon itself, with a socket as standard input")
    })?;
    let nothing = File::open("/dev/null")?;
    // SAFETY: both are open files of this process; dup2 touches no memory.
    if unsafe { libc::dup2(nothing.as_raw_fd(), libc::STDIN_FILENO) } < 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(socket)
}

/// The process that started this one. Zero, which no process comes from, if it has ended.
fn session_of(starter: &UnixStream) -> u32 {
    let session = std::os::unix::process::parent_id();
    let made_the_socket = peer(starter).is_some_and(|peer| peer.pid.cast_unsigned() == session);
    if made_the_socket { session } else { 0 }
}

/// Detaches the zygote from the session that started it: it serves other sessions, too, so it must not share one's
/// terminal, signals or folder. No other process may read its memory, which all extensions inherit.
fn leave_the_session() {
    // SAFETY: these take and give integers and a constant string; each may fail without harm.
    unsafe {
        // The first process of a group, which a shell or the session makes it, cannot leave the terminal this way.
        if libc::setsid() < 0 {
            leave_the_terminal();
        }
        libc::prctl(libc::PR_SET_NAME, c"tenon-zygote".as_ptr());
        libc::chdir(c"/".as_ptr());
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // Every process costs it a descriptor or two; the usual limit of 1,024 is for programs that use `select`.
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// Gives up the controlling terminal, so that neither this process nor a fork can open it by the name `/dev/tty`.
fn leave_the_terminal() {
    // Without a terminal there is nothing to open.
    if let Ok(terminal) = File::open("/dev/tty") {
        // SAFETY: the descriptor is open, and the call takes nothing else.
        unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCNOTTY) };
    }
}

fn idle_time() -> Duration {
    let configured = std::env::var(IDLE_VARIABLE).ok().and_then(|text| text.parse().ok());
    configured.map_or(IDLE, Duration::from_secs)
}

/// The socket on which further sessions find the zygote.
struct Listener {
    socket: UnixListener,
    path: PathBuf,
    /// The zygote holds this lock as long as it lives. Only the process that holds it may replace the socket.
    _lock: File,
}

impl Listener {
    /// Listens, unless another zygote does. Then this one serves its starter alone.
    fn open(path: &Path) -> Option<Self> {
        let lock = File::create(path.with_extension("lock")).ok()?;
        lock.try_lock().ok()?;
        let _ = std::fs::remove_file(path);
        let socket = UnixListener::bind(path).ok()?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).ok()?;
        socket.set_nonblocking(true).ok()?;
        Some(Self { socket, path: path.to_owned(), _lock: lock })
    }

    /// The next session that connects. Refused are other users, and whoever is confined: an extension, or a program of one,
    /// would have a process here that is not.
    fn accept(&self) -> Option<UnixStream> {
        for _ in 0..REFUSED_AT_ONCE {
            let (stream, _) = self.socket.accept().ok()?;
            if tenon_protocol::peer::check(&stream).is_ok() {
                return Some(stream);
            }
        }
        None
    }
}

/// Who made the other end.
fn peer(stream: &UnixStream) -> Option<libc::ucred> {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: 0 };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the structure is ours and has the given size.
    let asked = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut size,
        )
    };
    (asked == 0).then_some(peer)
}

/// One forked process.
struct Process {
    pid: i32,
    /// Readable when the process has ended.
    descriptor: Option<OwnedFd>,
    number: ProcessNumber,
    connection: u64,
    /// With everything that it has started, if there are groups.
    group: Option<Group>,
    /// Readable when it was refused another process or thread.
    task_events: Option<TaskEvents>,
    /// The limit of its group that it has reached.
    limit: Option<GroupLimit>,
}

struct Zygote {
    connections: Vec<(u64, Connection)>,
    next_connection: u64,
    listener: Option<Listener>,
    processes: Vec<Process>,
    idle: Duration,
    groups: Option<Groups>,
    end_signals: EndSignals,
    leftovers: Leftovers,
}

/// How the zygote's loop ended.
enum Outcome {
    /// No session used it for the idle time.
    Idle,
    /// This is a new process, with these files, and the group it is in.
    Forked(child::Files, Option<Group>),
}

impl Zygote {
    fn run(&mut self) -> std::io::Result<Outcome> {
        loop {
            let is_idle = self.connections.is_empty() && self.processes.is_empty();
            if is_idle && self.listener.is_none() && !self.leftovers.are_ending() {
                return Ok(Outcome::Idle);
            }
            let blind = self.processes.iter().any(|process| process.descriptor.is_none());
            let patience = match (is_idle, blind) {
                (true, _) => Some(self.idle),
                (false, true) => Some(REAP_INTERVAL),
                (false, false) => None,
            };
            let mut waiting = self.descriptors();
            let ready = poll(&mut waiting, patience)?;
            if ready == 0 && is_idle && self.retire() {
                return Ok(Outcome::Idle);
            }
            if waiting.iter().any(|descriptor| descriptor.revents & libc::POLLPRI != 0) {
                self.processes.iter_mut().for_each(Process::obey_group);
            }
            self.reap();
            if let Some(stream) = self.listener.as_ref().and_then(Listener::accept)
                && let Ok(connection) = Connection::new(stream)
            {
                self.connections.push((self.next_connection, connection));
                self.next_connection += 1;
            }
            if let Some((files, group)) = self.serve_connections()? {
                return Ok(Outcome::Forked(files, group));
            }
        }
    }

    /// Everything that may wake the zygote.
    fn descriptors(&self) -> Vec<libc::pollfd> {
        let reading = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let listener = self.listener.iter().map(|listener| reading(listener.socket.as_raw_fd()));
        let end_signals = std::iter::once(reading(self.end_signals.as_fd().as_raw_fd()));
        let processes = self
            .processes
            .iter()
            .filter_map(|process| Some(reading(process.descriptor.as_ref()?.as_raw_fd())));
        let groups = self.processes.iter().filter_map(|process| process.task_events.as_ref());
        let groups = groups.map(|events| libc::pollfd {
            fd: events.as_fd().as_raw_fd(),
            events: libc::POLLPRI,
            revents: 0,
        });
        let connections = self.connections.iter().map(|(_, connection)| connection.interest());
        listener.chain(end_signals).chain(processes).chain(groups).chain(connections).collect()
    }

    /// Stops listening. A session that connected in the last moment is still served, by this zygote alone; false then.
    fn retire(&mut self) -> bool {
        let Some(listener) = self.listener.take() else { return true };
        let _ = std::fs::remove_file(&listener.path);
        while let Some(stream) = listener.accept() {
            if let Ok(connection) = Connection::new(stream) {
                self.connections.push((self.next_connection, connection));
                self.next_connection += 1;
            }
        }
        self.connections.is_empty()
    }

    /// Does what sessions have ordered. Returns in the new process when one was forked.
    fn serve_connections(&mut self) -> std::io::Result<Option<(child::Files, Option<Group>)>> {
        let mut index = 0;
        while index < self.connections.len() {
            let (id, connection) = &mut self.connections[index];
            let id = *id;
            connection.flush();
            let is_open = connection.read();
            while let Some(order) = self.connections[index].1.next_order() {
                if let Some(forked) = self.carry_out(id, index, order) {
                    return Ok(Some(forked));
                }
            }
            if is_open && !self.connections[index].1.is_broken() {
                index += 1;
            } else {
                self.connections.remove(index);
                // Its session is gone, so nothing can use its processes any more.
                let orphans = self.processes.iter().filter(|process| process.connection == id);
                orphans.for_each(|process| children::kill_process(process.pid));
            }
        }
        Ok(None)
    }

    fn carry_out(
        &mut self,
        id: u64,
        index: usize,
        order: Order,
    ) -> Option<(child::Files, Option<Group>)> {
        match order {
            Order::Ping { request } => {
                let pid = std::process::id();
                self.connections[index].1.report(&Report::Pong { request, pid });
            }
            Order::Kill { process: number } => {
                let of_session =
                    |process: &&Process| process.connection == id && process.number == number;
                if let Some(process) = self.processes.iter().find(of_session) {
                    children::kill_process(process.pid);
                }
            }
            Order::Start { process: number } => {
                let connection = &mut self.connections[index].1;
                let Some(files) = connection.take_files() else {
                    let why = "its socket did not arrive: too many open files?".to_owned();
                    connection.report(&Report::Failed { process: number, why });
                    return None;
                };
                let group = self.groups.as_mut().and_then(|groups| groups.make().ok());
                match fork::fork(group.as_ref()) {
                    // A group that the process is not in limits nothing.
                    Ok(Forked::Child { in_group }) => {
                        return Some((files, group.filter(|_| in_group)));
                    }
                    Ok(Forked::Zygote(pid)) => {
                        self.processes.push(Process {
                            pid,
                            descriptor: process_descriptor(pid),
                            number,
                            connection: id,
                            task_events: group.as_ref().and_then(Group::task_events),
                            group,
                            limit: None,
                        });
                        let pid = pid.cast_unsigned();
                        connection.report(&Report::Started { process: number, pid });
                    }
                    Err(error) => {
                        let why = why_no_process(&error);
                        connection.report(&Report::Failed { process: number, why });
                        self.take_back(group);
                    }
                }
            }
        }
        None
    }

    /// Waits for processes that have ended, ends what they have left behind, and tells their sessions.
    fn reap(&mut self) {
        let has_signal = self.end_signals.take();
        let mut ended = Vec::new();
        let mut index = 0;
        while index < self.processes.len() {
            match wait_for(self.processes[index].pid) {
                Some(status) => ended.push((self.processes.swap_remove(index), status)),
                None => index += 1,
            }
        }
        let mut ends = Ends::default();
        for (process, status) in &mut ended {
            process.end_with_group(*status);
            ends.in_order |= *status == 0;
            ends.otherwise |= *status != 0;
        }
        if has_signal {
            self.processes.iter().for_each(Process::end_if_stopped);
        }
        if has_signal || !ended.is_empty() {
            let own: HashSet<i32> = self.processes.iter().map(|process| process.pid).collect();
            self.leftovers.sweep(ends, |process| own.contains(&process));
        }
        for (process, status) in ended {
            let report = Report::Ended { process: process.number, status, limit: process.limit };
            let session = self.connections.iter_mut().find(|(id, _)| *id == process.connection);
            if let Some((_, connection)) = session {
                connection.report(&report);
            }
            self.take_back(process.group);
        }
    }

    fn take_back(&mut self, group: Option<Group>) {
        if let (Some(groups), Some(group)) = (&mut self.groups, group) {
            groups.take_back(group);
        }
    }
}

impl Process {
    /// Ends everything in its group if that has as many processes and threads as it may have.
    fn obey_group(&mut self) {
        if self.task_events.as_mut().is_some_and(TaskEvents::were_refused) {
            // Whoever is not read again would wake the zygote again and again.
            self.task_events = None;
            if self.group.as_ref().is_some_and(|group| group.kill().is_ok()) {
                self.limit = Some(GroupLimit::Tasks);
            }
        }
    }

    /// Ends the process if it is confined and was stopped: only its own programs can do that, and nobody watches its limits
    /// while it stands still. One that is not confined may be stopped by whoever looks for its faults.
    fn end_if_stopped(&self) {
        if is_stopped(self.pid) && tenon_protocol::peer::is_confined_further(self.pid) {
            children::kill_process(self.pid);
        }
    }

    /// The process has ended. Ends the rest of its group unless it has exited in order, and sees whether the group ended it.
    fn end_with_group(&mut self, status: i32) {
        let Some(group) = &self.group else { return };
        if libc::WIFSIGNALED(status) && self.limit.is_none() && group.ran_out_of_memory() {
            self.limit = Some(GroupLimit::Memory);
        }
        if status != 0 {
            // It was killed, it crashed, or nothing may outlive it. This also ends what starts others all the time.
            let _ = group.kill();
        }
    }
}

/// Waits for something to happen; returns how many descriptors are ready.
fn poll(waiting: &mut [libc::pollfd], patience: Option<Duration>) -> std::io::Result<usize> {
    let timeout = patience.map_or(-1, |patience| patience.as_millis().min(i32::MAX as u128) as i32);
    // SAFETY: the slice is ours, and its length is given.
    let ready = unsafe { libc::poll(waiting.as_mut_ptr(), waiting.len() as libc::nfds_t, timeout) };
    match usize::try_from(ready) {
        Ok(ready) => Ok(ready),
        Err(_) => {
            let error = std::io::Error::last_os_error();
            // The caller then looks at everything once more, which does no harm.
            if error.kind() == std::io::ErrorKind::Interrupted { Ok(1) } else { Err(error) }
        }
    }
}

/// Why there is no new process, with what to do about it.
fn why_no_process(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EAGAIN) => format!(
            "{error}: the limit of processes is reached (ulimit -u, or pids.max of the control group)"
        ),
        Some(libc::ENOMEM) => format!("{error}: the system has no memory for another process"),
        _ => error.to_string(),
    }
}

/// A descriptor that becomes readable when a process ends.
fn process_descriptor(pid: i32) -> Option<OwnedFd> {
    // SAFETY: the call takes two integers, and gives a new descriptor.
    unsafe {
        let descriptor = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        let descriptor = RawFd::try_from(descriptor).ok().filter(|descriptor| *descriptor >= 0)?;
        libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
        Some(OwnedFd::from_raw_fd(descriptor))
    }
}

/// The wait status of a process that has ended. The rest of its process group is killed before its number is free.
fn wait_for(pid: i32) -> Option<i32> {
    // SAFETY: all-zero is a valid siginfo, which is ours.
    let (asked, ended) = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let asked = libc::waitid(libc::P_PID, pid.cast_unsigned(), &raw mut info, options);
        (asked, info.si_pid() != 0)
    };
    if asked != 0 {
        // It is no child any more, so nobody knows how it ended: not in order, for all that is known. Its number may be
        // another's.
        return Some(libc::SIGKILL);
    }
    if !ended {
        return None;
    }
    let mut status = 0;
    // SAFETY: kill takes two integers; the status is ours.
    let reaped = unsafe {
        libc::kill(-pid, libc::SIGKILL);
        libc::waitpid(pid, &raw mut status, libc::WNOHANG)
    };
    Some(if reaped == pid { status } else { libc::SIGKILL })
}

/// Whether a child was stopped since this was last asked.
fn is_stopped(pid: i32) -> bool {
    // SAFETY: all-zero is a valid siginfo, which is ours.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WSTOPPED | libc::WNOHANG;
        libc::waitid(libc::P_PID, pid.cast_unsigned(), &raw mut info, options) == 0
            && info.si_pid() != 0
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn an_end_that_nobody_can_tell_was_not_in_order() {
        let mut child = Command::new("true").spawn().unwrap();
        // Somebody else has waited for it, or the system has, as it does where the signal of a child is ignored.
        assert!(child.wait().unwrap().success());
        let status = wait_for(child.id().cast_signed()).unwrap();
        assert!(libc::WIFSIGNALED(status), "{status}");
    }

    #[test]
    #[allow(clippy::zombie_processes, reason = "it is waited for, by number")]
    fn how_a_process_has_ended_is_told_once_it_has() {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new("sh");
        command.args(["-c", "read line; exit 3"]).stdin(std::process::Stdio::piped());
        let mut child = command.process_group(0).spawn().unwrap();
        let pid = child.id().cast_signed();
        assert_eq!(wait_for(pid), None);
        drop(child.stdin.take());
        let status = loop {
            match wait_for(pid) {
                Some(status) => break status,
                None => std::thread::yield_now(),
            }
        };
        assert_eq!(libc::WEXITSTATUS(status), 3);
    }
}
