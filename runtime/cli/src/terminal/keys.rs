//! Keys from the terminal, one by one, while nothing else reads it.

mod decoder;

use std::io::IsTerminal;
use std::io::PipeReader;
use std::io::PipeWriter;
use std::io::Write;
use std::thread::JoinHandle;

use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::Timespec;
use rustix::event::poll;
use rustix::io::Errno;
use rustix::process::Signal;
use rustix::process::kill_current_process_group;
use rustix::termios::InputModes;
use rustix::termios::LocalModes;
use rustix::termios::OptionalActions;
use rustix::termios::QueueSelector;
use rustix::termios::SpecialCodeIndex;
use rustix::termios::Termios;
use rustix::termios::tcflush;
use rustix::termios::tcgetattr;
use rustix::termios::tcsetattr;
use tokio::sync::mpsc;

use self::decoder::Decoder;
pub use self::decoder::Key;

/// How long the rest of a key's sequence is waited for: 50 milliseconds. A terminal sends it at once, also
/// over a slow connection; after this the escape key was pressed alone.
const SEQUENCE_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// From now on what is pasted comes between marks; and no more.
const PASTE_ON: &[u8] = b"\x1b[?2004h";
const PASTE_OFF: &[u8] = b"\x1b[?2004l";

/// Reads keys as they are pressed, without showing them, until it is dropped. Ctrl-C is a key like any other.
pub struct Keys {
    /// How the terminal was.
    before: Termios,
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
        // What is no terminal has nothing to throw away.
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
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
        // To our own process group, as the terminal's would go.
        let _ = kill_current_process_group(Signal::TSTP);
        // Here it goes on.
        self.take_over();
    }

    /// Makes the terminal hand over keys at once and not show them.
    fn take_over(&mut self) {
        let mut mode = self.before.clone();
        mode.local_modes -=
            LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN | LocalModes::ISIG;
        mode.input_modes -=
            InputModes::ICRNL | InputModes::INLCR | InputModes::IXON | InputModes::BRKINT;
        mode.special_codes[SpecialCodeIndex::VMIN] = 1;
        mode.special_codes[SpecialCodeIndex::VTIME] = 0;
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
fn mode() -> Option<Termios> {
    tcgetattr(std::io::stdin()).ok()
}

fn set_mode(mode: &Termios) {
    // A terminal that is gone has no mode.
    let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, mode);
}

/// Reads until it is told to stop, or the terminal is gone.
fn read(stopped: &PipeReader, keys: &mpsc::UnboundedSender<Key>) {
    let mut decoder = Decoder::default();
    let mut bytes = [0_u8; 1024];
    let input = std::io::stdin();
    loop {
        let timeout = decoder.is_waiting().then_some(&SEQUENCE_WAIT);
        let mut wait = [PollFd::new(&input, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        let ready = match poll(&mut wait, timeout) {
            Ok(ready) => ready,
            Err(error) if is_passing(error) => continue,
            Err(_) => return,
        };
        if !wait[1].revents().is_empty() {
            return;
        }
        let read = if ready == 0 {
            decoder.give_up_waiting().into_iter().collect()
        } else {
            // Not through the standard library, which reads ahead.
            match rustix::io::read(&input, &mut bytes) {
                Ok(0) => return,
                Ok(count) => decoder.decode(&bytes[..count]),
                Err(error) if is_passing(error) => continue,
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

/// Whether the same call may succeed next time.
fn is_passing(error: Errno) -> bool {
    matches!(error, Errno::INTR | Errno::AGAIN)
}
