//! Signals as bytes in a pipe, so that one `poll` waits for them and for everything else.

use std::io;
use std::io::PipeReader;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::os::fd::IntoRawFd;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering;

use rustix::io::ioctl_fionbio;
use rustix::process::Resource;
use rustix::process::Rlimit;
use rustix::process::setrlimit;

/// What the guard wants to know of. An interrupt at the terminal is among them so that it does not end it.
const SIGNALS: [libc::c_int; 5] =
    [libc::SIGCHLD, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

/// Where the handler writes.
static WRITER: AtomicI32 = AtomicI32::new(-1);

/// Signals that have come.
pub struct Signals(PipeReader);

impl Signals {
    /// Takes the signals over. For a process with one thread that does nothing else.
    pub fn take() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        ioctl_fionbio(&reader, true)?;
        ioctl_fionbio(&writer, true)?;
        // Never closed: the handlers stay.
        WRITER.store(writer.into_raw_fd(), Ordering::Relaxed);
        for signal in SIGNALS {
            handle(signal)?;
        }
        unblock_all();
        Ok(Self(reader))
    }

    /// Whether one has come that means the end of this process. The others have done their work by coming.
    pub fn want_end(&mut self) -> bool {
        let mut bytes = [0; 64];
        let mut end = false;
        while let Ok(count @ 1..) = self.0.read(&mut bytes) {
            let is_end = |byte: &u8| matches!(i32::from(*byte), libc::SIGTERM | libc::SIGHUP);
            end |= bytes[..count].iter().any(is_end);
        }
        end
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

extern "C" fn note(signal: libc::c_int) {
    // Signals are small numbers.
    let byte = signal as u8;
    // SAFETY: write may be called in a handler; it reads one byte of a local. It does not fail, so it leaves
    // the error number alone: the pipe is emptied at every turn.
    unsafe { libc::write(WRITER.load(Ordering::Relaxed), (&raw const byte).cast(), 1) };
}

fn handle(signal: libc::c_int) -> io::Result<()> {
    let handler: extern "C" fn(libc::c_int) = note;
    // SAFETY: all-zero is a valid sigaction; the handler has the type that goes without SA_SIGINFO and calls
    // nothing but write.
    let done = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART | libc::SA_NOCLDSTOP;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut())
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Signals that whoever started us had blocked are meant for us all the same, and for the agent.
fn unblock_all() {
    // SAFETY: an empty set is made before it is used; nothing is written back.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Ends this process by a signal, as if it had been sent to it; comes back if the signal ends nobody.
pub fn end_by(signal: libc::c_int) {
    // What there was to see is in the agent's own.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    // SAFETY: these calls take integers.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::kill(libc::getpid(), signal);
    }
}
