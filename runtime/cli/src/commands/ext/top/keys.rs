//! Single keys from the terminal.

use std::io::IsTerminal;
use std::io::Read;

use tokio::sync::mpsc;

/// Ctrl-D: where signals are made of Ctrl-C, it is not a key.
const END_OF_INPUT: u8 = 4;

/// Reads keys as they are pressed, without showing them, until it is dropped.
pub struct Keys {
    /// How the terminal was.
    before: Option<libc::termios>,
    pressed: mpsc::UnboundedReceiver<u8>,
}

impl Keys {
    /// Takes over the terminal that is standard input; without one no key is ever pressed.
    pub fn open() -> Self {
        let (sender, pressed) = mpsc::unbounded_channel();
        if !std::io::stdin().is_terminal() {
            return Self { before: None, pressed };
        }
        let before = read_single_keys();
        // A thread of its own: the program does not wait for it at its end.
        std::thread::spawn(move || {
            let mut key = [0];
            while let Ok(1) = std::io::stdin().read(&mut key) {
                if sender.send(key[0]).is_err() {
                    return;
                }
            }
        });
        Self { before, pressed }
    }

    /// Waits for the key that means the end.
    pub async fn quit(&mut self) {
        loop {
            match self.pressed.recv().await {
                Some(b'q' | b'Q' | END_OF_INPUT) => return,
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // SAFETY: the structure is one that tcgetattr filled in.
            unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, before) };
        }
    }
}

/// Makes the terminal hand over keys at once and not show them; how it was before.
fn read_single_keys() -> Option<libc::termios> {
    // SAFETY: termios is numbers only; all of them may be zero.
    let mut now: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: the call fills in the structure it is given, and keeps nothing of it.
    if unsafe { libc::tcgetattr(libc::STDIN_FILENO, &mut now) } != 0 {
        return None;
    }
    let before = now;
    now.c_lflag &= !(libc::ICANON | libc::ECHO);
    // SAFETY: the structure is one that tcgetattr filled in.
    unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, &now) };
    Some(before)
}
