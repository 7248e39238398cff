//! Keys from the terminal, one by one, while nothing else reads it.

mod decoder;

use std::io::IsTerminal;
use std::io::PipeReader;
use std::io::PipeWriter;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::thread::JoinHandle;

use tokio::sync::mpsc;

use self::decoder::Decoder;

/// How long the rest of a key's sequence is waited for, in milliseconds. A terminal sends it at once, also
/// over a slow connection; after this the escape key was pressed alone.
const SEQUENCE_WAIT_MS: libc::c_int = 50;

/// From now on what is pasted comes between marks; and no more.
const PASTE_ON: &[u8] = b"\x1b[?2004h";
const PASTE_OFF: &[u8] = b"\x1b[?2004l";

/// A key, or what was pasted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// A character together with the control key; a small letter.
    Ctrl(char),
    /// A character together with the alt key.
    Alt(char),
    /// Return, or enter.
    Enter,
    /// The same together with the alt key.
    AltEnter,
    /// Tabulator.
    Tab,
    /// Deletes backwards.
    Backspace,
    /// Deletes the word before.
    AltBackspace,
    /// Deletes forwards.
    Delete,
    /// Escape, alone.
    Esc,
    /// Arrow keys.
    Left,
    /// Arrow keys.
    Right,
    /// Arrow keys.
    Up,
    /// Arrow keys.
    Down,
    /// A word to the left.
    WordLeft,
    /// A word to the right.
    WordRight,
    /// To the beginning.
    Home,
    /// To the end.
    End,
    /// Text that nobody typed.
    Paste(String),
}

/// Reads keys as they are pressed, without showing them, until it is dropped. Ctrl-C is a key like any other.
pub struct Keys {
    /// How the terminal was.
    before: libc::termios,
    pressed: mpsc::UnboundedReceiver<Key>,
    reader: Option<Reader>,
}

/// The thread that reads.
struct Reader {
    /// Closed, it ends the thread.
    stop: PipeWriter,
    thread: JoinHandle<()>,
}

impl Keys {
    /// Takes over the terminal that is standard input; none if there is none.
    pub fn open() -> Option<Self> {
        if !std::io::stdin().is_terminal() {
            return None;
        }
        let (reader, pressed) = Reader::start()?;
        let mut keys = Self { before: mode()?, pressed, reader: Some(reader) };
        keys.take_over();
        Some(keys)
    }

    /// The same, without what was typed before: it was not meant for what is asked now.
    pub fn open_anew() -> Option<Self> {
        // SAFETY: the call throws away what the terminal has not handed over; it touches no memory.
        unsafe { libc::tcflush(libc::STDIN_FILENO, libc::TCIFLUSH) };
        Self::open()
    }

    /// The next key; none if the terminal is gone.
    pub async fn next(&mut self) -> Option<Key> {
        self.pressed.recv().await
    }

    /// Gives the terminal back, for somebody who reads it otherwise.
    pub fn pause(&mut self) {
        if let Some(Reader { stop, thread }) = self.reader.take() {
            drop(stop);
            // It ends at once; whoever reads next must not share the terminal with it.
            let _ = thread.join();
        }
        self.give_back();
    }

    /// Takes the terminal over again.
    pub fn resume(&mut self) {
        // Without a thread that reads, the terminal is as good as gone.
        let (_, nothing) = mpsc::unbounded_channel();
        let (reader, pressed) = match Reader::start() {
            Some((reader, pressed)) => (Some(reader), pressed),
            None => (None, nothing),
        };
        self.reader = reader;
        self.pressed = pressed;
        self.take_over();
    }

    /// Gives the terminal back and stops the program, as Ctrl-Z does, until somebody lets it go on.
    pub fn suspend(&mut self) {
        self.give_back();
        // SAFETY: the signal goes to our own process group, as the terminal's would; no memory is touched.
        unsafe { libc::kill(0, libc::SIGTSTP) };
        // Here it goes on.
        self.take_over();
    }

    /// Makes the terminal hand over keys at once and not show them.
    fn take_over(&mut self) {
        let mut mode = self.before;
        mode.c_lflag &= !(libc::ICANON | libc::ECHO | libc::IEXTEN | libc::ISIG);
        mode.c_iflag &= !(libc::ICRNL | libc::INLCR | libc::IXON | libc::BRKINT);
        mode.c_cc[libc::VMIN] = 1;
        mode.c_cc[libc::VTIME] = 0;
        set_mode(&mode);
        tell_terminal(PASTE_ON);
    }

    fn give_back(&self) {
        tell_terminal(PASTE_OFF);
        set_mode(&self.before);
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.pause();
    }
}

impl Reader {
    fn start() -> Option<(Self, mpsc::UnboundedReceiver<Key>)> {
        let (stopped, stop) = std::io::pipe().ok()?;
        // Unbounded: it is filled at the speed of somebody's hands, and what is pasted is one key.
        let (sender, pressed) = mpsc::unbounded_channel();
        let thread = std::thread::Builder::new()
            .name("tenon-keys".to_owned())
            .spawn(move || read(&stopped, &sender))
            .ok()?;
        Some((Self { stop, thread }, pressed))
    }
}

/// Writes a sequence to the terminal.
fn tell_terminal(sequence: &[u8]) {
    // A terminal that is gone needs to be told nothing.
    let _ = std::io::stderr().write_all(sequence);
}

/// How the terminal is.
fn mode() -> Option<libc::termios> {
    // SAFETY: termios is numbers only; all of them may be zero.
    let mut mode: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: the call fills in the structure it is given, and keeps nothing of it.
    let answered = unsafe { libc::tcgetattr(libc::STDIN_FILENO, &mut mode) };
    (answered == 0).then_some(mode)
}

fn set_mode(mode: &libc::termios) {
    // SAFETY: the structure is one that tcgetattr filled in; the call keeps nothing of it.
    unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, mode) };
}

/// Reads until it is told to stop, or the terminal is gone.
fn read(stopped: &PipeReader, keys: &mpsc::UnboundedSender<Key>) {
    let mut decoder = Decoder::default();
    let mut bytes = [0_u8; 1024];
    loop {
        let timeout = if decoder.is_waiting() { SEQUENCE_WAIT_MS } else { -1 };
        let wanted = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut wait = [wanted(libc::STDIN_FILENO), wanted(stopped.as_raw_fd())];
        // SAFETY: the call looks at the two structures it is given, and keeps nothing of them.
        let ready = unsafe { libc::poll(wait.as_mut_ptr(), 2, timeout) };
        if ready < 0 {
            if is_interruption() {
                continue;
            }
            return;
        }
        if wait[1].revents != 0 {
            return;
        }
        let read = if ready == 0 {
            decoder.give_up_waiting().into_iter().collect()
        } else {
            // SAFETY: the buffer is as long as is said.
            let count =
                unsafe { libc::read(libc::STDIN_FILENO, bytes.as_mut_ptr().cast(), bytes.len()) };
            match usize::try_from(count) {
                Ok(0) => return,
                Ok(count) => decoder.decode(&bytes[..count]),
                Err(_) if is_interruption() => continue,
                Err(_) => return,
            }
        };
        for key in read {
            if keys.send(key).is_err() {
                return;
            }
        }
    }
}

fn is_interruption() -> bool {
    let error = std::io::Error::last_os_error();
    matches!(error.kind(), std::io::ErrorKind::Interrupted | std::io::ErrorKind::WouldBlock)
}
