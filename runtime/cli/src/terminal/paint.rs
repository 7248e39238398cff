//! A prompt and the text behind it on the terminal: drawn, drawn again when a key was pressed, taken away.

use anstyle::Style;
use rustyline::GraphemeClusterMode;

/// How far apart tabulators are, in columns.
const TAB: usize = 8;

/// Where a prompt is on the terminal.
#[derive(Debug, Default)]
pub struct Painter {
    /// How many rows the cursor is below the first, if something is drawn.
    drawn: Option<usize>,
}

/// What is drawn.
pub struct Picture<'a> {
    /// What stands before the text, without sequences.
    pub prompt: &'a str,
    /// How that looks.
    pub style: Style,
    /// The text; its lines are aligned.
    pub text: &'a str,
    /// Where the cursor is in it, in bytes.
    pub cursor: usize,
    /// The size of the terminal: columns and rows.
    pub size: (usize, usize),
}

impl Painter {
    /// The sequences that draw it, in place of what is drawn.
    pub fn draw(&mut self, picture: &Picture<'_>) -> String {
        let mut out = self.erase();
        let (columns, rows) = picture.size;
        let layout = Layout::new(picture, columns.max(2));
        // What does not fit is above the terminal; where the cursor is can be seen.
        let height = rows.max(1);
        let top = (layout.cursor.0 + 1).saturating_sub(height);
        let bottom = layout.rows.len().min(top + height);
        let style = picture.style;
        for (number, row) in layout.rows[top..bottom].iter().enumerate() {
            if number > 0 {
                out.push_str("\r\n");
            }
            let (prompt, text) =
                row.split_at(layout.prompt.get(top + number).copied().unwrap_or(0));
            if !prompt.is_empty() {
                out.push_str(&format!("{style}{prompt}{style:#}"));
            }
            out.push_str(text);
        }
        let below = bottom - 1 - layout.cursor.0;
        if below > 0 {
            out.push_str(&format!("\x1b[{below}A"));
        }
        out.push('\r');
        if layout.cursor.1 > 0 {
            out.push_str(&format!("\x1b[{}C", layout.cursor.1));
        }
        self.drawn = Some(layout.cursor.0 - top);
        out
    }

    /// The sequences that take it away; the cursor is where it began.
    pub fn erase(&mut self) -> String {
        match self.drawn.take() {
            Some(0) => "\r\x1b[J".to_owned(),
            Some(row) => format!("\x1b[{row}A\r\x1b[J"),
            None => String::new(),
        }
    }

    /// The sequences that leave it where it is, and go to the line below.
    pub fn leave(&mut self, picture: &Picture<'_>) -> String {
        let at_end = Picture { cursor: picture.text.len(), ..*picture };
        let mut out = self.draw(&at_end);
        out.push_str("\r\n");
        self.drawn = None;
        out
    }
}

/// The rows of a picture, and where the cursor is in them: row and column.
struct Layout {
    rows: Vec<String>,
    /// How many bytes of the first rows are the prompt.
    prompt: Vec<usize>,
    cursor: (usize, usize),
}

impl Layout {
    fn new(picture: &Picture<'_>, columns: usize) -> Self {
        let prompt = picture.prompt.chars().map(width).sum::<usize>();
        // On a narrow terminal there is no room to align lines.
        let indent = if prompt * 2 > columns { 0 } else { prompt };
        let mut rows = vec![String::new()];
        let mut column = 0;
        for c in picture.prompt.chars() {
            let wide = width(c);
            if column + wide > columns {
                rows.push(String::new());
                column = 0;
            }
            if let Some(row) = rows.last_mut() {
                row.push(c);
            }
            column += wide;
        }
        let prompt = rows.iter().map(String::len).collect();
        let mut cursor = None;
        for (at, c) in picture.text.char_indices() {
            if at == picture.cursor {
                cursor = Some((rows.len() - 1, column));
            }
            if c == '\n' {
                rows.push(" ".repeat(indent));
                column = indent;
                continue;
            }
            let wide = if c == '\t' { TAB - column % TAB } else { width(c) };
            if column + wide > columns {
                rows.push(String::new());
                column = 0;
                if at == picture.cursor {
                    cursor = Some((rows.len() - 1, 0));
                }
            }
            if let Some(row) = rows.last_mut() {
                match c {
                    '\t' => row.push_str(&" ".repeat(wide)),
                    c => row.push(c),
                }
            }
            column += wide;
        }
        // The terminal has no column for a cursor behind the last.
        if column >= columns {
            rows.push(String::new());
            column = 0;
        }
        let cursor = cursor.unwrap_or((rows.len() - 1, column));
        Self { rows, prompt, cursor }
    }
}

