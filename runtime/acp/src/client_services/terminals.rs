//! Commands that run for an agent.
//!
//! Each has a guard of its own, as the agent has, and a thread that waits for it. Programs that embed us may do
//! without guards; then a command has a process group. Its number stays taken until the terminal is released:
//! the thread sees the end, but only then takes the process off the system's list. So the group can be
//! killed at any time, and never somebody else's.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use parking_lot::MutexGuard;
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::WaitId;
use rustix::process::WaitIdOptions;
use rustix::process::kill_process_group;
use rustix::process::waitid;
use serde::Serialize;
use serde_json::Value;
use serde_json::json;
use signal_hook::low_level::signal_name;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;
use tokio::sync::watch;

use crate::command_line::CommandLine;
use crate::guard;
use crate::guard::Handover;
use crate::guard::Lifeline;
use crate::guard::Order;
use crate::rpc::RpcError;

/// Terminals that are open at a time; each has a process and a thread.
pub const MAX_TERMINALS: usize = 32;

/// Bytes of output that are kept when the agent does not say: more than a model reads.
pub const DEFAULT_OUTPUT_BYTES: usize = 1024 * 1024;

/// The most bytes of output that are kept, whatever the agent says.
pub const MAX_OUTPUT_BYTES: usize = 16 * 1024 * 1024;

/// How long a killed process is waited for. Only one that hangs in the system takes longer than a moment.
const KILL_PATIENCE: Duration = Duration::from_secs(2);

/// Bytes of output that are read at a time.
const READ_BYTES: usize = 16 * 1024;

/// How often is read once more when a command has ended: as much as the largest pipe holds. What comes later
/// is from somebody it has left behind.
const LAST_READS: usize = 64;

/// The shell for a command that comes without arguments.
const SHELL: &str = "/bin/sh";

/// How many bytes of output are kept for an agent that wants `wanted`.
pub fn output_bytes(wanted: Option<u64>) -> usize {
    match wanted {
        Some(wanted) => usize::try_from(wanted).unwrap_or(usize::MAX).min(MAX_OUTPUT_BYTES),
        None => DEFAULT_OUTPUT_BYTES,
    }
}

/// The command as one would type it.
pub fn command_line(command: &str, args: &[String]) -> String {
    if args.is_empty() {
        return command.to_owned();
    }
    shell_words::join(std::iter::once(command).chain(args.iter().map(String::as_str)))
}

/// A command, ready to start. Agents that give no arguments mean a line for the shell.
pub fn command(command: &str, args: &[String], env: &[(String, String)], cwd: &Path) -> Command {
    let mut ready = if args.is_empty() {
        let mut shell = Command::new(SHELL);
        shell.arg("-c").arg(command);
        shell
    } else {
        let mut program = Command::new(command);
        program.args(args);
        program
    };
    ready.envs(env.iter().map(|(name, value)| (name, value))).current_dir(cwd);
    ready
}

/// The same command behind a guard, which ends it should we be killed.
fn guarded(tenon: &Path, plain: &Command) -> std::io::Result<(Command, Handover)> {
    let words = std::iter::once(plain.get_program()).chain(plain.get_args());
    let mut words = words.map(|word| word.to_string_lossy().into_owned());
    let line = CommandLine { program: words.next().unwrap_or_default(), args: words.collect() };
    let path = plain.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, value)| value);
    let path = path.map(OsStr::to_owned).or_else(|| std::env::var_os("PATH")).unwrap_or_default();
    let cwd = plain.get_current_dir().unwrap_or(Path::new("/"));
    // Otherwise it would be the guard that fails, and say so in the command's place.
    let program = line.find(&path, cwd).map_err(|_| std::io::ErrorKind::NotFound)?;
    let (mut command, handover) = guard::command(tenon, &program, &line.args)?;
    command
        .envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .current_dir(cwd);
    Ok((command, handover))
}

/// The terminals of one session. Dropping them ends their commands.
#[derive(Default)]
pub struct Terminals {
    /// Our own binary, if commands are to be guarded: see [`crate::guard`].
    guard: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closed: bool,
    open: HashMap<String, Terminal>,
}

