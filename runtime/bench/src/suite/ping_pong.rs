//! The least that a call to another process can take: the same bytes to and fro, and nothing else.
//!
//! Two processes with one socket between them, each with one thread that reads and writes and so sleeps while it waits. A
//! request is as long as that of a tool call, and a reply as its reply.

use std::io::Read;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::Duration;
use std::time::Instant;

use serde_json::json;
use tenon_console::error::CliError;
use tenon_protocol::message::CallKind;
use tenon_protocol::message::FromIsolate;
use tenon_protocol::message::ToIsolate;
use tenon_protocol::wire;

use crate::args::Lengths;

/// How long an answer may take before the other process counts as gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// The lengths of a call of the tool `echo`.
pub fn of_a_call() -> Result<Lengths, CliError> {
    // Ids are as long as a session's: most of them are UUIDs.
    let id = "00000000-0000-4000-8000-000000000000";
    let payload = json!({
        "name": "echo",
        "args": { "text": "hello" },
        "toolCallId": id,
        "requestId": id,
        "sessionId": id,
    });
    let call = ToIsolate::Call { call: 1, kind: CallKind::Tool, payload: payload.to_string() };
    let reply = FromIsolate::Reply { call: 1, result: Ok("\"hello\"".to_owned()) };
    let failed = |error: wire::WireError| CliError::new(error.to_string());
    Ok(Lengths {
        request: wire::encode(&call).map_err(failed)?.len(),
        reply: wire::encode(&reply).map_err(failed)?.len(),
    })
}

/// The other process answers until it is dropped.
pub struct PingPong {
    socket: UnixStream,
    lengths: Lengths,
    process: Child,
}

impl PingPong {
    pub fn start(lengths: Lengths) -> Result<Self, CliError> {
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let Lengths { request, reply } = lengths;
        let process = std::process::Command::new(std::env::current_exe()?)
            .args(["--pong", &format!("{request},{reply}")])
            .stdin(OwnedFd::from(theirs))
            .spawn()?;
        Ok(Self { socket, lengths, process })
    }

    /// So many times to and fro; how long each took, in microseconds.
    pub fn play(&mut self, count: usize) -> Result<Vec<f64>, CliError> {
        let (request, mut reply) = (vec![1; self.lengths.request], vec![0; self.lengths.reply]);
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let started = Instant::now();
            self.socket.write_all(&request)?;
            self.socket.read_exact(&mut reply)?;
            times.push(started.elapsed().as_secs_f64() * 1e6);
        }
        Ok(times)
    }
}

impl Drop for PingPong {
    fn drop(&mut self) {
        // It ends by itself when the socket is closed; one that does not is killed.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Is the other process: answers on the socket that is its standard input until that is closed.
pub fn pong(lengths: Lengths) -> Result<(), CliError> {
    let mut socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let (mut request, reply) = (vec![0; lengths.request], vec![1; lengths.reply]);
    while socket.read_exact(&mut request).is_ok() && socket.write_all(&reply).is_ok() {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_longer_than_its_reply() {
        let lengths = of_a_call().unwrap();
        assert!(lengths.request > 150 && lengths.reply < 50, "{lengths:?}");
    }
}
