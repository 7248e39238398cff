//! Text of agents and extensions, made harmless for a terminal.
//!
//! A terminal obeys what is written to it: escape sequences move the cursor, change the title, answer as if
//! somebody typed, write to the clipboard. Nothing that somebody else wrote reaches it as it is.

use std::borrow::Cow;

/// The longest escape sequence that is taken for one, in characters. What is longer is text again, so that
/// a sequence that never ends hides no more than this.
const MAX_SEQUENCE: usize = 1024;

/// Makes a text that comes in parts harmless: a sequence may begin in one part and end in the next.
#[derive(Debug, Default)]
pub struct Sanitiser {
    state: State,
    /// How long the sequence is so far.
    length: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After the escape character.
    Escape,
    /// Inside a control sequence such as a colour.
    Control,
    /// Inside a string for the terminal, such as a title.
    Message,
    /// After the escape character in such a string.
    MessageEscape,
}

impl Sanitiser {
    /// The next part of the text: without sequences, and without control characters but line feeds and tabs.
    pub fn clean(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        loop {
            // Most of what is said is plain, and need not be looked at one by one.
            if self.state == State::Text {
                let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
                let length = rest.bytes().take_while(is_plain).count();
                out.push_str(&rest[..length]);
                rest = &rest[length..];
            }
            let mut characters = rest.chars();
            let Some(c) = characters.next() else { return out };
            rest = characters.as_str();
            if self.is_text(c) && is_harmless(c) {
                out.push(c);
            }
        }
    }

    /// Whether a character belongs to the text, and not to a sequence.
    fn is_text(&mut self, c: char) -> bool {
        // A line ends every sequence: nothing that is meant well goes on behind it.
        if c == '\n' || self.length > MAX_SEQUENCE {
            self.enter(State::Text);
        }
        if self.state != State::Text {
            self.length += 1;
        }
        match (self.state, c) {
            (_, '\x1b') => {
                let in_message = matches!(self.state, State::Message | State::MessageEscape);
                self.state = if in_message { State::MessageEscape } else { State::Escape };
                false
            }
            (State::Text, '\u{9b}') => self.enter(State::Control),
            (State::Text, '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}') => self.enter(State::Message),
            (State::Text, _) => true,
            (State::Escape, '[') => self.enter(State::Control),
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => self.enter(State::Message),
            // It says more before it ends.
            (State::Escape, ' '..='/') | (State::Control, ' '..='?') => false,
            (State::Escape, '0'..='~') | (State::Control, '@'..='~') => self.enter(State::Text),
            // That was no sequence.
            (State::Escape | State::Control, _) => {
                self.enter(State::Text);
                true
            }
            (State::Message, '\x07' | '\u{9c}') => self.enter(State::Text),
            (State::Message, _) => false,
            (State::MessageEscape, '\\') => self.enter(State::Text),
            (State::MessageEscape, '[') => self.enter(State::Control),
            (State::MessageEscape, _) => self.enter(State::Text),
        }
    }

    /// Another state; what led to it is no text.
    fn enter(&mut self, state: State) -> bool {
        self.state = state;
        self.length = 0;
        false
    }
}

/// Whether a character does nothing but show itself. Marks that reverse the direction of writing do more:
/// what they surround reads as something else.
fn is_harmless(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => false,
        c => !c.is_control(),
    }
}

/// A whole text, made harmless.
pub fn clean(text: &str) -> String {
    Sanitiser::default().clean(text)
}

/// A whole text with its colours, and without everything else that a terminal obeys.
pub fn keep_colours(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut between = 0;
    while let Some(found) = rest[between..].find("\x1b[") {
        let start = between + found;
        let parameters = &rest[start + 2..];
        let end = parameters.find(|c: char| !matches!(c, '0'..='9' | ';')).unwrap_or_default();
        if !parameters[end..].starts_with('m') {
            between = start + 2;
            continue;
        }
        let (before, from) = rest.split_at(start);
        let (colour, after) = from.split_at(2 + end + 1);
        out.push_str(&clean(before));
        out.push_str(colour);
        (rest, between) = (after, 0);
    }
    out.push_str(&clean(rest));
    Cow::Owned(out)
}

