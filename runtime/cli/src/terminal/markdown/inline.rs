//! What stands inside a line of markdown: bold, italics, code, links. Only what is certain is rendered; a run
//! whose end has not come yet waits for it.

use anstyle::Effects;
use anstyle::Style;

use crate::output::CYAN;
use crate::output::DIM;

/// The longest run that waits for its end, in bytes. A longer one is taken as it is written: it is no markup,
/// or nobody wants to wait for it.
pub const MAX_WAITING: usize = 4096;

/// The characters that may begin something.
const SPECIAL: [char; 6] = ['*', '_', '`', '[', '!', '\\'];

/// The text of a line as far as it is known.
#[derive(Clone, Copy)]
pub struct Text<'a> {
    /// What has not been rendered yet.
    pub rest: &'a str,
    /// The character before it.
    pub before: Option<char>,
    /// Whether the line has ended.
    pub done: bool,
    /// How text without markup looks.
    pub style: Style,
}

/// What stands at the beginning of a text.
enum Found<'a> {
    /// So many bytes of markup, and what they show.
    Span(usize, Vec<Part<'a>>),
    /// So many bytes that are what they are.
    Literal(usize),
    /// It depends on what comes.
    Wait,
}

/// A part of what markup shows.
enum Part<'a> {
    /// Text without markup in it.
    Verbatim(&'a str, Style),
    /// Text that may have more markup in it.
    Nested(&'a str, Style),
}

/// Renders as much as is certain; returns how many bytes that was.
pub fn render(text: Text<'_>, out: &mut String) -> usize {
    let mut at = 0;
    let mut before = text.before;
    while at < text.rest.len() {
        let rest = &text.rest[at..];
        let length = match rest.find(SPECIAL).unwrap_or(rest.len()) {
            0 => match look(rest, before, text) {
                Found::Span(length, parts) => {
                    parts.iter().for_each(|part| render_part(part, out));
                    length
                }
                Found::Literal(length) => {
                    put(out, &rest[..length], text.style);
                    length
                }
                Found::Wait => break,
            },
            plain => {
                put(out, &rest[..plain], text.style);
                plain
            }
        };
        before = rest[..length].chars().next_back();
        at += length;
    }
    at
}

fn render_part(part: &Part<'_>, out: &mut String) {
    match *part {
        Part::Verbatim(text, style) => put(out, text, style),
        Part::Nested(rest, style) => {
            render(Text { rest, before: None, done: true, style }, out);
        }
    }
}

/// Text in a style.
pub fn put(out: &mut String, text: &str, style: Style) {
    if !text.is_empty() {
        out.push_str(&format!("{style}{text}{style:#}"));
    }
}

/// What stands at the beginning, which is one of the special characters.
fn look<'a>(rest: &'a str, before: Option<char>, text: Text<'_>) -> Found<'a> {
    let done = text.done || rest.len() > MAX_WAITING;
    // Nothing behind that is an end either: otherwise one long line could cost its length squared, or nest
    // deeper than the stack.
    let rest = &rest[..rest.floor_char_boundary(MAX_WAITING)];
    let style = text.style;
    let second = rest.chars().nth(1);
    match rest.chars().next() {
        Some('\\') => match second {
            Some(escaped) if escaped.is_ascii_punctuation() => {
                Found::Span(2, vec![Part::Verbatim(&rest[1..2], style)])
            }
            None if !done => Found::Wait,
            _ => Found::Literal(1),
        },
        Some('`') => look_for_code(rest, done, style),
        Some('[') => look_for_link(rest, done, style),
        Some('!') => match second {
            Some('[') => match look_for_link(&rest[1..], done, style) {
                Found::Span(length, parts) => Found::Span(length + 1, parts),
                Found::Literal(_) => Found::Literal(1),
                Found::Wait => Found::Wait,
            },
            None if !done => Found::Wait,
            _ => Found::Literal(1),
        },
        Some(mark) => look_for_emphasis(rest, mark, before, done, style),
        None => Found::Wait,
    }
}

/// How many bytes at the beginning are this character, which is one byte long.
fn run(text: &str, mark: char) -> usize {
    text.len() - text.trim_start_matches(mark).len()
}

/// Code between as many backticks on either side.
fn look_for_code(rest: &str, done: bool, style: Style) -> Found<'_> {
    let ticks = run(rest, '`');
    if ticks == rest.len() && !done {
        return Found::Wait;
    }
    let Some(end) = find_ticks(&rest[ticks..], ticks) else {
        return if done { Found::Literal(ticks) } else { Found::Wait };
    };
    // There may be more of them than have come.
    if ticks + end + ticks == rest.len() && !done {
        return Found::Wait;
    }
    let code = &rest[ticks..ticks + end];
    // A space on either side is there to keep backticks in the code apart from those around it.
    let inner = code.strip_prefix(' ').and_then(|code| code.strip_suffix(' '));
    let code = inner.filter(|inner| !inner.trim().is_empty()).unwrap_or(code);
    let look = style.fg_color(CYAN.get_fg_color());
    Found::Span(ticks + end + ticks, vec![Part::Verbatim(code, look)])
}

