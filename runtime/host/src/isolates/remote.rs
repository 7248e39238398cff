//! The process of one extension, as the session sees it.

use std::io::PipeReader;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use serde_json::Value;
use tenon_protocol::limits::MAX_UNSENT_BYTES;
use tenon_protocol::limits::STARVED_GRACE;
use tenon_protocol::limits::TERMINATE_GRACE;
use tenon_protocol::message::EndReason;
use tenon_protocol::message::FromIsolate;
use tenon_protocol::message::IsolateUsage;
use tenon_protocol::message::LoadSpec;
use tenon_protocol::message::ToIsolate;
use tenon_protocol::wire;
use tenon_protocol::wire::Decoder;
use tenon_protocol::wire::Json;
use tenon_protocol::zygote::ProcessNumber;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::Notify;
use tokio::sync::watch;

use super::zygote::Fate;
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

/// How long a process may take to exit after its last message before it is killed.
const EXIT_GRACE: Duration = Duration::from_secs(3);

/// How long an extension may take to say what it uses; one that computes takes longer, and what was last known counts.
const USAGE_DEADLINE: Duration = Duration::from_millis(500);

/// How much of a dead process's standard error is read, in bytes.
const MAX_LAST_WORDS: u64 = 64 * 1024;

/// Lines of it that are kept for the report.
const LAST_WORDS: usize = 8;

/// The longest of these lines, in characters.
const MAX_LAST_WORD: usize = 500;

/// The process of one extension. Dropping it kills the process.
pub struct Remote {
    process: Arc<Process>,
    link: Arc<Link>,
    ended: watch::Receiver<bool>,
    stop_deadline: Duration,
}

/// What the tasks around a process share.
struct Process {
    zygote: Arc<Zygote>,
    number: ProcessNumber,
    fate: watch::Receiver<Fate>,
    usage: watch::Sender<IsolateUsage>,
    /// Why the session has it killed.
    sentence: Mutex<Option<String>>,
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
        let (last_words, errors) = std::io::pipe()?;
        set_nonblocking(&last_words)?;
        // The process must not wait for somebody to read what it says there.
        set_nonblocking(&errors)?;
        let stop_deadline = Duration::from_millis(spec.limits.stop_deadline_ms);
        let link = Arc::new(Link { writer, queue: Mutex::default(), more: Notify::new() });
        tokio::spawn(link.clone().flush());
        let frame = wire::encode(&Json(spec)).map_err(std::io::Error::other)?;
        // Nothing was sent before, so there is room.
        let _ = link.send(&frame);
        let (number, fate) = zygote.start(OwnedFd::from(theirs), OwnedFd::from(errors));
        let (usage, sentence) = (watch::Sender::default(), Mutex::default());
        let process = Arc::new(Process { zygote, number, fate, usage, sentence });
        let (end, ended) = watch::channel(false);
        tokio::spawn(read(reader, last_words, process.clone(), receive, link.clone(), end));
        Ok(Self { process, link, ended, stop_deadline })
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
            // Longer than all that may wait.
            Err(_) => Err(Unsent),
        }
    }

    /// Lets the extension say goodbye, and ends it; by force when it does not answer.
    pub fn stop(&self) -> impl Future<Output = ()> + Send + 'static {
        // A full queue means that it reads nothing, also not this; it is then killed.
        let _ = self.send(&ToIsolate::Stop);
        let (process, deadline, mut ended) =
            (self.process.clone(), self.stop_deadline, self.ended.clone());
        async move {
            tokio::select! {
                // An error means that nobody listens any more, which is what we wait for.
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
        if !*self.ended.borrow() {
            self.process.kill("nobody needs it any more");
        }
    }
}

impl Process {
    fn kill(&self, why: &str) {
        let mut sentence = self.sentence.lock().unwrap_or_else(PoisonError::into_inner);
        sentence.get_or_insert_with(|| why.to_owned());
        drop(sentence);
        self.zygote.kill(self.number);
    }

    fn pid(&self) -> Option<u32> {
        match *self.fate.borrow() {
            Fate::Started(pid) => Some(pid),
            _ => None,
        }
    }

    /// The CPU time of the process.
    fn cpu_time(&self) -> Duration {
        self.pid().and_then(cpu_time).unwrap_or_default()
    }

    /// Waits until a process that was told to stop is overdue. One that had no processor has some more time.
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

