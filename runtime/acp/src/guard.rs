//! The guard: a small process between us and an agent, `tenon agent-guard`.
//!
//! It starts the agent in a process group of its own, with the standard streams it was given, and ends as
//! the agent ends. When we ask it to, or when we are gone, it ends the agent and everything that comes from
//! it, also what has left the group: orphans below it become its children. It has one thread and waits.

mod line;
mod signals;
mod tree;

use std::ffi::OsStr;
use std::ffi::OsString;
use std::io;
use std::io::Read;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::os::fd::BorrowedFd;
use std::os::fd::FromRawFd;
use std::os::fd::RawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::process::ExitCode;
use std::time::Duration;
use std::time::Instant;

use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::Timespec;
use rustix::event::poll;
use rustix::io::Errno;
use rustix::io::FdFlags;
use rustix::io::fcntl_setfd;
use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::WaitOptions;
use rustix::process::getpid;
use rustix::process::kill_process_group;
use rustix::process::setsid;
use rustix::process::test_kill_process_group;
use rustix::process::wait;
use rustix::stdio::dup2_stdin;
use rustix::stdio::dup2_stdout;

pub use self::line::Lifeline;
pub use self::line::Order;
pub use self::line::Outcome;

use self::line::Report;
use self::signals::Signals;

/// The command of the binary that makes it a guard.
pub const COMMAND: &str = "agent-guard";

/// How long an agent may take to end when it was asked to by SIGTERM; then it is killed.
pub const TERM_GRACE: Duration = Duration::from_secs(2);

/// How long what an agent leaves behind may take to end when it was asked to; then it is killed. Nobody
/// waits for its work any more.
pub const LEFTOVER_GRACE: Duration = Duration::from_millis(500);

/// How long the guard goes on to kill. Who is alive then cannot be killed: it waits for a device, or has
/// become somebody else.
pub const KILL_PATIENCE: Duration = Duration::from_secs(10);

/// How often it looks for who was started while the others were killed.
const KILL_ROUND: Duration = Duration::from_millis(20);

/// What a guard ends with that could not start the agent; as in a shell.
const CANNOT_START: u8 = 126;

/// A line whose other end the guard gets when it is started.
pub struct Handover {
    lifeline: Lifeline,
    /// Kept open until then.
    _theirs: UnixStream,
}

impl Handover {
    /// The guard was started; the other end is its own now.
    pub fn given(self) -> Lifeline {
        self.lifeline
    }
}

/// A command that starts a program through a guard. Its working directory, environment and standard streams
/// will be the program's.
pub fn command(tenon: &Path, program: &Path, args: &[String]) -> io::Result<(Command, Handover)> {
    let (lifeline, theirs) = Lifeline::pair()?;
    let descriptor = theirs.as_raw_fd();
    let mut command = Command::new(tenon);
    command.arg(COMMAND).arg(descriptor.to_string()).arg(program).args(args);
    // SAFETY: between fork and exec only system calls are made that are allowed there. The descriptor is open
    // in the parent until the process was started, so it is in the child.
    unsafe {
        command.pre_exec(move || {
            // Only this process shall have it; everybody else's copy closes by itself.
            fcntl_setfd(BorrowedFd::borrow_raw(descriptor), FdFlags::empty())?;
            // Without a terminal: what would ask a person there fails instead of being stopped for ever,
            // and an interrupt is ours to handle.
            setsid()?;
            Ok(())
        });
    }
    Ok((command, Handover { lifeline, _theirs: theirs }))
}

/// Serves as guard if that is what this process was started for. Call it first thing in `main`, before any
/// other thread exists.
pub fn serve_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != COMMAND {
        return None;
    }
    let descriptor: RawFd = arguments.next()?.to_str()?.parse().ok()?;
    let program = arguments.next()?;
    let args: Vec<OsString> = arguments.collect();
    Some(serve(descriptor, &program, &args))
}

fn serve(descriptor: RawFd, program: &OsStr, args: &[OsString]) -> ExitCode {
    let complain = |what: String| {
        // Standard error is the agent's, and it has not begun.
        let _ = writeln!(io::stderr(), "{what}");
        ExitCode::from(CANNOT_START)
    };
    let line = match take_line(descriptor) {
        Ok(line) => line,
        Err(error) => return complain(format!("the guard has no line to who started it: {error}")),
    };
    match Guard::start(&line, program, args) {
        Ok(guard) => end_like(guard.watch()),
        Err(error) => {
            report(&line, &Report::Failed(error.to_string()));
            complain(format!("{} could not be started: {error}", program.display()))
        }
    }
}

