//! The process of one extension, as the session sees it.

use parking_lot::Mutex;
use std::io::PipeReader;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use serde_json::Value;
use signal_hook::low_level::signal_name;
use tenon_protocol::limits::CHILDREN_LIMIT;
use tenon_protocol::limits::MAX_UNSENT_BYTES;
use tenon_protocol::limits::MEMORY_LIMIT;
use tenon_protocol::limits::STARVED_GRACE;
use tenon_protocol::limits::TERMINATE_GRACE;
use tenon_protocol::limits::tasks_of_group;
use tenon_protocol::message::Breach;
use tenon_protocol::message::EndReason;
use tenon_protocol::message::FromIsolate;
use tenon_protocol::message::IsolateLimits;
use tenon_protocol::message::IsolateUsage;
use tenon_protocol::message::LoadSpec;
use tenon_protocol::message::ToIsolate;
use tenon_protocol::wire;
use tenon_protocol::wire::Json;
use tenon_protocol::zygote::GroupLimit;
use tenon_protocol::zygote::ProcessNumber;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::Notify;
use tokio::sync::watch;
use tracing::Span;
use tracing::field::Empty;
use tracing::info;
use tracing::info_span;

use super::incoming::End;
use super::incoming::Incoming;
use super::last_lines::LastLines;
use super::zygote::ProcessState;
use super::zygote::Zygote;

/// The extension does not read what is sent to it, and the queue is full.
#[derive(Debug, thiserror::Error)]
#[error("it is not reading: {} MB queued", MAX_UNSENT_BYTES / (1024 * 1024))]
pub struct Unsent;

/// The deepest nesting of a value that can be read again on the other side.
const MAX_DEPTH: usize = 120;

fn is_too_deep(value: &Value, left: usize) -> bool {
    match value {
        Value::Array(values) => {
            left == 0 || values.iter().any(|value| is_too_deep(value, left - 1))
        }
        Value::Object(map) => left == 0 || map.values().any(|value| is_too_deep(value, left - 1)),
        _ => false,
    }
}

/// How long a process may take to exit after its last message before it is killed, and how long the session then waits
/// for the report of its death. A zygote that is stopped, or a process that hangs in the kernel, must not hold up the
/// session.
const EXIT_GRACE: Duration = Duration::from_secs(3);

/// How long an extension may take to say what it uses; one that computes takes longer, and what was last known counts.
const USAGE_DEADLINE: Duration = Duration::from_millis(500);

/// How much of a dead process's standard error is read, in bytes.
const MAX_ERROR_BYTES: u64 = 64 * 1024;

/// The process of one extension. Dropping it kills the process, unless that is about to exit by itself.
pub struct Remote {
    process: Arc<Process>,
    link: Arc<Link>,
    incoming: Arc<Incoming>,
    ended: watch::Receiver<bool>,
    stop_deadline: Duration,
}

/// What the tasks of one process share.
struct Process {
    zygote: Arc<Zygote>,
    number: ProcessNumber,
    state: watch::Receiver<ProcessState>,
    usage: watch::Sender<IsolateUsage>,
    limits: IsolateLimits,
    /// Why the session has it killed, if it does.
    kill_reason: Mutex<Option<String>>,
    /// The session has told it to stop, and calls it no more.
    is_stopping: AtomicBool,
    /// It has said its last word and exits by itself; [`Process::exit_or_kill`] sees to it.
    is_exiting: AtomicBool,
}

impl Remote {
    /// Starts a process for an extension. Its messages go to `receive`; the last is `Ended`, also when the process
    /// dies. Must be called inside a tokio runtime.
    pub fn start(
        zygote: Arc<Zygote>,
        spec: LoadSpec,
        receive: impl Fn(FromIsolate) + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let (reader, writer) = UnixStream::from_std(ours)?.into_split();
        let (errors, their_errors) = std::io::pipe()?;
        set_nonblocking(&errors)?;
        // The process must not block when nobody reads this pipe.
        set_nonblocking(&their_errors)?;
        let span = info_span!("process", extension = %spec.id, pid = Empty);
        let limits = spec.limits;
        let stop_deadline = Duration::from_millis(limits.stop_deadline_ms);
        let link = Arc::new(Link { writer, queue: Mutex::default(), more: Notify::new() });
        tokio::spawn(link.clone().flush());
        let frame = wire::encode(&Json(spec)).map_err(std::io::Error::other)?;
        // Nothing was sent before, so there is room.
        let _ = link.send(&frame);
        let (number, state) = zygote.start(OwnedFd::from(theirs), OwnedFd::from(their_errors));
        let process = Arc::new(Process {
            zygote,
            number,
            state,
            usage: watch::Sender::default(),
            limits,
            kill_reason: Mutex::default(),
            is_stopping: AtomicBool::new(false),
            is_exiting: AtomicBool::new(false),
        });
        let (end, ended) = watch::channel(false);
        let measured = process.clone();
        let incoming = Incoming::new(reader, move |message| match message {
            FromIsolate::Measured(usage) => drop(measured.usage.send_replace(usage)),
            message => receive(message),
        });
        tokio::spawn(read(incoming.clone(), errors, process.clone(), link.clone(), end, span));
        Ok(Self { process, link, incoming, ended, stop_deadline })
    }

