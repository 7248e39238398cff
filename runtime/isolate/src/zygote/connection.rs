//! One session's connection to the zygote.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use tenon_protocol::descriptors;
use tenon_protocol::wire;
use tenon_protocol::wire::Decoder;
use tenon_protocol::wire::Json;
use tenon_protocol::zygote::Order;
use tenon_protocol::zygote::Report;

use super::child::Files;

/// Reports that a session has not read, in bytes. A process has two reports of less than a hundred bytes; a session that
/// lets this many wait is not reading.
const MAX_UNREAD: usize = 4 * 1024 * 1024;

/// A socket that never blocks, with what came in half and what could not go out.
pub struct Connection {
    stream: UnixStream,
    decoder: Decoder,
    arrived: Vec<OwnedFd>,
    files: VecDeque<OwnedFd>,
    unsent: Vec<u8>,
    is_broken: bool,
}

impl Connection {
    pub fn new(stream: UnixStream) -> std::io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            decoder: Decoder::default(),
            arrived: Vec::new(),
            files: VecDeque::new(),
            unsent: Vec::new(),
            is_broken: false,
        })
    }

    /// What to wait for.
    pub fn interest(&self) -> libc::pollfd {
        let writing = if self.unsent.is_empty() { 0 } else { libc::POLLOUT };
        libc::pollfd { fd: self.stream.as_raw_fd(), events: libc::POLLIN | writing, revents: 0 }
    }

    /// Reads what is there; false at the end.
    pub fn read(&mut self) -> bool {
        loop {
            match descriptors::receive(&self.stream, self.decoder.room(), &mut self.arrived) {
                Ok(0) => return false,
                Ok(_) => self.files.extend(self.arrived.drain(..)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
    }

    /// The next order that has come in whole.
    pub fn next_order(&mut self) -> Option<Order> {
        match self.decoder.take::<Json<Order>>() {
            Ok(order) => order.map(|Json(order)| order),
            Err(_) => {
                self.is_broken = true;
                None
            }
        }
    }

    /// The files of an order to start a process.
    pub fn take_files(&mut self) -> Option<Files> {
        if self.files.len() < 2 {
            return None;
        }
        let socket = UnixStream::from(self.files.pop_front()?);
        Some(Files { socket, errors: self.files.pop_front()? })
    }

    /// Sends a report; what the socket does not take waits.
    pub fn report(&mut self, report: &Report) {
        if let Ok(frame) = wire::encode(&Json(report.clone())) {
            self.unsent.extend_from_slice(&frame);
        }
        self.flush();
        self.is_broken |= self.unsent.len() > MAX_UNREAD;
    }

    /// Sends what waits.
    pub fn flush(&mut self) {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.is_broken = true;
                    self.unsent.clear();
                }
            }
        }
    }

    /// Whether the session makes no sense, or does not listen.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }
}
