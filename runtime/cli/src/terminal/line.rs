//! Text that somebody types, and what keys do to it.

use rustyline::At;
use rustyline::Word;
use rustyline::line_buffer::ChangeListener;
use rustyline::line_buffer::DeleteListener;
use rustyline::line_buffer::Direction;
use rustyline::line_buffer::LineBuffer;

use super::keys::Key;
use crate::sanitise::clean;

/// The most that can be typed and pasted, in bytes: what is pasted at once, and a letter around it.
pub const MAX_BYTES: usize = 1024 * 1024 + 64 * 1024;

/// Text with a cursor in it.
pub struct Line {
    buffer: LineBuffer,
}

impl Default for Line {
    fn default() -> Self {
        Self { buffer: LineBuffer::with_capacity(MAX_BYTES) }
    }
}

impl Line {
    /// All of it.
    pub fn text(&self) -> &str {
        self.buffer.as_str()
    }

    /// Where the cursor is, in bytes.
    pub fn cursor(&self) -> usize {
        self.buffer.pos()
    }

    /// Another text, with the cursor at its end.
    pub fn set(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(MAX_BYTES)];
        self.buffer.update(text, text.len(), &mut Nobody);
    }

    /// The text; nothing is left.
    pub fn take(&mut self) -> String {
        let text = self.text().to_owned();
        self.set("");
        text
    }

    /// Text in place of what is between a position and the cursor.
    pub fn replace(&mut self, from: usize, text: &str) {
        let cursor = self.cursor();
        if self.text().len() + text.len() <= MAX_BYTES {
            self.buffer.replace(from..cursor, text, &mut Nobody);
        }
    }

    /// Puts text at the cursor; what has no room is left out.
    pub fn insert(&mut self, text: &str) {
        let room = MAX_BYTES.saturating_sub(self.text().len());
        let text = &text[..text.floor_char_boundary(room)];
        self.buffer.yank(text, 1, &mut Nobody);
    }

    /// Does what a key means; false if it means nothing here.
    pub fn apply(&mut self, key: &Key) -> bool {
        let buffer = &mut self.buffer;
        let nobody = &mut Nobody;
        match key {
            Key::Char(c) => {
                buffer.insert(*c, 1, nobody);
            }
            Key::AltEnter => {
                buffer.insert('\n', 1, nobody);
            }
            // What was pasted may have been made by somebody else.
            Key::Paste(text) => self.insert(&clean(text)),
            Key::Backspace => {
                buffer.backspace(1, nobody);
            }
            Key::Delete | Key::Ctrl('d') => {
                buffer.delete(1, nobody);
            }
            Key::Left | Key::Ctrl('b') => {
                buffer.move_backward(1);
            }
            Key::Right | Key::Ctrl('f') => {
                buffer.move_forward(1);
            }
            Key::Home | Key::Ctrl('a') => {
                buffer.move_home();
            }
            Key::End | Key::Ctrl('e') => {
                buffer.move_end();
            }
            Key::WordLeft | Key::Alt('b') => {
                buffer.move_to_prev_word(Word::Emacs, 1);
            }
            Key::WordRight | Key::Alt('f') => {
                buffer.move_to_next_word(At::AfterEnd, Word::Emacs, 1);
            }
            Key::Ctrl('w') => {
                buffer.delete_prev_word(Word::Big, 1, nobody);
            }
            Key::AltBackspace => {
                buffer.delete_prev_word(Word::Emacs, 1, nobody);
            }
            Key::Alt('d') => {
                buffer.delete_word(At::AfterEnd, Word::Emacs, 1, nobody);
            }
            Key::Ctrl('u') => {
                buffer.discard_line(nobody);
            }
            Key::Ctrl('k') => {
                buffer.kill_line(nobody);
            }
            Key::Ctrl('t') => {
                buffer.transpose_chars(nobody);
            }
            Key::Up => return self.move_line(true),
            Key::Down => return self.move_line(false),
            _ => return false,
        }
        true
    }

    /// Moves the cursor to the line above or below; false if there is none.
    fn move_line(&mut self, up: bool) -> bool {
        let (text, cursor) = (self.text(), self.cursor());
        let start = text[..cursor].rfind('\n').map_or(0, |at| at + 1);
        let column = text[start..cursor].chars().count();
        let target = if up {
            let Some(end) = start.checked_sub(1) else { return false };
            text[..end].rfind('\n').map_or(0, |at| at + 1)
        } else {
            let Some(end) = text[cursor..].find('\n') else { return false };
            cursor + end + 1
        };
        let line = text[target..].lines().next().unwrap_or_default();
        let within = line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
        self.buffer.set_pos(target + within);
        true
    }
}

/// Nobody wants to know what has changed.
struct Nobody;

impl DeleteListener for Nobody {
    fn delete(&mut self, _at: usize, _text: &str, _direction: Direction) {}
}

impl ChangeListener for Nobody {
    fn insert_char(&mut self, _at: usize, _c: char) {}

    fn insert_str(&mut self, _at: usize, _text: &str) {}

    fn replace(&mut self, _at: usize, _old: &str, _new: &str) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[Key]) -> (String, usize) {
        let mut line = Line::default();
        keys.iter().for_each(|key| {
            line.apply(key);
        });
        (line.text().to_owned(), line.cursor())
    }

    fn chars(text: &str) -> Vec<Key> {
        text.chars().map(Key::Char).collect()
    }

    #[test]
    fn keys_edit_the_text() {
        let mut keys = chars("hello wörld");
        keys.extend([Key::Ctrl('w'), Key::Left, Key::Backspace, Key::Char('p'), Key::Home]);
        keys.extend([Key::Delete, Key::Char('J')]);
        assert_eq!(typed(&keys), ("Jellp ".to_owned(), 1));
        let mut keys = chars("one two");
        keys.extend([Key::WordLeft, Key::Ctrl('k'), Key::Ctrl('u'), Key::Char('x')]);
        assert_eq!(typed(&keys).0, "x");
    }

    #[test]
    fn what_is_pasted_is_harmless_and_keeps_its_lines() {
        let pasted = Key::Paste("a\x1b[31m\nb\tc".to_owned());
        assert_eq!(typed(&[pasted]).0, "a\nb\tc");
    }

    #[test]
    fn the_cursor_moves_between_lines_as_long_as_there_are_some() {
        let mut line = Line::default();
        line.set("long line\nshört\nx");
        assert!(!line.apply(&Key::Down));
        assert!(line.apply(&Key::Up));
        assert_eq!(&line.text()[line.cursor()..], "hört\nx");
        line.apply(&Key::End);
        assert!(line.apply(&Key::Up));
        assert_eq!(&line.text()[line.cursor()..], "line\nshört\nx");
        assert!(!line.apply(&Key::Up));
    }

    #[test]
    fn there_is_room_for_so_much_and_no_more() {
        let mut line = Line::default();
        line.set(&"é".repeat(MAX_BYTES));
        assert!(line.text().len() <= MAX_BYTES);
        line.insert("more");
        assert!(line.text().len() <= MAX_BYTES);
        line.set("short");
        line.replace(1, "mall");
        assert_eq!(line.text(), "small");
    }
}