    /// What the extension says, for those who wait for a reply.
    pub fn incoming(&self) -> Arc<Incoming> {
        self.incoming.clone()
    }

    /// Sends messages, in one piece: the extension is woken once. One that has ended ignores them.
    pub fn send_all(&self, messages: &[ToIsolate]) -> Result<(), Unsent> {
        let mut frames = Vec::new();
        for message in messages {
            // See `send`; what is too deep is an answer, which goes alone.
            frames.extend(wire::encode(message).map_err(|_| Unsent)?);
        }
        self.link.send(&frames)
    }

    /// Sends a message. An extension that has ended ignores it.
    pub fn send(&self, message: &ToIsolate) -> Result<(), Unsent> {
        let too_deep;
        let message = match message {
            ToIsolate::Answer { request, result: Ok(value) } if is_too_deep(value, MAX_DEPTH) => {
                let result = Err("the answer is nested too deep to be passed on".to_owned());
                too_deep = ToIsolate::Answer { request: *request, result };
                &too_deep
            }
            message => message,
        };
        match wire::encode(message) {
            Ok(frame) => self.link.send(&frame),
            // The message alone is longer than the queue may be.
            Err(_) => Err(Unsent),
        }
    }

    /// Asks the extension to stop, and kills its process if it does not.
    pub fn stop(&self) -> impl Future<Output = ()> + Send + 'static {
        self.process.is_stopping.store(true, Relaxed);
        // If the queue is full, the extension reads nothing, also not this, and is killed.
        let _ = self.send(&ToIsolate::Stop);
        let (process, deadline, mut ended) =
            (self.process.clone(), self.stop_deadline, self.ended.clone());
        async move {
            tokio::select! {
                // An error means that the reader is gone, and with it the process.
                _ = ended.wait_for(|ended| *ended) => return,
                () = process.overdue(deadline) => {}
            }
            process.kill("it did not stop in time");
            let _ = ended.wait_for(|ended| *ended).await;
        }
    }

    pub fn hold_start(&self, held: bool) {
        let _ = self.send(&ToIsolate::HoldStart { held });
    }

    /// Something to ask for what it uses.
    pub fn gauge(&self) -> RemoteGauge {
        // Before it is asked: the answer may come at once.
        let answer = self.process.usage.subscribe();
        // An extension that does not read is measured from outside.
        let _ = self.send(&ToIsolate::Measure);
        let deadline = tokio::time::Instant::now() + USAGE_DEADLINE;
        RemoteGauge { process: self.process.clone(), answer, deadline }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.link.close();
        // What it has detached may go on after an end in order, which a kill would not be.
        if !*self.ended.borrow() && !self.process.is_exiting.load(Relaxed) {
            self.process.kill("the session does not need it any more");
        }
    }
}

impl Process {
    fn kill(&self, why: &str) {
        let mut reason = self.kill_reason.lock();
        reason.get_or_insert_with(|| why.to_owned());
        drop(reason);
        self.zygote.kill(self.number);
    }

    fn pid(&self) -> Option<u32> {
        match *self.state.borrow() {
            ProcessState::Started(pid) => Some(pid),
            _ => None,
        }
    }

    /// The CPU time of the process.
    fn cpu_time(&self) -> Duration {
        self.pid().and_then(cpu_time).unwrap_or_default()
    }

    /// Waits until a process that was told to stop is overdue. A process that got no CPU time has some more.
    async fn overdue(&self, deadline: Duration) {
        let used = self.cpu_time();
        tokio::time::sleep(deadline + TERMINATE_GRACE).await;
        let starved_until = tokio::time::Instant::now() + STARVED_GRACE;
        while self.cpu_time().saturating_sub(used) < deadline
            && tokio::time::Instant::now() < starved_until
        {
            tokio::time::sleep(TERMINATE_GRACE).await;
        }
    }

    /// Waits until the process has exited after its last message, and kills it if it does not.
    async fn exit_or_kill(&self) {
        if self.final_state().await.is_none() {
            self.zygote.kill(self.number);
            self.final_state().await;
        }
    }

