//! Markdown for a terminal, as it comes: line by line, and within a line as soon as it is certain what is meant.
//! Nothing that was shown is ever drawn again.

mod inline;

use anstyle::Style;

use self::inline::MAX_WAITING;
use self::inline::Text;
use self::inline::put;
use crate::output::BOLD;
use crate::output::DIM;
use crate::sanitise::Sanitiser;

/// How wide the line is that stands for a thematic break, in characters.
const BREAK_WIDTH: usize = 40;

/// Renders markdown that comes in parts. Without colours it is shown as it is written.
pub struct Markdown {
    colour: bool,
    sanitiser: Sanitiser,
    /// What the line is; none while that is not certain.
    block: Option<Block>,
    /// What of the line was not shown yet.
    rest: String,
    /// The last character before it.
    before: Option<char>,
    /// The fence that ends the code, if this is code.
    fence: Option<Fence>,
    /// Something of the line is on the terminal.
    shown: bool,
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    /// Text, in a style.
    Text(Style),
    /// Code, or a row of a table: shown as it is, in a style.
    Verbatim(Style),
    /// Where code begins or ends.
    Fence,
    /// A line across.
    Break,
}

/// What code stands between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fence {
    mark: char,
    length: usize,
}

impl Markdown {
    /// Nothing yet.
    pub fn new(colour: bool) -> Self {
        Self {
            colour,
            sanitiser: Sanitiser::default(),
            block: None,
            rest: String::new(),
            before: None,
            fence: None,
            shown: false,
        }
    }

    /// Adds a part; what can be shown now.
    pub fn push(&mut self, text: &str) -> String {
        let text = self.sanitiser.clean(text);
        if !self.colour {
            if let Some(last) = text.chars().next_back() {
                self.shown = last != '\n';
            }
            return text;
        }
        let mut out = String::with_capacity(text.len());
        for part in text.split_inclusive('\n') {
            let line = part.strip_suffix('\n');
            self.rest.push_str(line.unwrap_or(part));
            self.advance(line.is_some(), &mut out);
        }
        out
    }

    /// The text has ended: what still waits, and the end of the line. The next text begins anew.
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        if self.colour && !self.rest.is_empty() {
            self.advance(true, &mut out);
        } else if self.shown {
            out.push('\n');
        }
        *self = Self::new(self.colour);
        out
    }

    /// Shows what can be shown of the line.
    fn advance(&mut self, done: bool, out: &mut String) {
        if self.block.is_none() {
            let Some(begun) = begin(&self.rest, &mut self.fence, done) else { return };
            self.shown |= !begun.shown.is_empty();
            out.push_str(&begun.shown);
            self.rest.drain(..begun.length);
            self.block = Some(begun.block);
        }
        let length = match self.block {
            Some(Block::Text(style)) => {
                let text = Text { rest: &self.rest, before: self.before, done, style };
                inline::render(text, out)
            }
            Some(Block::Verbatim(style)) => {
                put(out, &self.rest, style);
                self.rest.len()
            }
            Some(Block::Fence | Block::Break) | None => self.rest.len(),
        };
        if length > 0 {
            self.before = self.rest[..length].chars().next_back();
            self.shown = true;
            self.rest.drain(..length);
        }
        if done {
            if self.block != Some(Block::Fence) {
                out.push('\n');
            }
            self.block = None;
            self.before = None;
            self.shown = false;
            self.rest.clear();
        }
    }
}

/// What a line is, and what is shown for its beginning; none while that is not certain.
fn begin(line: &str, fence: &mut Option<Fence>, done: bool) -> Option<Begun> {
    let done = done || line.len() > MAX_WAITING;
    let trimmed = line.trim_start_matches([' ', '\t']);
    let indent = line.len() - trimmed.len();
    if let Some(open) = *fence {
        return begin_code(line, open, fence, done);
    }
    let text = || Begun::new(Block::Text(Style::new()), 0, String::new());
    let Some(first) = trimmed.chars().next() else { return done.then(text) };
    let after = trimmed.trim_start_matches(first);
    let marks = (trimmed.len() - after.len()) / first.len_utf8();
    let next = after.chars().next();
    match first {
        '#' if marks <= 6 && next == Some(' ') => {
            Some(Begun::new(Block::Text(BOLD), indent + marks + 1, String::new()))
        }
        '>' if trimmed.len() > 1 || done => {
            let space = usize::from(trimmed[1..].starts_with(' '));
            let shown = format!("{DIM}│{DIM:#} ");
            Some(Begun::new(Block::Text(DIM), indent + 1 + space, shown))
        }
        '|' => Some(Begun::new(Block::Verbatim(Style::new()), 0, String::new())),
        '-' | '*' | '+' if marks == 1 && next == Some(' ') => {
            let shown = format!("{}• ", &line[..indent]);
            Some(Begun::new(Block::Text(Style::new()), indent + 2, shown))
        }
        '-' | '*' | '_' if next.is_none() && marks >= 3 && done => {
            let shown = format!("{DIM}{}{DIM:#}", "─".repeat(BREAK_WIDTH));
            Some(Begun::new(Block::Break, line.len(), shown))
        }
        '`' | '~' if marks >= 3 && !done => None,
        // With backticks in the rest of the line it is code within a line.
        '`' | '~' if marks >= 3 && !after.contains('`') => {
            *fence = Some(Fence { mark: first, length: marks });
            Some(Begun::new(Block::Fence, line.len(), String::new()))
        }
        '#' | '>' | '-' | '*' | '+' | '_' | '`' | '~' if next.is_none() && !done => None,
        _ => Some(text()),
    }
}

