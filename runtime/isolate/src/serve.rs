//! The isolate host: the process that isolates live in, from inside.
//!
//! Its main thread takes orders; everything else happens on the isolates' own threads, which talk to the
//! session each through a socket of its own. When the session's process is gone, this one ends, and with it
//! whatever its extensions have started.

use std::collections::HashMap;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use tenon_protocol::control::COMMAND;
use tenon_protocol::control::IsolateId;
use tenon_protocol::control::Order;
use tenon_protocol::control::Report;
use tenon_protocol::descriptors;
use tenon_protocol::slots::Slot;
use tenon_protocol::slots::Slots;
use tenon_protocol::wire;
use tenon_protocol::wire::Decoder;
use tenon_protocol::wire::Json;
use tokio::sync::mpsc;

use crate::Isolate;
use crate::Launcher;
use crate::Spare;
use crate::limits::MAX_ENDED;
use crate::message::EndReason;
use crate::message::FromIsolate;
use crate::message::LoadSpec;
use crate::message::ScriptError;
use crate::message::ToIsolate;
use crate::watchdog::TurnFlag;

/// Arenas of the C library's allocator: two threads can allocate at the same time without waiting.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAX_ARENAS: i32 = 2;

/// Serves as isolate host if that is what this process was started for: `PROGRAM isolate-host`. For programs
/// that embed Tenon and want their isolates in a process of their own; call it first thing in `main`.
pub fn serve_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let asked = arguments.next().is_some_and(|first| first == COMMAND);
    (asked && arguments.next().is_none()).then(serve)
}

/// Takes orders from standard input until it is closed. Call it on the main thread, before any other exists.
pub fn serve() -> ExitCode {
    let served = control_socket().and_then(|control| {
        few_arenas();
        crate::init_engine();
        raise_descriptor_limit();
        let control = Arc::new(control);
        let orders =
            Orders { control: control.clone(), decoder: Decoder::default(), files: Vec::new() };
        Host {
            launcher: Launcher::new(Spare::None),
            slots: None,
            isolates: HashMap::new(),
            control,
        }
        .run(orders)
    });
    match served {
        Ok(()) => {
            end_group();
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "the isolate host cannot go on: {error}");
            end_group();
            ExitCode::FAILURE
        }
    }
}

/// Our session is gone, so whatever extensions have started ends, except what they detached. So do we: the
/// engine's threads would only be in the way of an orderly exit.
fn end_group() {
    // SAFETY: these take and give integers.
    unsafe {
        if libc::getpgrp() == libc::getpid() {
            libc::kill(0, libc::SIGKILL);
        }
    }
}

/// Takes the socket that is standard input, and leaves nothing there.
fn control_socket() -> std::io::Result<UnixStream> {
    let control = std::io::stdin().as_fd().try_clone_to_owned()?;
    let nothing = std::fs::File::open("/dev/null")?;
    // SAFETY: both are open files of this process; dup2 touches no memory.
    if unsafe { libc::dup2(nothing.as_raw_fd(), libc::STDIN_FILENO) } < 0 {
        return Err(std::io::Error::last_os_error());
    }
    let control = UnixStream::from(control);
    // Says whether it is a socket at all: somebody may have typed the command.
    control.local_addr().map_err(|_| {
        std::io::Error::other("it is started by tenon itself, with a socket as standard input")
    })?;
    Ok(control)
}

/// Every isolate needs a dozen descriptors; the usual limit of 1,024 would be reached at eighty.
fn raise_descriptor_limit() {
    // SAFETY: the structure is ours, and both calls only read or write it.
    unsafe {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// The C library gives every thread memory of its own to share out, and keeps what is given back to it. With
/// a thread for each extension that is much memory for nothing: what isolates need, they get elsewhere.
fn few_arenas() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: mallopt takes two integers, and there is no other thread yet.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, MAX_ARENAS);
    }
}

/// What comes in, with the files that come along.
struct Orders {
    control: Arc<UnixStream>,
    decoder: Decoder,
    files: Vec<OwnedFd>,
}