/// JSON in which characters that a terminal obeys are escapes. In JSON they stand in strings only.
pub fn escape_in_json(json: &str) -> Cow<'_, str> {
    if json.chars().all(is_harmless) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if is_harmless(c) {
            out.push(c);
        } else {
            // All of them are in the basic plane.
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        }
    }
    Cow::Owned(out)
}

/// A whole text with what is not harmless written out, for somebody who has to decide about it.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_harmless(c) {
            out.push(c);
        } else {
            out.extend(c.escape_unicode());
        }
    }
    out
}

/// The first line of a text that says something, made harmless and at most so many characters long.
pub fn one_line(text: &str, limit: usize) -> String {
    let text = clean(text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    cut(&line.replace('\t', " "), limit)
}

/// A text, or its beginning and three dots.
pub fn cut(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let kept: String = text.chars().take(limit.saturating_sub(3)).collect();
    format!("{}...", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_and_control_characters_do_not_reach_the_terminal() {
        let cases = [
            ("\x1b[31mred\x1b[0m", "red"),
            ("\x1b]0;title\x07text", "text"),
            ("\x1b]52;c;cm0gLXJm\x1b\\text", "text"),
            ("\x1bPq#0\x1b\\text", "text"),
            ("\u{9b}2Jtext", "text"),
            ("\u{9d}0;title\u{9c}text", "text"),
            ("\x1b(Btext", "text"),
            ("a\rb\x08c\x07d\x00e\x7ff", "abcdef"),
            ("one\ttwo\nthree", "one\ttwo\nthree"),
            ("safe\u{202e}txt.exe", "safetxt.exe"),
            ("grüße 世界 👋", "grüße 世界 👋"),
        ];
        for (text, expected) in cases {
            assert_eq!(clean(text), expected, "{text:?}");
        }
    }

    #[test]
    fn only_colours_are_kept() {
        let cases = [
            ("plain\n", "plain\n"),
            ("\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m"),
            ("a\x1b[2Jb\x1b[31mc\x1b]0;title\x07d\r\x1b[0m", "ab\x1b[31mcd\x1b[0m"),
            ("\x1b]0;ti\x1b[31mtle\x07", "\x1b[31mtle"),
            ("\x1b[31", ""),
            ("\x1b[\u{9b}2Jx\u{202e}y", "2Jxy"),
        ];
        for (text, expected) in cases {
            assert_eq!(keep_colours(text), expected, "{text:?}");
        }
    }

    #[test]
    fn json_keeps_its_meaning_and_commands_nothing() {
        let text = "a\u{9b}2J\u{202e}b\u{7f}\nü";
        let json = serde_json::to_string_pretty(&[text]).unwrap();
        let escaped = escape_in_json(&json);
        assert!(escaped.chars().all(is_harmless), "{escaped:?}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&escaped).unwrap(), [text]);
    }

    #[test]
    fn a_sequence_may_come_in_parts() {
        let mut sanitiser = Sanitiser::default();
        let parts = ["a\x1b", "[3", "1", "mb\x1b]0;", "ti", "tle\x1b", "\\c"];
        let clean: String = parts.iter().map(|part| sanitiser.clean(part)).collect();
        assert_eq!(clean, "abc");
    }

    #[test]
    fn a_sequence_that_never_ends_hides_little() {
        assert_eq!(clean("\x1b]0;title\nnext"), "\nnext");
        let long = format!("\x1b]{}", "x".repeat(MAX_SEQUENCE + 50));
        let shown = clean(&long).len();
        assert!((1..=50).contains(&shown), "{shown}");
    }

    #[test]
    fn what_is_decided_about_is_shown_as_it_is() {
        assert_eq!(visible("ls\r\x1b[1A"), "ls\\u{d}\\u{1b}[1A");
        assert_eq!(visible("a\u{202e}b\tc"), "a\\u{202e}b\tc");
    }

    #[test]
    fn a_line_is_the_first_that_says_something_and_is_cut() {
        assert_eq!(one_line("\n  \n  two\tparts \nthree", 20), "two parts");
        assert_eq!(one_line("0123456789", 8), "01234...");
        assert_eq!(cut("0123 56789", 8), "0123...");
        assert_eq!(cut("世界世界", 4), "世界世界");
    }
}