/// The same within code.
fn begin_code(line: &str, open: Fence, fence: &mut Option<Fence>, done: bool) -> Option<Begun> {
    let trimmed = line.trim_start_matches([' ', '\t']);
    let after = trimmed.trim_start_matches(open.mark);
    let could_close = after.trim().is_empty();
    if could_close && !done {
        return None;
    }
    if could_close && trimmed.len() - after.len() >= open.length {
        *fence = None;
        return Some(Begun::new(Block::Fence, line.len(), String::new()));
    }
    let indent = if line.is_empty() { "" } else { "  " };
    Some(Begun::new(Block::Verbatim(DIM), 0, indent.to_owned()))
}

/// How a line begins.
struct Begun {
    block: Block,
    /// How much of what was written that is.
    length: usize,
    /// What is shown for it.
    shown: String,
}

impl Begun {
    fn new(block: Block, length: usize, shown: String) -> Self {
        Self { block, length, shown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything at once, without the sequences for colours.
    fn shown(text: &str) -> String {
        let mut markdown = Markdown::new(true);
        let mut out = markdown.push(text);
        out.push_str(&markdown.finish());
        anstream::adapter::strip_str(&out).to_string()
    }

    #[test]
    fn lines_are_what_they_look_like() {
        let cases = [
            ("# Title\ntext", "Title\ntext\n"),
            ("####### no title", "####### no title\n"),
            ("#hashtag", "#hashtag\n"),
            ("- one\n* two\n  + three\n", "• one\n• two\n  • three\n"),
            ("1. one\n2) two\n", "1. one\n2) two\n"),
            ("> said", "│ said\n"),
            ("| a | *b* |\n|---|---|\n", "| a | *b* |\n|---|---|\n"),
            ("*it* is", "it is\n"),
            ("**b**\n", "b\n"),
            ("-5 and --flag\n", "-5 and --flag\n"),
            ("\n\ntwo\n", "\n\ntwo\n"),
            ("  indented", "  indented\n"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text}");
        }
        assert_eq!(shown("a\n---\nb"), format!("a\n{}\nb\n", "─".repeat(BREAK_WIDTH)));
    }

    #[test]
    fn code_is_shown_as_it_is_and_indented() {
        let text = "before\n```rust\nlet a = *b; // **c**\n\n    # not a title\n```\n**after**";
        let expected = "before\n  let a = *b; // **c**\n\n      # not a title\nafter\n";
        assert_eq!(shown(text), expected);
        assert_eq!(shown("~~~\n```\n~~~\n"), "  ```\n");
        assert_eq!(shown("````\n```\n````\n"), "  ```\n");
        assert_eq!(shown("```\nopen"), "  open\n");
        assert_eq!(shown("```not code``` but text"), "not code but text\n");
    }

    #[test]
    fn it_does_not_matter_in_which_parts_a_text_comes() {
        let text = "# T\nSome **bold *and*** `code` [l](u)\n\n- a\n- b_c\n```sh\n* x\n```\n> q\n---\n| t |\nend!";
        let whole = {
            let mut markdown = Markdown::new(true);
            [markdown.push(text), markdown.finish()].concat()
        };
        let strip = |text: &str| anstream::adapter::strip_str(text).to_string();
        for size in 1..8 {
            let mut markdown = Markdown::new(true);
            let chars: Vec<char> = text.chars().collect();
            let mut out = String::new();
            for part in chars.chunks(size) {
                out.push_str(&markdown.push(&part.iter().collect::<String>()));
            }
            out.push_str(&markdown.finish());
            assert_eq!(strip(&out), strip(&whole), "in parts of {size}");
        }
    }

    #[test]
    fn text_is_shown_as_it_comes() {
        let mut markdown = Markdown::new(true);
        assert_eq!(markdown.push("Hel"), "Hel");
        assert_eq!(markdown.push("lo wor"), "lo wor");
        assert_eq!(markdown.push("ld\n- it"), "ld\n• it");
        assert_eq!(markdown.push("em\n-"), "em\n");
        assert_eq!(markdown.push(" next"), "• next");
        assert_eq!(markdown.finish(), "\n");
        assert_eq!(markdown.finish(), "");
    }

    #[test]
    fn without_colours_it_is_shown_as_it_is_written() {
        let mut markdown = Markdown::new(false);
        let text = "# T\n**b** `c`\n```\nx\n```";
        assert_eq!(markdown.push(text), text);
        assert_eq!(markdown.finish(), "\n");
        assert_eq!(markdown.push("done\n"), "done\n");
        assert_eq!(markdown.finish(), "");
    }

    #[test]
    fn nothing_it_shows_was_a_sequence_before() {
        for colour in [true, false] {
            let mut markdown = Markdown::new(colour);
            let out = markdown.push("a\x1b]0;x\x07 b\x1b[2J\n```\n\x1b[31mc\n```\n");
            let out = [out, markdown.finish()].concat();
            assert!(
                !out.contains("]0;") && !out.contains("[2J") && !out.contains("[31m"),
                "{out:?}"
            );
        }
    }
}