    /// How the process ended; `None` if it does not within [`EXIT_GRACE`].
    async fn final_state(&self) -> Option<ProcessState> {
        let mut state = self.state.clone();
        let ended = tokio::time::timeout(EXIT_GRACE, state.wait_for(ProcessState::is_final)).await;
        // An error means that the zygote is gone, and the process with it.
        let gone = |_| ProcessState::Lost("the zygote did not report how".to_owned());
        ended.ok().map(|ended| ended.map_or_else(gone, |state| state.clone()))
    }
}

/// What a process uses, once it has answered.
pub struct RemoteGauge {
    process: Arc<Process>,
    answer: watch::Receiver<IsolateUsage>,
    deadline: tokio::time::Instant,
}

impl RemoteGauge {
    /// Waits for the answer, but not long. All that are asked at once have the same deadline.
    pub async fn read(mut self) -> IsolateUsage {
        let _ = tokio::time::timeout_at(self.deadline, self.answer.changed()).await;
        let mut usage = *self.answer.borrow();
        usage.pid = self.process.pid().unwrap_or(usage.pid);
        // Of all its threads.
        usage.cpu_us = usage.cpu_us.max(self.process.cpu_time().as_micros() as u64);
        usage
    }
}

/// The CPU time of another process.
fn cpu_time(pid: u32) -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let mut clock: libc::clockid_t = 0;
    // SAFETY: both pointers are to locals that outlive the calls.
    let read = unsafe {
        libc::clock_getcpuclockid(pid.cast_signed(), &raw mut clock) == 0
            && libc::clock_gettime(clock, &raw mut time) == 0
    };
    read.then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

fn set_nonblocking(file: &impl AsRawFd) -> std::io::Result<()> {
    // SAFETY: the file is open; both calls take integers.
    let set = unsafe {
        let flags = libc::fcntl(file.as_raw_fd(), libc::F_GETFL);
        libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK)
    };
    if set < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// Sends to an isolate without blocking: bytes that its socket has no room for are queued, and a task sends them.
struct Link {
    writer: OwnedWriteHalf,
    queue: Mutex<Queue>,
    more: Notify,
}

#[derive(Default)]
struct Queue {
    bytes: std::collections::VecDeque<u8>,
    closed: bool,
}

impl Link {
    fn queue(&self) -> parking_lot::MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    fn send(&self, frame: &[u8]) -> Result<(), Unsent> {
        let mut queue = self.queue();
        if queue.closed {
            return Ok(());
        }
        let mut sent = 0;
        if queue.bytes.is_empty() {
            // What goes wrong here goes wrong for the task too, which notices.
            sent = self.writer.try_write(frame).unwrap_or(0);
        } else if queue.bytes.len() + frame.len() > MAX_UNSENT_BYTES {
            return Err(Unsent);
        }
        if sent < frame.len() {
            queue.bytes.extend(&frame[sent..]);
            self.more.notify_one();
        }
        Ok(())
    }

    /// Drops what is queued, and whatever is sent from now on.
    fn close(&self) {
        let mut queue = self.queue();
        queue.closed = true;
        queue.bytes = Default::default();
        self.more.notify_one();
    }

    /// Sends what is queued whenever the socket has room.
    async fn flush(self: Arc<Self>) {
        loop {
            self.more.notified().await;
            loop {
                {
                    let mut queue = self.queue();
                    if queue.closed {
                        return;
                    }
                    if queue.bytes.is_empty() {
                        queue.bytes.shrink_to(64 * 1024);
                        break;
                    }
                    match self.writer.try_write(queue.bytes.as_slices().0) {
                        Ok(count) => {
                            queue.bytes.drain(..count);
                            continue;
                        }
                        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                        Err(_) => {
                            queue.closed = true;
                            return;
                        }
                    }
                }
                if self.writer.writable().await.is_err() {
                    return self.close();
                }
            }
        }
    }
}

/// Reads the messages of an extension until its socket is closed.
async fn read(
    incoming: Arc<Incoming>,
    errors: PipeReader,
    process: Arc<Process>,
    link: Arc<Link>,
    end: watch::Sender<bool>,
    span: Span,
) {
    let how = incoming.read().await;
    link.close();
    span.record("pid", process.pid());
    let reason = match how {
        End::Said(reason) => {
            // Before anybody hears of it: whoever does drops the process.
            process.is_exiting.store(true, Relaxed);
            // Until the process has exited it holds its ports and files, which the load that follows may want. An
            // extension that ends by itself is reported at once: calls must not be sent to it any longer.
            if process.is_stopping.load(Relaxed) {
                process.exit_or_kill().await;
            } else {
                let process = process.clone();
                tokio::spawn(async move { process.exit_or_kill().await });
            }
            reason
        }
        End::Garbled(problem) => process.cause(Some(problem), errors).await,
        End::Closed => process.cause(None, errors).await,
    };
    info!(parent: &span, reason = reason.name(), "the extension has ended");
    incoming.receive(FromIsolate::Ended(reason));
    end.send_replace(true);
}