/// What the guard has.
struct Guard<'a> {
    line: &'a UnixStream,
    is_line_open: bool,
    signals: Signals,
    /// The agent's process and its group.
    agent: Pid,
    /// How it ended, as the system puts it.
    ended: Option<i32>,
    /// Whether orphans below us become our children.
    is_reaper: bool,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The agent works.
    Watching,
    /// Everybody was asked to end.
    Asked { kill_at: Instant },
    /// Everybody is killed.
    Killing { give_up_at: Instant },
}

impl<'a> Guard<'a> {
    fn start(line: &'a UnixStream, program: &OsStr, args: &[OsString]) -> io::Result<Self> {
        let signals = Signals::take()?;
        let is_reaper = become_reaper();
        let (guard, descriptor) = (getpid(), line.as_raw_fd());
        let mut command = Command::new(program);
        command.args(args).process_group(0);
        // The program may have taken secrets out of its own environment when it began.
        command.env_clear().envs(tenon_host::environment::of_host());
        // SAFETY: this process has one thread, so between fork and exec everything is allowed. The descriptor
        // is open as long as `line` lives.
        unsafe {
            command.pre_exec(move || {
                die_with(guard)?;
                // By itself, so that nothing of it runs that we have not heard of.
                let line = ManuallyDrop::new(UnixStream::from_raw_fd(descriptor));
                report(&line, &Report::Agent(std::process::id().cast_signed()));
                Ok(())
            });
        }
        let child = command.spawn()?;
        // Waited for together with the orphans.
        let agent = Pid::from_child(&child);
        let_go();
        Ok(Self {
            line,
            is_line_open: true,
            signals,
            agent,
            ended: None,
            is_reaper,
            phase: Phase::Watching,
        })
    }

    /// Waits until nothing of the agent is left; returns how the agent itself ended.
    fn watch(mut self) -> i32 {
        loop {
            let is_alone = self.reap();
            let now = Instant::now();
            if let Some(ended) = self.ended {
                if is_alone && (self.is_reaper || !self.has_group()) {
                    report(self.line, &Report::Ended(ended));
                    return ended;
                }
                self.shorten_grace(now);
            }
            match self.phase {
                Phase::Watching => {}
                Phase::Asked { kill_at } => {
                    if now >= kill_at {
                        self.kill();
                    }
                }
                Phase::Killing { give_up_at } => {
                    if now >= give_up_at {
                        let ended = self.ended.unwrap_or(libc::SIGKILL);
                        report(self.line, &Report::Ended(ended));
                        return ended;
                    }
                    self.signal_all(Signal::KILL);
                }
            }
            self.wait();
            if self.signals.want_end() {
                self.ask_to_end();
            }
            self.take_orders();
        }
    }

    /// The agent has ended by itself: what it has left behind gets less time.
    fn shorten_grace(&mut self, now: Instant) {
        let soon = now + LEFTOVER_GRACE;
        match self.phase {
            Phase::Watching => {
                self.signal_all(Signal::TERM);
                self.phase = Phase::Asked { kill_at: soon };
            }
            Phase::Asked { kill_at } => self.phase = Phase::Asked { kill_at: kill_at.min(soon) },
            Phase::Killing { .. } => {}
        }
    }

    /// Asks everybody to end, and gives them some time for it.
    fn ask_to_end(&mut self) {
        if self.phase == Phase::Watching {
            self.signal_all(Signal::TERM);
            self.phase = Phase::Asked { kill_at: Instant::now() + TERM_GRACE };
        }
    }

    fn kill(&mut self) {
        if !matches!(self.phase, Phase::Killing { .. }) {
            self.signal_all(Signal::KILL);
            self.phase = Phase::Killing { give_up_at: Instant::now() + KILL_PATIENCE };
        }
    }