/// Where the next run of exactly so many backticks begins.
fn find_ticks(text: &str, ticks: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(next) = text[at..].find('`') {
        at += next;
        let length = run(&text[at..], '`');
        if length == ticks {
            return Some(at);
        }
        at += length;
    }
    None
}

/// `[text](address)`, shown as the text and the address.
fn look_for_link(rest: &str, done: bool, style: Style) -> Found<'_> {
    let open = || if done { Found::Literal(1) } else { Found::Wait };
    let Some(end) = find_bracket(rest) else { return open() };
    let address = match rest[end + 1..].chars().next() {
        Some('(') => &rest[end + 2..],
        None => return open(),
        Some(_) => return Found::Literal(1),
    };
    let Some(length) = address.find([')', '\n']) else { return open() };
    let shown = &rest[1..end];
    // A title may follow the address.
    let target = address[..length].split(' ').next().unwrap_or_default();
    let span = end + 2 + length + 1;
    if shown == target || target.is_empty() {
        return Found::Span(span, vec![Part::Nested(shown, style)]);
    }
    let look = style.effects(style.get_effects() | DIM.get_effects() | Effects::UNDERLINE);
    let parts = vec![
        Part::Nested(shown, style),
        Part::Verbatim(" (", style),
        Part::Verbatim(target, look),
        Part::Verbatim(")", style),
    ];
    Found::Span(span, parts)
}

/// Where the bracket at the beginning is closed.
fn find_bracket(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => {}
            '[' => depth += 1,
            ']' if depth == 1 => return Some(at),
            ']' => depth -= 1,
            _ => {}
        }
        escaped = c == '\\' && !escaped;
    }
    None
}

/// Text between one to three stars or underscores on either side.
fn look_for_emphasis(
    rest: &str,
    mark: char,
    before: Option<char>,
    done: bool,
    style: Style,
) -> Found<'_> {
    let marks = run(rest, mark);
    let next = rest[marks..].chars().next();
    match next {
        None if !done => return Found::Wait,
        None => return Found::Literal(marks),
        Some(next) if next.is_whitespace() => return Found::Literal(marks),
        Some(_) => {}
    }
    let in_word = mark == '_' && before.is_some_and(char::is_alphanumeric);
    if marks > 3 || in_word {
        return Found::Literal(marks);
    }
    match find_marks(&rest[marks..], mark, marks, done) {
        Closing::At(end) => {
            let look = match marks {
                1 => style.italic(),
                2 => style.bold(),
                _ => style.bold().italic(),
            };
            let inner = &rest[marks..marks + end];
            Found::Span(marks + end + marks, vec![Part::Nested(inner, look)])
        }
        Closing::Unknown if !done => Found::Wait,
        Closing::Unknown | Closing::Nowhere => Found::Literal(marks),
    }
}

/// Where emphasis is closed.
enum Closing {
    At(usize),
    Nowhere,
    /// It depends on what comes.
    Unknown,
}

