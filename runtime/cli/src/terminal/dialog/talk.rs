//! The parts that dialogs are made of: lines, keys, and text that is typed.

use std::time::Duration;

use crate::sanitise::visible;
use crate::terminal::keys::Key;
use crate::terminal::keys::Keys;
use crate::terminal::line::Line;
use crate::terminal::look::Look;
use crate::terminal::paint::Painter;
use crate::terminal::paint::Picture;
use crate::terminal::screen;

/// A pause that shows that somebody who was typing has seen that there is a question.
const PAUSE: Duration = Duration::from_millis(400);

/// A conversation with the person.
pub struct Talk<'a> {
    keys: &'a mut Keys,
    look: Look,
}

/// What was typed.
pub enum Entry {
    /// A line, perhaps empty.
    Line(String),
    /// Escape, or Ctrl-C.
    Cancel,
    /// Ctrl-D in an empty line.
    End,
}

impl<'a> Talk<'a> {
    /// With whoever presses these keys.
    pub fn new(keys: &'a mut Keys) -> Self {
        Self { keys, look: Look::new(screen::colours()) }
    }

    /// What it is about.
    pub fn heading(&self, text: &str) {
        let mark = self.look.doubtful;
        let mut lines = visible(text).lines().map(str::to_owned).collect::<Vec<_>>().into_iter();
        let first = lines.next().unwrap_or_default();
        screen::write(&format!("{mark}?{mark:#} {}{first}{:#}\n", self.look.name, self.look.name));
        lines.for_each(|line| screen::write(&format!("  {line}\n")));
    }

    /// A line that belongs to it.
    pub fn detail(&self, text: &str) {
        screen::write(&format!("    {}\n", visible(text)));
    }

    /// A line about it.
    pub fn remark(&self, text: &str) {
        let faint = self.look.faint;
        screen::write(&format!("  {faint}{}{faint:#}\n", visible(text)));
    }

    /// What was typed is not right.
    pub fn complain(&self, text: &str) {
        let bad = self.look.bad;
        screen::write(&format!("  {bad}{}{bad:#}\n", visible(text)));
    }

    /// The keys that can be pressed.
    pub fn choices(&self, choices: &[&str]) {
        let pointed = self.look.pointed;
        screen::write(&format!("  {pointed}{}{pointed:#}\n", choices.join("    ")));
    }

    /// The next key; none if the terminal is gone.
    pub async fn key(&mut self) -> Option<Key> {
        self.keys.next().await
    }

    /// Waits until nobody types: what was typed before the question was there is no answer to it.
    pub async fn settle(&mut self) {
        while let Ok(Some(_)) = tokio::time::timeout(PAUSE, self.keys.next()).await {}
    }

    /// Waits for `y` or `n`; none if it was cancelled.
    pub async fn confirm(&mut self, choices: &str) -> Option<bool> {
        self.settle().await;
        self.choices(&[choices]);
        loop {
            match self.key().await? {
                Key::Char('y' | 'Y') => return Some(true),
                Key::Char('n' | 'N') | Key::Ctrl('d') => return Some(false),
                Key::Esc | Key::Ctrl('c') => return None,
                _ => {}
            }
        }
    }

    /// Lets a line be typed; none if the terminal is gone.
    pub async fn line(&mut self, prompt: &str, initial: &str) -> Option<Entry> {
        let prompt = format!("  {}", visible(prompt));
        let mut line = Line::default();
        line.set(initial);
        let mut painter = Painter::default();
        let style = self.look.faint;
        let entry = loop {
            let picture = Picture {
                prompt: &prompt,
                style,
                text: line.text(),
                cursor: line.cursor(),
                size: screen::size(),
            };
            screen::write(&painter.draw(&picture));
            match self.keys.next().await? {
                Key::Enter => break Entry::Line(line.text().to_owned()),
                Key::Esc | Key::Ctrl('c') => break Entry::Cancel,
                Key::Ctrl('d') if line.text().is_empty() => break Entry::End,
                // A field is one line.
                Key::AltEnter => {}
                Key::Paste(text) => line.insert(&one_row(&text)),
                key => {
                    line.apply(&key);
                }
            }
        };
        let size = screen::size();
        let (text, cursor) = (line.text(), line.cursor());
        screen::write(&painter.leave(&Picture { prompt: &prompt, style, text, cursor, size }));
        Some(entry)
    }
}

/// What was pasted, in one row.
fn one_row(text: &str) -> String {
    crate::sanitise::clean(text).trim_end().replace(['\n', '\t'], " ")
}