    fn take_orders(&mut self) {
        let mut bytes = [0; 16];
        while self.is_line_open {
            match (&mut &*self.line).read(&mut bytes) {
                // Whoever started us is gone.
                Ok(0) => {
                    self.is_line_open = false;
                    self.ask_to_end();
                }
                Ok(count) => {
                    for order in bytes[..count].iter().filter_map(|byte| Order::of(*byte)) {
                        match order {
                            // When to kill is said as well, or the line closes.
                            Order::Terminate => self.signal_all(Signal::TERM),
                            Order::Kill => self.kill(),
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.is_line_open = false;
                    self.ask_to_end();
                }
            }
        }
    }

    /// Sends a signal to the group at once, then to everybody who has left it; to nobody twice.
    fn signal_all(&self, signal: Signal) {
        // A group's number is not given away as long as it has members; an empty one's could be somebody else's
        // only if numbers came round within this moment.
        let _ = kill_process_group(self.agent, signal);
        for process in tree::below(std::process::id().cast_signed()) {
            if process.group != self.agent.as_raw_pid() {
                process.signal(signal);
            }
        }
    }

    fn has_group(&self) -> bool {
        test_kill_process_group(self.agent).is_ok()
    }

    /// Takes note of everybody who has ended; says whether nobody is left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(None) => return false,
                Ok(Some((process, status))) if process == self.agent => {
                    self.ended = Some(status.as_raw());
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Err(_) => return true,
            }
        }
    }

    /// Waits for a signal, an order, or the time to do something.
    fn wait(&self) {
        let now = Instant::now();
        let patience = match self.phase {
            Phase::Watching => None,
            Phase::Asked { kill_at } => Some(kill_at.saturating_duration_since(now)),
            Phase::Killing { give_up_at } => {
                Some(give_up_at.saturating_duration_since(now).min(KILL_ROUND))
            }
        };
        // Without orphans nobody tells when the group has ended.
        let patience = match patience {
            Some(patience) if !self.is_reaper && self.ended.is_some() => {
                Some(patience.min(KILL_ROUND))
            }
            patience => patience,
        };
        // No patience is so long that it does not fit.
        let timeout = patience.and_then(|patience| Timespec::try_from(patience).ok());
        let mut waiting =
            [PollFd::new(&self.signals, PollFlags::IN), PollFd::new(self.line, PollFlags::IN)];
        // A line that is closed would be ready all the time.
        let waiting = if self.is_line_open { &mut waiting[..] } else { &mut waiting[..1] };
        // Being interrupted is as good as a signal's byte.
        let _ = poll(waiting, timeout.as_ref());
    }
}

/// The line we were given, which is nobody else's.
fn take_line(descriptor: RawFd) -> io::Result<UnixStream> {
    if descriptor <= libc::STDERR_FILENO {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: it is only asked about, which fails if it is not open.
    fcntl_setfd(unsafe { BorrowedFd::borrow_raw(descriptor) }, FdFlags::CLOEXEC)?;
    // SAFETY: it is open, and whoever started us has made it for this.
    let line = unsafe { UnixStream::from_raw_fd(descriptor) };
    line.set_nonblocking(true)?;
    Ok(line)
}

/// Says something to whoever started us, who may be gone.
fn report(mut line: &UnixStream, report: &Report) {
    let _ = line.write_all(report.line().as_bytes());
}

/// Makes orphans below this process its children.
fn become_reaper() -> bool {
    #[cfg(target_os = "linux")]
    let done = rustix::process::set_child_subreaper(Some(getpid())).is_ok();
    #[cfg(not(target_os = "linux"))]
    let done = false;
    done
}

/// Makes the calling process end with its parent, the guard: a guard can be killed like anybody.
fn die_with(guard: Pid) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        if rustix::process::getppid() != Some(guard) {
            return Err(Errno::SRCH.into());
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = guard;
    Ok(())
}

/// Lets go of the agent's input and output, whose end would not be seen otherwise, and of its directory.
fn let_go() {
    match std::fs::File::options().read(true).write(true).open("/dev/null") {
        Ok(null) => {
            let _ = dup2_stdin(&null);
            let _ = dup2_stdout(&null);
        }
        // SAFETY: nobody reads or writes these streams any more.
        Err(_) => unsafe {
            rustix::io::close(libc::STDIN_FILENO);
            rustix::io::close(libc::STDOUT_FILENO);
        },
    }
    // A directory that somebody is in cannot be unmounted.
    let _ = std::env::set_current_dir("/");
}

/// Ends this process as another has ended.
fn end_like(status: i32) -> ExitCode {
    if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        signals::end_by(signal);
        // The usual way to say it where it cannot be done.
        return ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX));
    }
    // The system keeps eight bits.
    ExitCode::from(u8::try_from(libc::WEXITSTATUS(status)).unwrap_or(u8::MAX))
}