impl Terminals {
    /// None yet. With our own binary, commands are guarded.
    pub fn new(guard: Option<PathBuf>) -> Self {
        Self { guard, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Starts a command; the name of its terminal. Must be called inside a tokio runtime.
    pub fn create(&self, command: Command, output_bytes: usize) -> Result<String, RpcError> {
        let mut state = self.state();
        if state.closed {
            return Err(RpcError::internal("the session has ended"));
        }
        if state.open.len() >= MAX_TERMINALS {
            let message = format!("{MAX_TERMINALS} terminals are open; release one first");
            return Err(RpcError::internal(message));
        }
        let program = command.get_program().to_owned();
        let terminal = Terminal::start(command, self.guard.as_deref(), output_bytes);
        let terminal = terminal.map_err(|error| {
            RpcError::internal(format!("{} cannot be started: {error}", program.display()))
        })?;
        let id = format!("terminal-{}", uuid::Uuid::new_v4().simple());
        state.open.insert(id.clone(), terminal);
        Ok(id)
    }

    fn with<T>(&self, id: &str, use_it: impl FnOnce(&Terminal) -> T) -> Result<T, RpcError> {
        self.state().open.get(id).map(use_it).ok_or_else(|| unknown(id))
    }

    /// What a command has written so far.
    pub fn output(&self, id: &str) -> Result<Value, RpcError> {
        // In this order: the output of one that has ended is complete.
        let (exit, output) = self.with(id, |terminal| {
            let exit = terminal.exit.borrow().clone();
            (exit, terminal.output.clone())
        })?;
        let (text, truncated) = output.lock().text(exit.is_some());
        let mut answer = json!({ "output": text, "truncated": truncated });
        if let Some(exit) = exit {
            answer["exitStatus"] = json!(exit);
        }
        Ok(answer)
    }

    /// Waits until a command has ended.
    pub async fn wait_for_exit(&self, id: &str) -> Result<Value, RpcError> {
        let mut exit = self.with(id, |terminal| terminal.exit.clone())?;
        match exit.wait_for(Option::is_some).await {
            Ok(exit) => Ok(json!(*exit)),
            // The runtime is about to end.
            Err(_) => Ok(json!(Exit::default())),
        }
    }

    /// Ends a command. What it has written can still be read.
    pub fn kill(&self, id: &str) -> Result<(), RpcError> {
        self.with(id, Terminal::kill)
    }

    /// Ends a command and forgets the terminal.
    pub async fn release(&self, id: &str) -> Result<(), RpcError> {
        let terminal = self.state().open.remove(id).ok_or_else(|| unknown(id))?;
        end([terminal]).await;
        Ok(())
    }

    /// Ends every command and starts no other.
    pub async fn close(&self) {
        let open = {
            let mut state = self.state();
            state.closed = true;
            std::mem::take(&mut state.open)
        };
        end(open.into_values()).await;
    }
}

/// Kills all and waits until they are gone.
async fn end(terminals: impl IntoIterator<Item = Terminal>) {
    // Dropping a terminal kills; first all, then the wait.
    let going: Vec<_> = terminals.into_iter().map(|terminal| terminal.going.clone()).collect();
    let gone = async {
        for mut going in going {
            while going.changed().await.is_ok() {}
        }
    };
    // One that hangs in the system is the system's.
    let _ = tokio::time::timeout(KILL_PATIENCE, gone).await;
}

fn unknown(id: &str) -> RpcError {
    RpcError::new(RpcError::RESOURCE_NOT_FOUND, format!("there is no terminal `{id}`"))
}

/// How a command ended; nothing is known about one that somebody else took care of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Exit {
    exit_code: Option<u32>,
    signal: Option<String>,
}

/// How a command is ended.
enum Reach {
    /// By its process group.
    Group(Pid),
    /// By its guard.
    Guard(Lifeline),
}

/// A command and what it has written. Dropping it kills the command with all that it has started.
struct Terminal {
    reach: Reach,
    output: Arc<Mutex<Output>>,
    /// Known when all that the command itself wrote is in `output`.
    exit: watch::Receiver<Option<Exit>>,
    /// Closes when the process is gone for good.
    going: watch::Receiver<()>,
    /// Closes with the terminal: then nobody wants the output of those the command has left behind.
    _released: oneshot::Sender<()>,
    /// Closes with the terminal: then the thread takes the process off the system's list.
    _keeper: std::sync::mpsc::Sender<Child>,
}

impl Terminal {
    fn start(plain: Command, guard: Option<&Path>, output_bytes: usize) -> std::io::Result<Self> {
        let (reader, writer) = std::io::pipe()?;
        let reader = OwnedFd::from(reader);
        let direct = File::from(reader.try_clone()?);
        let pipe = pipe::Receiver::from_owned_fd(reader)?;
        let (mut command, handover) = match guard {
            Some(tenon) => {
                let (command, handover) = guarded(tenon, &plain)?;
                (command, Some(handover))
            }
            None => (plain, None),
        };
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        if handover.is_none() {
            command.process_group(0);
        }

        // The thread comes first: a process without one could not be waited for.
        let (keeper, children) = std::sync::mpsc::channel();
        let (exited, ended) = oneshot::channel();
        let (alive, going) = watch::channel(());
        let thread = std::thread::Builder::new().name("tenon-terminal".into());
        thread.spawn(move || keep(children, exited, alive))?;
        let child = command.spawn()?;
        // It holds our copies of the pipe's other end.
        drop(command);
        let reach = match handover {
            Some(handover) => Reach::Guard(handover.given()),
            None => Reach::Group(Pid::from_child(&child)),
        };
        // The thread takes it: it ends only after this side of the channel.
        let _ = keeper.send(child);

        let output = Arc::new(Mutex::new(Output::new(output_bytes)));
        let (tell_exit, exit) = watch::channel(None);
        let (released, release) = oneshot::channel();
        let pump = Pump { pipe, direct, ended, release, output: output.clone(), tell_exit };
        tokio::spawn(pump.run());
        Ok(Self { reach, output, exit, going, _released: released, _keeper: keeper })
    }

