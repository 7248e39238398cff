//! Standard output and error of an extension: a pipe that ends in its log.
//!
//! `console.*` does not come this way (it is an op). What does is `process.stdout.write` and the
//! output of child processes that inherit it. The pipe is read on a thread of its own, one for all
//! isolates, because the isolate may block in the very write that fills the pipe.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::os::fd::RawFd;
use std::sync::mpsc;

use deno_runtime::deno_io::Stdio;
use deno_runtime::deno_io::StdioPipe;
use tokio::io::AsyncBufReadExt;
use tokio::io::BufReader;
use tokio::net::unix::pipe;

use crate::background;
use crate::limits::DRAIN_DEADLINE;
use crate::limits::MAX_OUTPUT_LINE_BYTES;
use crate::log_rate::LogGate;
use crate::message::FromIsolate;
use crate::message::LogLevel;
use crate::message::LogRecord;

/// The pipe behind an extension's standard output and error.
pub struct Output {
    log: LogGate,
    /// A descriptor that writes to it. The platform makes more of them, for child processes.
    writer: RawFd,
    /// Closed when everything has come out; none while nobody reads.
    drained: Option<mpsc::Receiver<()>>,
}

impl Output {
    /// Waits until the last writer is gone and the pipe is empty. A detached child may keep it open,
    /// so not for long.
    pub fn wait(self) {
        // Nothing is ever sent; the channel closes when the reader is done.
        if let Some(drained) = self.drained {
            let _ = drained.recv_timeout(DRAIN_DEADLINE);
        }
    }

    /// The same in a process that is about to exit, and in which the engine still has the writers.
    #[cfg(target_os = "linux")]
    pub fn close_and_wait(self) {
        if let Ok(nothing) = File::options().write(true).open("/dev/null") {
            let _ = replace_all(self.writer, &nothing);
        }
        self.wait();
    }

    /// After a fork: makes a pipe of the process's own, where the inherited one was, and reads it.
    #[cfg(target_os = "linux")]
    pub fn reopen(&mut self) -> io::Result<()> {
        let (reader, writer) = io::pipe()?;
        replace_all(self.writer, &writer)?;
        self.read(reader);
        Ok(())
    }

    fn read(&mut self, reader: io::PipeReader) {
        let (open, drained) = mpsc::channel();
        background::spawn(forward(OwnedFd::from(reader), self.log.clone(), open));
        self.drained = Some(drained);
    }
}

/// Puts a file in the place of a pipe, wherever that pipe is open for writing. Whoever owns the descriptors owns the file
/// then.
#[cfg(target_os = "linux")]
fn replace_all(pipe: RawFd, file: &impl AsRawFd) -> io::Result<()> {
    let Some(old) = identity(pipe) else { return Ok(()) };
    for place in 3..MAX_OUTPUT_DESCRIPTOR {
        if identity(place) != Some(old) || !is_writer(place) {
            continue;
        }
        // SAFETY: both are open; dup3 touches no memory.
        if unsafe { libc::dup3(file.as_raw_fd(), place, libc::O_CLOEXEC) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// No descriptor of an instance's output has a higher number: they are among the first that its process opens.
#[cfg(target_os = "linux")]
const MAX_OUTPUT_DESCRIPTOR: RawFd = 256;

/// Whether a pipe's end is the one that writes.
#[cfg(target_os = "linux")]
fn is_writer(file: RawFd) -> bool {
    // SAFETY: fcntl with F_GETFL only looks.
    let flags = unsafe { libc::fcntl(file, libc::F_GETFL) };
    flags >= 0 && flags & libc::O_ACCMODE == libc::O_WRONLY
}

/// What tells an open file from others.
#[cfg(target_os = "linux")]
fn identity(file: RawFd) -> Option<(u64, u64)> {
    // SAFETY: all-zero is a valid stat, which is ours; a number that is no file is an error.
    unsafe {
        let mut about: libc::stat = std::mem::zeroed();
        (libc::fstat(file, &raw mut about) == 0).then_some((about.st_dev, about.st_ino))
    }
}

/// Standard input, output and error for a new isolate; what is written goes to `log`. In a zygote nobody reads yet.
pub fn piped(log: LogGate) -> io::Result<(Stdio, Output)> {
    let (reader, writer) = io::pipe()?;
    let writer = File::from(OwnedFd::from(writer));
    let second = writer.try_clone()?;
    let mut output = Output { log, writer: writer.as_raw_fd(), drained: None };
    if !background::is_forbidden() {
        output.read(reader);
    }
    let stdio = Stdio {
        stdin: StdioPipe::file(File::open("/dev/null")?),
        stdout: StdioPipe::file(second),
        stderr: StdioPipe::file(writer),
    };
    Ok((stdio, output))
}

/// Passes on what comes out of the pipe; `_open` is dropped at its end.
async fn forward(reader: OwnedFd, log: LogGate, _open: mpsc::Sender<()>) {
    // Dropping the reader makes later writes fail instead of blocking for ever.
    let Ok(reader) = pipe::Receiver::from_owned_fd(reader) else { return };
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    loop {
        let (taken, complete) = match reader.fill_buf().await {
            Ok([]) | Err(_) => break,
            Ok(available) => {
                let room = MAX_OUTPUT_LINE_BYTES - line.len();
                let end = available.iter().position(|&byte| byte == b'\n');
                let taken = end.map_or(available.len(), |end| end + 1).min(room);
                line.extend_from_slice(&available[..taken]);
                (taken, line.ends_with(b"\n") || line.len() == MAX_OUTPUT_LINE_BYTES)
            }
        };
        reader.consume(taken);
        if complete {
            send(&log, &mut line);
        }
    }
    if !line.is_empty() {
        send(&log, &mut line);
    }
}

fn send(log: &LogGate, line: &mut Vec<u8>) {
    let text = String::from_utf8_lossy(line).trim_end_matches(['\n', '\r']).to_owned();
    line.clear();
    log.send(FromIsolate::Log(LogRecord { level: LogLevel::Info, text }));
}