/// Where the text before so many closing marks ends. Marks inside of code do not count.
fn find_marks(text: &str, mark: char, marks: usize, done: bool) -> Closing {
    let mut at = 0;
    let mut before = None;
    while let Some(c) = text[at..].chars().next() {
        let here = &text[at..];
        let length = match c {
            '\\' => 1 + here[1..].chars().next().map_or(0, char::len_utf8),
            '`' => {
                let ticks = run(here, '`');
                let code = find_ticks(&here[ticks..], ticks);
                let length = code.map_or(ticks, |code| ticks + code + ticks);
                // Marks that have come may be in code that has not ended.
                if !done && (code.is_none() || length == here.len()) {
                    return Closing::Unknown;
                }
                length
            }
            c if c == mark => {
                let length = run(here, mark);
                let next = here[length..].chars().next();
                if next.is_none() && !done {
                    return Closing::Unknown;
                }
                // Three close two and one at once; what is left of them belongs to the text inside.
                let fits = length == marks || length == 3;
                let follows_text = before.is_some_and(|before: char| !before.is_whitespace());
                let in_word = mark == '_' && next.is_some_and(char::is_alphanumeric);
                if fits && follows_text && !in_word {
                    return Closing::At(at + length - marks);
                }
                length
            }
            c => c.len_utf8(),
        };
        before = here[..length].chars().next_back();
        at += length;
    }
    if done { Closing::Nowhere } else { Closing::Unknown }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rendered with letters for styles, which are easier to read than sequences.
    fn shown(text: &str) -> String {
        let mut out = String::new();
        let plain = Text { rest: text, before: None, done: true, style: Style::new() };
        assert_eq!(render(plain, &mut out), text.len());
        readable(&out)
    }

    fn readable(text: &str) -> String {
        let names = [
            ("\x1b[0m", "</>"),
            ("\x1b[1m\x1b[3m", "<bi>"),
            ("\x1b[1m", "<b>"),
            ("\x1b[3m", "<i>"),
            ("\x1b[36m", "<c>"),
            ("\x1b[2m\x1b[4m", "<u>"),
        ];
        names.iter().fold(text.to_owned(), |text, (code, name)| text.replace(code, name))
    }

    #[test]
    fn markup_is_rendered() {
        let cases = [
            ("a **b** c", "a <b>b</> c"),
            ("a *b* __c__ _d_", "a <i>b</> <b>c</> <i>d</>"),
            ("***a***", "<bi>a</>"),
            ("**a *b***", "<b>a </><bi>b</>"),
            ("*a **b** c*", "<i>a </><bi>b</><i> c</>"),
            ("`a *b*` c", "<c>a *b*</> c"),
            ("`` `x` ``", "<c>`x`</>"),
            ("[a](http://b)", "a (<u>http://b</>)"),
            ("[a **b**](c \"title\")", "a <b>b</> (<u>c</>)"),
            ("![a](b)", "a (<u>b</>)"),
            ("[http://a](http://a)", "http://a"),
            (r"\*a\* \`b\`", "*a* `b`"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_markup_is_left_alone() {
        let cases = [
            "2 * 3 * 4",
            "snake_case_name",
            "**open",
            "`open",
            "[open](",
            "[text] and more",
            "f(*args)",
            "wow! and ![",
            "a ****b****",
            r"C:\dir\",
            "5 _ 6",
        ];
        for text in cases {
            assert_eq!(shown(text), text, "{text}");
        }
    }

    /// What is rendered of a line that has not ended.
    fn so_far(text: &str) -> String {
        let mut out = String::new();
        let begun = Text { rest: text, before: None, done: false, style: Style::new() };
        render(begun, &mut out);
        readable(&out)
    }

    #[test]
    fn plain_text_is_shown_at_once_and_a_run_waits_for_its_end() {
        assert_eq!(so_far("plain te"), "plain te");
        assert_eq!(so_far("a **bo"), "a ");
        assert_eq!(so_far("a **bold*"), "a ");
        // More stars may come.
        assert_eq!(so_far("a **bold**"), "a ");
        assert_eq!(so_far("a **bold** b"), "a <b>bold</> b");
        assert_eq!(so_far("a `co"), "a ");
        assert_eq!(so_far("a `code` b"), "a <c>code</> b");
        // More backticks may come, and marks in code are none.
        assert_eq!(so_far("a `code`"), "a ");
        assert_eq!(so_far("a *b `c* d"), "a ");
        assert_eq!(so_far("a *b `c*` d* e"), "a <i>b </><i><c>c*</><i> d</> e");
        assert_eq!(so_far("a *b `c*`"), "a ");
        assert_eq!(so_far("see [te"), "see ");
        assert_eq!(so_far("see [text]"), "see ");
        assert_eq!(so_far("see [text] b"), "see [text] b");
        assert_eq!(so_far("wow!"), "wow");
    }

    #[test]
    fn nothing_waits_for_ever() {
        let text = format!("**{}", "x".repeat(MAX_WAITING));
        assert_eq!(so_far(&text), text);
    }
}