    fn kill(&self) {
        match &self.reach {
            // The group's first process is taken off the system's list only after this terminal is gone, so the
            // number is not somebody else's.
            Reach::Group(group) => {
                let _ = kill_process_group(*group, Signal::KILL);
            }
            Reach::Guard(line) => line.order(Order::Kill),
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits for a command's end, then for its terminal's. `_alive` goes last.
fn keep(
    children: std::sync::mpsc::Receiver<Child>,
    exited: oneshot::Sender<Exit>,
    _alive: watch::Sender<()>,
) {
    // None comes if it could not be started.
    let Ok(mut child) = children.recv() else { return };
    // Nobody listens when the runtime has ended.
    let _ = exited.send(watch_exit(Pid::from_child(&child)));
    // An error is what is waited for: the terminal is released.
    let _ = children.recv();
    // It has ended, so this neither waits nor fails.
    let _ = child.wait();
}

/// Waits until a child has ended, and leaves it on the system's list.
fn watch_exit(child: Pid) -> Exit {
    loop {
        match waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(Some(ended)) => {
                return Exit {
                    exit_code: ended.exit_status().map(i32::cast_unsigned),
                    signal: ended.terminating_signal().map(signal_text),
                };
            }
            Err(Errno::INTR) => {}
            Ok(None) | Err(_) => return Exit::default(),
        }
    }
}

/// A signal that ended a command, as the agent is told of it.
fn signal_text(signal: i32) -> String {
    signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
}

/// Moves what a command writes to where it is kept, and says how it ended when all of that is there.
struct Pump {
    pipe: pipe::Receiver,
    /// The same pipe, to be read without asking first whether anything is in it.
    direct: File,
    ended: oneshot::Receiver<Exit>,
    release: oneshot::Receiver<()>,
    output: Arc<Mutex<Output>>,
    tell_exit: watch::Sender<Option<Exit>>,
}

impl Pump {
    async fn run(mut self) {
        let mut buffer = vec![0; READ_BYTES];
        let (mut open, mut running) = (true, true);
        while open || running {
            tokio::select! {
                read = self.pipe.read(&mut buffer), if open => match read {
                    Ok(0) | Err(_) => open = false,
                    Ok(count) => self.output.lock().push(&buffer[..count]),
                },
                exit = &mut self.ended, if running => {
                    running = false;
                    // All it has written is in the pipe, which need not have been announced yet.
                    for _ in 0..LAST_READS {
                        match self.direct.read(&mut buffer) {
                            Ok(0) | Err(_) => break,
                            Ok(count) => self.output.lock().push(&buffer[..count]),
                        }
                    }
                    self.tell_exit.send_replace(Some(exit.unwrap_or_default()));
                }
                _ = &mut self.release, if !running => break,
            }
        }
    }
}

/// The end of what a command has written, as much as is kept.
struct Output {
    bytes: VecDeque<u8>,
    limit: usize,
    truncated: bool,
}

impl Output {
    fn new(limit: usize) -> Self {
        Self { bytes: VecDeque::new(), limit, truncated: false }
    }

    fn push(&mut self, more: &[u8]) {
        self.bytes.extend(more);
        let excess = self.bytes.len().saturating_sub(self.limit);
        if excess > 0 {
            self.bytes.drain(..excess);
            self.truncated = true;
        }
    }

    /// The text, and whether something is missing before it. Of one that still runs, half a character at the
    /// end is left for later.
    fn text(&self, ended: bool) -> (String, bool) {
        let (front, back) = self.bytes.as_slices();
        let all = [front, back].concat();
        let mut bytes = all.as_slice();
        if self.truncated {
            // The rest of a character whose beginning is gone.
            let rest = bytes.iter().take(3).take_while(|byte| *byte & 0b1100_0000 == 0b1000_0000);
            bytes = &bytes[rest.count()..];
        }
        if !ended
            && let Err(error) = std::str::from_utf8(bytes)
            && error.error_len().is_none()
        {
            bytes = &bytes[..error.valid_up_to()];
        }
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        let mut truncated = self.truncated;
        // What stands for bytes that are no text is longer than these.
        if text.len() > self.limit {
            let mut start = text.len() - self.limit;
            while !text.is_char_boundary(start) {
                start += 1;
            }
            text.drain(..start);
            truncated = true;
        }
        (text, truncated)
    }
}

#[cfg(test)]
mod tests;
