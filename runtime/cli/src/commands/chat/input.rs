//! Where lines come from: a person at the terminal, or standard input.

use std::io::BufRead;
use std::path::Path;

use tokio::sync::mpsc;

use super::editor::Editor;
use crate::terminal::keys::Key;
use crate::terminal::keys::Keys;
use crate::terminal::screen;

/// The name of the file with what was entered before, in the home folder.
const HISTORY_FILE: &str = "chat-history";

/// The most lines that were read and not taken.
const MAX_READ_AHEAD: usize = 16;

/// Where lines come from.
pub enum Input {
    /// A person who types.
    Person(Box<Person>),
    /// Lines that are there already.
    Lines(Lines),
}

/// A person who types.
pub struct Person {
    /// The keys that are pressed.
    pub keys: Keys,
    /// What was typed.
    pub editor: Editor,
}

impl Input {
    /// The terminal if there is one, and standard input otherwise.
    pub fn open(home: &Path) -> Self {
        if screen::is_interactive()
            && let Some(keys) = Keys::open()
        {
            let editor = Editor::new(home.join(HISTORY_FILE));
            return Self::Person(Box::new(Person { keys, editor }));
        }
        Self::Lines(Lines::read())
    }

    /// Whether it is a person.
    pub fn is_person(&self) -> bool {
        matches!(self, Self::Person(_))
    }

    /// The next key; none if the terminal is gone. Lines have no keys.
    pub async fn key(&mut self) -> Option<Key> {
        match self {
            Self::Person(person) => person.keys.next().await,
            Self::Lines(_) => std::future::pending().await,
        }
    }

    /// Does something that reads the terminal by itself.
    pub fn paused<T>(&mut self, work: impl FnOnce() -> T) -> T {
        match self {
            Self::Person(person) => {
                person.keys.pause();
                let done = work();
                person.keys.resume();
                done
            }
            Self::Lines(_) => work(),
        }
    }
}

/// Lines of standard input.
pub struct Lines {
    lines: mpsc::Receiver<String>,
    /// What goes on in the next one.
    begun: String,
}

impl Lines {
    /// Reads them on a thread of its own: the program does not wait for it at its end.
    fn read() -> Self {
        let (sender, lines) = mpsc::channel(MAX_READ_AHEAD);
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().split(b'\n').map_while(Result::ok) {
                // Bytes that are no text cost themselves, not the lines after them.
                let line = String::from_utf8_lossy(&line);
                if sender.blocking_send(line.trim_end_matches('\r').to_owned()).is_err() {
                    return;
                }
            }
        });
        Self { lines, begun: String::new() }
    }

    /// The next one that says something; none at the end. A backslash at its end means that it goes on.
    /// Whoever stops waiting for it loses nothing.
    pub async fn next(&mut self) -> Option<String> {
        loop {
            let Some(line) = self.lines.recv().await else {
                let rest = std::mem::take(&mut self.begun);
                return Some(rest).filter(|rest| !rest.trim().is_empty());
            };
            match line.strip_suffix('\\') {
                Some(begun) => {
                    self.begun.push_str(begun);
                    self.begun.push('\n');
                }
                None => {
                    let text = std::mem::take(&mut self.begun) + line.as_str();
                    if !text.trim().is_empty() {
                        return Some(text);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_joined_by_a_backslash_and_empty_ones_are_passed_over() {
        let (sender, lines) = mpsc::channel(10);
        for line in ["", "one", "two \\", "three", " ", "four\\"] {
            sender.send(line.to_owned()).await.unwrap();
        }
        drop(sender);
        let mut lines = Lines { lines, begun: String::new() };
        let mut read = Vec::new();
        while let Some(line) = lines.next().await {
            read.push(line);
        }
        assert_eq!(read, ["one", "two \nthree", "four\n"]);
    }
}