impl Orders {
    /// The next order; `None` when the session is gone.
    fn next(&mut self) -> std::io::Result<Option<Order>> {
        loop {
            if let Some(Json(order)) = self.decoder.take().map_err(std::io::Error::other)? {
                return Ok(Some(order));
            }
            match descriptors::receive(&self.control, self.decoder.room(), &mut self.files) {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn file(&mut self) -> std::io::Result<OwnedFd> {
        if self.files.is_empty() {
            return Err(std::io::Error::other("an order came without its file"));
        }
        Ok(self.files.remove(0))
    }
}

struct Host {
    launcher: Launcher,
    slots: Option<Arc<Slots>>,
    isolates: HashMap<IsolateId, Isolate>,
    control: Arc<UnixStream>,
}

impl Host {
    fn run(&mut self, mut orders: Orders) -> std::io::Result<()> {
        while let Some(order) = orders.next()? {
            match order {
                Order::Setup { spare } => {
                    self.slots = Some(Arc::new(Slots::map(orders.file()?)?));
                    if spare {
                        self.launcher = Launcher::new(Spare::Keep);
                    }
                    send_report(&self.control, Report::Ready { max_ended: MAX_ENDED })?;
                }
                Order::Start { isolate, slot, spec } => {
                    self.isolates.retain(|_, isolate| !isolate.has_ended());
                    // Without a free descriptor the socket does not arrive; the session finds it closed.
                    let started = orders
                        .file()
                        .and_then(|socket| self.start(slot, *spec, UnixStream::from(socket)));
                    if let Ok(Some(started)) = started {
                        self.isolates.insert(isolate, started);
                    }
                }
                Order::ExpectEnd { isolate } => {
                    if let Some(isolate) = self.isolates.get(&isolate) {
                        isolate.expect_end();
                    }
                }
                Order::Terminate { isolate, reason } => {
                    if let Some(isolate) = self.isolates.get(&isolate) {
                        isolate.terminate(&reason);
                    }
                }
                Order::HoldStart { isolate, held } => {
                    if let Some(isolate) = self.isolates.get(&isolate) {
                        isolate.hold_start(held);
                    }
                }
                Order::GiveUpSpare => self.launcher.give_up_spare(),
                Order::Usage { request } => self.report(request),
                Order::AwaitSpare { request } => {
                    let control = self.control.clone();
                    self.launcher.when_spare_is_warm(move || {
                        let report = Report::Answer { request, usage: Vec::new() };
                        let _ = send_report(&control, report);
                    });
                }
            }
        }
        Ok(())
    }

    fn start(
        &self,
        slot: Slot,
        spec: LoadSpec,
        socket: UnixStream,
    ) -> std::io::Result<Option<Isolate>> {
        socket.set_nonblocking(true)?;
        let sender = Sender { socket: Mutex::new(socket.try_clone()?) };
        let sender = Arc::new(sender);
        let failed = sender.clone();
        let turn = self.slots.clone().map(|slots| turn_word(slots, slot));
        let started = self.launcher.start_fed(
            spec,
            move |message| sender.send(message),
            move |inbox| Box::pin(feed(socket, inbox)),
            turn.flatten(),
        );
        match started {
            Ok(isolate) => Ok(Some(isolate)),
            Err(error) => {
                let message = error.to_string();
                failed.send(FromIsolate::Ended(EndReason::Setup { message }));
                Ok(None)
            }
        }
    }

    fn report(&self, request: u64) {
        let usage = self.isolates.iter().map(|(id, isolate)| (*id, isolate.usage())).collect();
        // A session that is gone needs no report.
        let _ = send_report(&self.control, Report::Answer { request, usage });
    }
}

/// Reports are short and few; they are written one at a time.
fn send_report(control: &UnixStream, report: Report) -> std::io::Result<()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let frame = wire::encode(&Json(report)).map_err(std::io::Error::other)?;
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    (&mut &*control).write_all(&frame)
}

/// What an isolate is told, read on its own thread.
async fn feed(socket: UnixStream, inbox: mpsc::UnboundedSender<ToIsolate>) {
    use tokio::io::AsyncReadExt;
    let Ok(mut socket) = tokio::net::UnixStream::from_std(socket) else { return };
    let mut decoder = Decoder::default();
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

/// Where an isolate's messages leave.
struct Sender {
    socket: Mutex<UnixStream>,
}

impl Sender {
    /// Writes a message. When the session does not read, the isolate waits, except with its log: lines that
    /// nobody takes are lost.
    fn send(&self, message: FromIsolate) {
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
                // The session does not want to hear any more.
                Err(_) => return,
            }
        }
        if is_last {
            // Whoever still has the socket has nothing more to say.
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
    }
}

fn wait_for_room(socket: &UnixStream) {
    let mut waiting = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: one structure, which is ours.
    unsafe { libc::poll(&raw mut waiting, 1, -1) };
}

/// The word in shared memory that says whether an isolate's code is running.
fn turn_word(slots: Arc<Slots>, slot: Slot) -> Option<TurnFlag> {
    let word = std::ptr::from_ref(slots.word(slot)?);
    // SAFETY: the word is inside the mapping that `slots` keeps for as long as the flag lives.
    Some(unsafe { TurnFlag::at(word, slots) })
}
