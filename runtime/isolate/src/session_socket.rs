//! The socket between an extension's process and its session.

use std::io::Read;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::PoisonError;

use tenon_protocol::message::FromIsolate;
use tenon_protocol::message::LoadSpec;
use tenon_protocol::message::ScriptError;
use tenon_protocol::message::ToIsolate;
use tenon_protocol::wire;
use tenon_protocol::wire::Decoder;
use tenon_protocol::wire::Json;
use tokio::sync::mpsc;

/// Reads what the process is to run, the first frame on its socket. Further frames that came along stay in the decoder.
pub fn read_spec(mut socket: &UnixStream) -> std::io::Result<(LoadSpec, Decoder)> {
    let mut decoder = Decoder::default();
    let mut piece = [0; 16 * 1024];
    loop {
        if let Some(Json(spec)) = decoder.take().map_err(std::io::Error::other)? {
            return Ok((spec, decoder));
        }
        let count = socket.read(&mut piece)?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        decoder.room().extend_from_slice(&piece[..count]);
    }
}

/// Passes on what the session sends. The process reads its own socket, so a message wakes one thread only.
pub async fn feed(
    socket: UnixStream,
    mut decoder: Decoder,
    inbox: mpsc::UnboundedSender<ToIsolate>,
) {
    use tokio::io::AsyncReadExt;
    let Ok(mut socket) = tokio::net::UnixStream::from_std(socket) else { return };
    loop {
        match decoder.take::<ToIsolate>() {
            Ok(Some(message)) => {
                if inbox.send(message).is_err() {
                    return;
                }
                continue;
            }
            Ok(None) => {}
            Err(_) => break,
        }
        match socket.read_buf(decoder.room()).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    // Nobody can reach it any more.
    let _ = inbox.send(ToIsolate::Stop);
}

/// Where an extension's messages leave.
pub struct Sender {
    socket: Mutex<UnixStream>,
}

impl Sender {
    /// A sender on a socket that does not block.
    pub fn new(socket: UnixStream) -> Self {
        Self { socket: Mutex::new(socket) }
    }

    /// Writes a message. If the session stops reading, the caller blocks, except with log lines: those are dropped.
    pub fn send(&self, message: FromIsolate) {
        let may_be_lost = matches!(message, FromIsolate::Log(_));
        let is_last = matches!(message, FromIsolate::Ended(_));
        let frame = wire::encode(&message).or_else(|error| {
            // What is too long fails the call it belongs to, not the isolate.
            let problem = ScriptError::message(error.to_string());
            match message {
                FromIsolate::Reply { call, .. } => {
                    wire::encode(&FromIsolate::Reply { call, result: Err(problem) })
                }
                _ => Err(error),
            }
        });
        let Ok(frame) = frame else { return };
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rest = frame.as_slice();
        while !rest.is_empty() {
            match (&*socket).write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    if may_be_lost && rest.len() == frame.len() {
                        return;
                    }
                    wait_for_room(&socket);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                // The session has closed the connection.
                Err(_) => return,
            }
        }
        if is_last {
            // A copy of the socket may be open elsewhere; nothing may be sent over it any more.
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
    }
}

fn wait_for_room(socket: &UnixStream) {
    let mut waiting = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: one structure, which is ours.
    unsafe { libc::poll(&raw mut waiting, 1, -1) };
}
