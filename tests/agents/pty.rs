//! A person at a terminal: types, and waits for what appears.

use std::fs::File;
use std::io::PipeReader;
use std::io::PipeWriter;
use std::io::Read;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::fd::FromRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::Child;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::Instant;

use tenon_tests::Workspace;

use crate::client::PATIENCE;
use crate::waiting::ends;

/// Wide enough that nothing a test looks for is broken over two lines.
const SIZE: libc::winsize = libc::winsize { ws_row: 50, ws_col: 300, ws_xpixel: 0, ws_ypixel: 0 };

/// The prompt with nothing behind it: the cursor goes back at once.
const EMPTY_PROMPT: &str = "> \r";

/// A terminal with a program in it, which is killed when this is dropped.
pub struct Terminal {
    child: Child,
    ours: Option<Ours>,
    screen: Arc<Screen>,
    /// Up to where what has appeared was looked at.
    mark: usize,
}

/// Our side of a terminal that is there.
struct Ours {
    keyboard: Arc<File>,
    /// Closed, it ends the thread that reads.
    stop: PipeWriter,
    reader: JoinHandle<()>,
}

/// Everything that has appeared, without the sequences that move cursors and change colours.
#[derive(Default)]
struct Screen {
    text: Mutex<String>,
    changed: Condvar,
}

impl Terminal {
    /// Starts the program in a terminal of its own.
    pub fn start(workspace: &Workspace, args: &[&str]) -> Self {
        let (ours, theirs) = open();
        let mut command = workspace.command(args);
        command.env("TERM", "xterm-256color");
        command.stdin(theirs.try_clone().unwrap()).stdout(theirs.try_clone().unwrap());
        command.stderr(theirs);
        // SAFETY: between fork and exec only system calls are made that are allowed there.
        unsafe {
            command.pre_exec(|| {
                let leads = libc::setsid() != -1;
                if leads && libc::ioctl(libc::STDIN_FILENO, libc::TIOCSCTTY as _, 0) == 0 {
                    return Ok(());
                }
                Err(std::io::Error::last_os_error())
            });
        }
        let child = command.spawn().unwrap();
        // Only the program has the other side from now on.
        drop(command);
        let screen = Arc::new(Screen::default());
        let keyboard = Arc::new(ours);
        let (stopped, stop) = std::io::pipe().unwrap();
        let (source, shown) = (keyboard.clone(), screen.clone());
        let reader = std::thread::spawn(move || shown.read(&source, &stopped));
        Self { child, ours: Some(Ours { keyboard, stop, reader }), screen, mark: 0 }
    }

    /// Presses keys.
    pub fn keys(&mut self, keys: &str) {
        let ours = self.ours.as_ref().expect("the terminal is there");
        (&*ours.keyboard).write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line and enters it. The prompt must be there.
    pub fn enter(&mut self, line: &str) {
        self.keys(line);
        self.keys("\r");
    }

    /// Waits until a text appears, after those that were waited for before; everything since then.
    pub fn sees(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut all = self.screen.text.lock().unwrap();
        loop {
            if let Some(at) = all[self.mark..].find(text) {
                let end = self.mark + at + text.len();
                let seen = all[self.mark..end].to_owned();
                self.mark = end;
                return seen;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{text:?} never appeared after:\n{}", &all[self.mark..]);
            all = self.screen.changed.wait_timeout(all, left).unwrap().0;
        }
    }

    /// Waits until something else can be typed; everything that has appeared meanwhile.
    pub fn is_ready(&mut self) -> String {
        self.sees(EMPTY_PROMPT)
    }

    /// Enters a line and waits until something else can be typed; everything that has appeared meanwhile.
    pub fn does(&mut self, line: &str) -> String {
        self.enter(line);
        // What is typed appears as well, again and again.
        self.sees(&format!("> {line}"));
        self.sees("\n");
        self.is_ready()
    }

    /// Everything that has appeared.
    pub fn text(&self) -> String {
        self.screen.text.lock().unwrap().clone()
    }

    /// The terminal is closed, with the program still in it.
    pub fn hang_up(&mut self) {
        let Ours { keyboard, stop, reader } = self.ours.take().expect("the terminal is there");
        drop(stop);
        reader.join().unwrap();
        // Nobody else has our side.
        drop(Arc::into_inner(keyboard).unwrap());
    }

    /// Waits for the end of the program.
    pub fn ends(&mut self) -> ExitStatus {
        ends(&mut self.child)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Screen {
    /// Takes what appears, until it is told to stop, or nobody is left who could write.
    fn read(&self, source: &File, stopped: &PipeReader) {
        let mut bytes = [0; 4096];
        let mut rest = Vec::new();
        loop {
            let wanted = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            let mut wait = [wanted(source.as_raw_fd()), wanted(stopped.as_raw_fd())];
            // SAFETY: two structures, which are ours.
            unsafe { libc::poll(wait.as_mut_ptr(), 2, -1) };
            if wait[1].revents != 0 {
                return;
            }
            let Ok(count @ 1..) = (&*source).read(&mut bytes) else { return };
            rest.extend_from_slice(&bytes[..count]);
            let text = plain(&mut rest);
            self.text.lock().unwrap().push_str(&text);
            self.changed.notify_all();
        }
    }
}

/// The text in some bytes, without sequences; what is not complete stays.
fn plain(bytes: &mut Vec<u8>) -> String {
    let mut text = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != 0x1b {
            text.push(bytes[at]);
            at += 1;
            continue;
        }
        // `ESC [`, digits and signs, and a letter.
        let Some(length) = bytes[at..].iter().skip(2).position(|it| it.is_ascii_alphabetic())
        else {
            break;
        };
        at += length + 3;
    }
    bytes.drain(..at);
    match String::from_utf8(text) {
        Ok(text) => text,
        Err(error) => {
            // A character may come in two parts.
            let whole = error.utf8_error().valid_up_to();
            let mut text = error.into_bytes();
            let part = text.split_off(whole);
            bytes.splice(0..0, part);
            String::from_utf8_lossy(&text).into_owned()
        }
    }
}

/// A terminal: our side, and the side of programs in it. Nobody who is started meanwhile gets either.
fn open() -> (File, File) {
    let check = |result: libc::c_int| {
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    };
    // SAFETY: the calls take integers, and a buffer that is as long as is said; the descriptor is new.
    unsafe {
        let ours = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
        assert_ne!(ours, -1, "{}", std::io::Error::last_os_error());
        let ours = File::from_raw_fd(ours);
        check(libc::grantpt(ours.as_raw_fd()));
        check(libc::unlockpt(ours.as_raw_fd()));
        check(libc::ioctl(ours.as_raw_fd(), libc::TIOCSWINSZ, &SIZE));
        let mut name = [0; 128];
        check(libc::ptsname_r(ours.as_raw_fd(), name.as_mut_ptr(), name.len()));
        let name = std::ffi::CStr::from_ptr(name.as_ptr()).to_str().unwrap();
        // It is to be the program's terminal, not ours.
        let mut options = File::options();
        options.read(true).write(true).custom_flags(libc::O_NOCTTY);
        let theirs = options.open(name).unwrap();
        (ours, theirs)
    }
}