impl Process {
    /// Why the process closed its socket without a last message.
    async fn cause(&self, problem: Option<String>, errors: PipeReader) -> EndReason {
        if let Some(problem) = problem {
            self.kill(&problem);
        }
        let state = match self.final_state().await {
            Some(state) => state,
            None => {
                // The process has closed its socket and keeps running, so the session cannot reach it.
                self.kill("it closed its connection to the session");
                let hangs =
                    || ProcessState::Lost("the process did not end after SIGKILL".to_owned());
                self.final_state().await.unwrap_or_else(hangs)
            }
        };
        let kill_reason = self.kill_reason.lock().take();
        match (kill_reason, state) {
            (_, ProcessState::Lost(how)) if self.zygote.keeps_failing() => {
                EndReason::Setup { message: format!("no process could be started: {how}") }
            }
            (_, ProcessState::Lost(how)) => EndReason::ProcessDied { how, with_zygote: true },
            // It was reached before anybody decided anything.
            (_, ProcessState::Ended(_, Some(limit))) => {
                EndReason::Limit(group_breach(limit, &self.limits))
            }
            (Some(reason), _) => EndReason::Terminated { reason },
            (None, ProcessState::Failed(why)) => {
                EndReason::Setup { message: format!("no process could be started: {why}") }
            }
            (None, state) => {
                let status = if let ProcessState::Ended(status, _) = state { status } else { 0 };
                let how = read_last_lines(errors).explain(describe(ExitStatus::from_raw(status)));
                EndReason::ProcessDied { how, with_zygote: false }
            }
        }
    }
}

/// A limit that the extension has reached together with all that it has started.
fn group_breach(limit: GroupLimit, limits: &IsolateLimits) -> Breach {
    let (limit, allowed) = match limit {
        GroupLimit::Memory => {
            let megabytes = limits.memory_bytes / (1024 * 1024);
            let what = "it and the programs that it started reached the limit of";
            (MEMORY_LIMIT, format!("{what} {megabytes} MB of memory together"))
        }
        GroupLimit::Tasks => {
            let (tasks, children) = (tasks_of_group(limits.children), limits.children);
            let what = "it and the programs that it started had more than";
            let why = format!("as many as {children} child processes may have");
            (CHILDREN_LIMIT, format!("{what} {tasks} processes and threads, {why}"))
        }
    };
    Breach { limit: limit.to_owned(), allowed, stack: String::new() }
}

/// The last lines that a process wrote to its standard error.
fn read_last_lines(errors: PipeReader) -> LastLines {
    let mut bytes = Vec::new();
    // The pipe does not block: this reads what is there now. An error ends it, too.
    let _ = errors.take(MAX_ERROR_BYTES).read_to_end(&mut bytes);
    let mut lines = LastLines::default();
    bytes.split(|byte| *byte == b'\n').for_each(|line| lines.push(line));
    lines
}

/// How a process ended, in words.
fn describe(status: ExitStatus) -> String {
    let name = |signal| signal_name(signal).unwrap_or("a signal");
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("it was ended by {} ({signal})", name(signal)),
        (None, Some(code)) => format!("it exited with code {code}"),
        (None, None) => "it ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_death_is_described_by_signal_or_code() {
        assert_eq!(describe(ExitStatus::from_raw(11)), "it was ended by SIGSEGV (11)");
        assert_eq!(describe(ExitStatus::from_raw(3 << 8)), "it exited with code 3");
    }

    #[test]
    fn what_a_process_wrote_is_read_without_waiting_for_more() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        set_nonblocking(&reader).unwrap();
        std::io::Write::write_all(&mut writer, b"one\n---\ntwo\n").unwrap();
        // The writer is still open.
        let how = read_last_lines(reader).explain("it ended".to_owned());
        assert_eq!(how, "it ended; its last words: one | two");
    }

    #[test]
    fn what_is_nested_too_deep_is_noticed() {
        let mut value = Value::Null;
        for _ in 0..MAX_DEPTH {
            value = json!([{ "x": value }]);
        }
        assert!(is_too_deep(&value, MAX_DEPTH));
        assert!(!is_too_deep(&json!([[{ "x": 1 }]]), MAX_DEPTH));
    }
}
