//! Standard output and error of an extension: a pipe that ends in its log.
//!
//! `console.*` does not come this way (it is an op). What does is `process.stdout.write` and the
//! output of child processes that inherit it. The pipe is read on a thread of its own, one for all
//! isolates, because the isolate may block in the very write that fills the pipe.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
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

/// Tells when everything that was written has come out.
pub struct Drained(mpsc::Receiver<()>);

impl Drained {
    /// Waits until the last writer is gone and the pipe is empty. A detached child may keep it open,
    /// so not for long.
    pub fn wait(self) {
        // Nothing is ever sent; the channel closes when the reader is done.
        let _ = self.0.recv_timeout(DRAIN_DEADLINE);
    }
}

/// Standard input, output and error for a new isolate; what is written goes to `log`.
pub fn piped(log: LogGate) -> io::Result<(Stdio, Drained)> {
    let (reader, writer) = io::pipe()?;
    let (open, drained) = mpsc::channel();
    background::spawn(forward(OwnedFd::from(reader), log, open));
    let writer = File::from(OwnedFd::from(writer));
    let stdio = Stdio {
        stdin: StdioPipe::file(File::open("/dev/null")?),
        stdout: StdioPipe::file(writer.try_clone()?),
        stderr: StdioPipe::file(writer),
    };
    Ok((stdio, Drained(drained)))
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