/// How many columns a character takes.
fn width(c: char) -> usize {
    let mut bytes = [0; 4];
    GraphemeClusterMode::WcWidth.width(c.encode_utf8(&mut bytes)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(text: &str, cursor: usize, size: (usize, usize)) -> Picture<'_> {
        Picture { prompt: "> ", style: Style::new(), text, cursor, size }
    }

    fn layout(text: &str, cursor: usize, columns: usize) -> (Vec<String>, (usize, usize)) {
        let layout = Layout::new(&picture(text, cursor, (columns, 24)), columns);
        (layout.rows, layout.cursor)
    }

    #[test]
    fn text_goes_on_in_the_next_row_and_lines_are_aligned() {
        let rows = |rows: &[&str]| rows.iter().map(|&row| row.to_owned()).collect::<Vec<_>>();
        assert_eq!(layout("ab", 2, 10), (rows(&["> ab"]), (0, 4)));
        assert_eq!(layout("ab\ncd", 0, 10), (rows(&["> ab", "  cd"]), (0, 2)));
        assert_eq!(layout("abcdef", 6, 6), (rows(&["> abcd", "ef"]), (1, 2)));
        assert_eq!(layout("abcdef", 4, 6).1, (1, 0));
        // A full row has no place for the cursor behind it.
        assert_eq!(layout("abcd", 4, 6), (rows(&["> abcd", ""]), (1, 0)));
        assert_eq!(layout("世界", 6, 5), (rows(&["> 世", "界"]), (1, 2)));
        assert_eq!(layout("a\tb", 2, 40), (rows(&["> a     b"]), (0, 8)));
    }

    #[test]
    fn it_is_drawn_in_place_of_what_was_drawn() {
        let mut painter = Painter::default();
        assert_eq!(painter.draw(&picture("a", 1, (20, 24))), "> a\r\x1b[3C");
        assert_eq!(
            painter.draw(&picture("a\nb", 0, (20, 24))),
            "\r\x1b[J> a\r\n  b\x1b[1A\r\x1b[2C"
        );
        assert_eq!(painter.draw(&picture("a\nb", 3, (20, 24))), "\r\x1b[J> a\r\n  b\r\x1b[3C");
        assert_eq!(painter.erase(), "\x1b[1A\r\x1b[J");
        assert_eq!(painter.erase(), "");
    }

    #[test]
    fn what_is_higher_than_the_terminal_is_shown_around_the_cursor() {
        let text = (0..10).map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
        let mut painter = Painter::default();
        let drawn = painter.draw(&picture(&text, text.len(), (20, 3)));
        assert_eq!(drawn, "  7\r\n  8\r\n  9\r\x1b[3C");
        assert_eq!(painter.erase(), "\x1b[2A\r\x1b[J");
        let drawn = painter.draw(&picture(&text, 0, (20, 3)));
        assert_eq!(drawn, "> 0\r\n  1\r\n  2\x1b[2A\r\x1b[2C");
    }

    #[test]
    fn what_was_entered_stays() {
        let mut painter = Painter::default();
        painter.draw(&picture("ab", 0, (20, 24)));
        assert_eq!(painter.leave(&picture("ab", 0, (20, 24))), "\r\x1b[J> ab\r\x1b[4C\r\n");
        assert_eq!(painter.erase(), "");
    }
}
