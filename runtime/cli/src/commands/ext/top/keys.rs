//! Single keys from the terminal.

use std::io::IsTerminal;
use std::io::Read;

use rustix::termios::LocalModes;
use rustix::termios::OptionalActions;
use rustix::termios::Termios;
use rustix::termios::tcgetattr;
use rustix::termios::tcsetattr;
use tokio::sync::mpsc;

/// Ctrl-D: where signals are made of Ctrl-C, it is not a key.
const END_OF_INPUT: u8 = 4;

/// Reads keys as they are pressed, without showing them, until it is dropped.
pub struct Keys {
    /// How the terminal was.
    before: Option<Termios>,
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
            // A terminal that is gone has no mode.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}

/// Makes the terminal hand over keys at once and not show them; how it was before.
fn read_single_keys() -> Option<Termios> {
    let before = tcgetattr(std::io::stdin()).ok()?;
    let mut now = before.clone();
    now.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
    let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &now);
    Some(before)
}