    /// Kills a process that has said its last word and does not exit.
    async fn see_out(self: Arc<Self>) {
        let mut fate = self.fate.clone();
        if tokio::time::timeout(EXIT_GRACE, fate.wait_for(Fate::is_final)).await.is_err() {
            self.zygote.kill(self.number);
        }
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

/// The way to an isolate: what its socket does not take at once waits, and a task sends it on.
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
    fn queue(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Takes nothing more; what waits is forgotten.
    fn close(&self) {
        let mut queue = self.queue();
        queue.closed = true;
        queue.bytes = Default::default();
        self.more.notify_one();
    }

    /// Sends what waits, as the isolate takes it.
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

/// Takes what an extension says until its socket is closed.
async fn read(
    mut reader: OwnedReadHalf,
    last_words: PipeReader,
    process: Arc<Process>,
    receive: impl Fn(FromIsolate) + Send + Sync + 'static,
    link: Arc<Link>,
    end: watch::Sender<bool>,
) {
    let mut decoder = Decoder::default();
    let mut last_word = false;
    let problem = loop {
        match decoder.take::<FromIsolate>() {
            Ok(Some(FromIsolate::Measured(usage))) => {
                process.usage.send_replace(usage);
                continue;
            }
            Ok(Some(message)) => {
                last_word = matches!(message, FromIsolate::Ended(_));
                receive(message);
                if last_word {
                    break None;
                }
                continue;
            }
            Ok(None) => {}
            Err(error) => break Some(error.to_string()),
        }
        match reader.read_buf(decoder.room()).await {
            Ok(0) | Err(_) => break None,
            Ok(_) => {}
        }
    };
    link.close();
    if last_word {
        tokio::spawn(process.see_out());
    } else {
        receive(FromIsolate::Ended(process.cause(problem, last_words).await));
    }
    end.send_replace(true);
}

impl Process {
    /// Why the process closed its socket without a last word.
    async fn cause(&self, problem: Option<String>, last_words: PipeReader) -> EndReason {
        if let Some(problem) = problem {
            self.kill(&problem);
        }
        let mut fate = self.fate.clone();
        if tokio::time::timeout(EXIT_GRACE, fate.wait_for(Fate::is_final)).await.is_err() {
            // It has closed its socket and goes on: nobody can reach it.
            self.kill("it closed its connection to the session");
        }
        let fate = fate.wait_for(Fate::is_final).await.map(|fate| fate.clone());
        let fate = fate.unwrap_or_else(|_| Fate::Lost("nobody knows how".to_owned()));
        let sentence = self.sentence.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (sentence, fate) {
            (_, Fate::Lost(how)) if self.zygote.is_hopeless() => {
                EndReason::Setup { message: format!("no process could be started: {how}") }
            }
            (_, Fate::Lost(how)) => EndReason::ProcessDied { how, with_zygote: true },
            (Some(reason), _) => EndReason::Terminated { reason },
            (None, Fate::Failed(why)) => {
                EndReason::Setup { message: format!("no process could be started: {why}") }
            }
            (None, fate) => {
                let status = if let Fate::Ended(status) = fate { status } else { 0 };
                let mut how = describe(ExitStatus::from_raw(status));
                let words = read_last_words(last_words);
                if !words.is_empty() {
                    how = format!("{how}; its last words: {}", words.join(" | "));
                }
                EndReason::ProcessDied { how, with_zygote: false }
            }
        }
    }
}

/// The last lines that a process wrote to its standard error.
fn read_last_words(pipe: PipeReader) -> Vec<String> {
    let mut bytes = Vec::new();
    // It does not block: what is not there now is not read. An error is the end, too.
    let _ = pipe.take(MAX_LAST_WORDS).read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().rev().map(str::trim);
    let telling = lines.filter(|line| line.chars().any(char::is_alphanumeric));
    let mut words: Vec<String> =
        telling.take(LAST_WORDS).map(|line| line.chars().take(MAX_LAST_WORD).collect()).collect();
    words.reverse();
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
        libc::SIGSYS => "SIGSYS",
        libc::SIGTERM => "SIGTERM",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        _ => "a signal",
    };
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
    fn the_last_lines_that_say_something_are_kept() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        set_nonblocking(&reader).unwrap();
        std::io::Write::write_all(&mut writer, b"one\n---\ntwo\n").unwrap();
        // The writer is still open: what is there is read, and nothing is waited for.
        assert_eq!(read_last_words(reader), ["one", "two"]);
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
