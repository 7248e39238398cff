//! Colours, tables and JSON on standard output.

use std::fs::File;
use std::io::IsTerminal;
use std::io::Write;
use std::os::fd::AsFd;
use std::sync::OnceLock;

use anstream::AutoStream;
use anstyle::AnsiColor;
use anstyle::Style;
use parking_lot::Mutex;
use serde::Serialize;

use crate::sanitise::escape_in_json;
use crate::sanitise::keep_colours;

/// Names and headings.
pub const BOLD: Style = Style::new().bold();
/// What matters less.
pub const DIM: Style = Style::new().dimmed();
/// Failures.
pub const RED: Style = AnsiColor::Red.on_default().bold();
/// What went well, and hints.
pub const GREEN: Style = AnsiColor::Green.on_default().bold();
/// Warnings.
pub const YELLOW: Style = AnsiColor::Yellow.on_default();
/// Places.
pub const CYAN: Style = AnsiColor::Cyan.on_default();

/// Standard output, once it is ours alone.
static OUT: OnceLock<Mutex<AutoStream<File>>> = OnceLock::new();

/// Keeps standard output for this module: file descriptor 1 leads nowhere afterwards, so that nothing an
/// extension or a process it starts does with the number, or with `/dev/stdout`, is read as our output.
pub fn claim_stdout() -> std::io::Result<()> {
    let own = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    let nowhere = File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    // Claimed once, at the start of the program.
    let _ = OUT.set(Mutex::new(AutoStream::auto(own)));
    Ok(())
}

/// Writes to standard output. On a terminal nothing but colours is obeyed, wherever the text comes from.
fn write(text: std::fmt::Arguments<'_>) -> std::io::Result<()> {
    if is_terminal() {
        return write_unchecked(format_args!("{}", keep_colours(&text.to_string())));
    }
    write_unchecked(text)
}

fn write_unchecked(text: std::fmt::Arguments<'_>) -> std::io::Result<()> {
    match OUT.get().map(Mutex::lock) {
        Some(mut out) => out.write_fmt(text),
        None => anstream::stdout().write_fmt(text),
    }
}

/// Standard output itself, for a protocol that has it to itself; nothing else may print then.
pub fn protocol_stdout() -> std::io::Result<File> {
    match OUT.get().map(Mutex::lock) {
        Some(out) => out.as_inner().try_clone(),
        None => Ok(File::from(std::io::stdout().as_fd().try_clone_to_owned()?)),
    }
}

/// Prints a text without a line break of its own, and as it is: whoever calls this moves the cursor. An error if nobody
/// reads it.
pub fn stream(text: impl std::fmt::Display) -> std::io::Result<()> {
    write_unchecked(format_args!("{text}"))
}

/// Prints bytes as they are: what looks like a colour in them is left alone. An error if nobody reads them.
pub fn stream_bytes(bytes: &[u8]) -> std::io::Result<()> {
    match OUT.get().map(Mutex::lock) {
        Some(out) => out.as_inner().write_all(bytes),
        None => std::io::stdout().write_all(bytes),
    }
}

/// Whether somebody looks at standard output.
pub fn is_terminal() -> bool {
    match OUT.get().map(Mutex::lock) {
        Some(out) => out.as_inner().is_terminal(),
        None => std::io::stdout().is_terminal(),
    }
}

/// Puts lines in place of what is on the terminal, as many as fit. Where colours are not wanted they are
/// left out; the cursor is moved in any case.
pub fn redraw(lines: &[String]) {
    let Some(mut out) = OUT.get().map(Mutex::lock) else { return };
    let rows = terminal_rows(out.as_inner());
    let _ = out.as_inner().write_all(HOME);
    for line in lines.iter().take(rows.saturating_sub(1)) {
        let _ = write!(out, "{line}");
        let _ = out.as_inner().write_all(END_LINE);
    }
    let _ = out.as_inner().write_all(CLEAR_REST);
}

/// The cursor goes to the upper left corner.
const HOME: &[u8] = b"\x1b[H";
/// The rest of a line is cleared, and the next begins.
const END_LINE: &[u8] = b"\x1b[K\n";
/// Everything below is cleared.
const CLEAR_REST: &[u8] = b"\x1b[J";

/// How many lines and columns a terminal is assumed to have that does not say.
const USUAL_SIZE: (usize, usize) = (24, 80);

/// How many columns the terminal has.
pub fn columns() -> usize {
    let out = OUT.get().map(Mutex::lock);
    out.map_or(USUAL_SIZE.1, |out| terminal_size(out.as_inner()).1)
}

fn terminal_rows(terminal: &File) -> usize {
    terminal_size(terminal).0
}

fn terminal_size(terminal: &File) -> (usize, usize) {
    let Ok(size) = rustix::termios::tcgetwinsize(terminal) else { return USUAL_SIZE };
    let or_usual = |said: u16, usual: usize| if said > 0 { said.into() } else { usual };
    (or_usual(size.ws_row, USUAL_SIZE.0), or_usual(size.ws_col, USUAL_SIZE.1))
}

/// Asks on the terminal; anything but yes is no. `None` if nobody is there to be asked.
pub fn confirm(question: &str) -> Option<bool> {
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return None;
    }
    let _ = write!(anstream::stderr(), "{question} [y/N] ");
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    let yes = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
    Some(read.is_ok() && yes)
}

/// Prints a line to standard error, for a person.
pub fn note(text: impl std::fmt::Display) {
    let _ = writeln!(anstream::stderr(), "{}", keep_colours(&text.to_string()));
}

/// Prints a line. A reader that has gone away is not an error.
pub fn line(text: impl std::fmt::Display) {
    let _ = write(format_args!("{text}\n"));
}

/// Prints a line of a stream that has no end; false if nobody reads it any more.
pub fn stream_line(text: impl std::fmt::Display) -> bool {
    write(format_args!("{text}\n")).is_ok()
}

/// Prints a value as JSON.
pub fn json(value: &impl Serialize) -> serde_json::Result<()> {
    line(escape_in_json(&serde_json::to_string_pretty(value)?));
    Ok(())
}

/// One and many: `1 tool`, `2 tools`.
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Rows with aligned columns.
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<(String, Style)>>,
    right: Vec<bool>,
}

impl Table {
    /// A table with the given columns; those whose name starts with `>` are aligned to the right.
    pub fn new(columns: &[&str]) -> Self {
        let right = columns.iter().map(|column| column.starts_with('>')).collect();
        let header =
            columns.iter().map(|column| column.trim_start_matches('>').to_owned()).collect();
        Self { header, rows: Vec::new(), right }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<(String, Style)>) {
        self.rows.push(cells);
    }

    /// Prints it.
    pub fn print(&self) {
        self.lines().iter().for_each(line);
    }

    /// Its lines, the header first.
    pub fn lines(&self) -> Vec<String> {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let widest = cells.map(|(text, _)| text.chars().count()).max().unwrap_or(0);
            widest.max(self.header[column].chars().count())
        };
        let widths: Vec<usize> = (0..self.header.len()).map(width).collect();
        let pad = |text: &str, column: usize, style: Style| {
            let gap = " ".repeat(widths[column].saturating_sub(text.chars().count()));
            if self.right[column] {
                format!("{gap}{style}{text}{style:#}")
            } else if column + 1 == widths.len() {
                format!("{style}{text}{style:#}")
            } else {
                format!("{style}{text}{style:#}{gap}")
            }
        };
        let header: Vec<_> =
            self.header.iter().enumerate().map(|(i, text)| pad(text, i, BOLD)).collect();
        let mut lines = vec![header.join("  ")];
        lines.extend(self.rows.iter().map(|row| {
            let cells: Vec<_> =
                row.iter().enumerate().map(|(i, (text, style))| pad(text, i, *style)).collect();
            cells.join("  ")
        }));
        lines
    }
}

/// A line on the terminal that says what is going on and disappears when it is over.
pub struct Progress(bool);

impl Progress {
    /// Shows the text, if somebody is watching.
    pub fn start(text: &str) -> Self {
        let watched = std::io::stderr().is_terminal();
        if watched {
            let _ = write!(anstream::stderr(), "{DIM}{text}{DIM:#}");
        }
        Self(watched)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.0 {
            let _ = write!(anstream::stderr(), "\r\x1b[2K");
        }
    }
}

/// How many characters a bar of progress is long.
const BAR: usize = 24;

/// A bar on the terminal for what takes many steps. It disappears when it is over.
pub struct Bar {
    watched: bool,
    total: usize,
    done: usize,
}

impl Bar {
    /// For so many steps.
    pub fn new(total: usize) -> Self {
        Self { watched: std::io::stderr().is_terminal(), total: total.max(1), done: 0 }
    }

    /// The next step begins: says which it is.
    pub fn step(&mut self, text: &str) {
        if self.watched {
            let full = BAR * self.done.min(self.total) / self.total;
            let (bar, rest) = ("=".repeat(full), " ".repeat(BAR - full));
            let percent = 100 * self.done.min(self.total) / self.total;
            let _ = write!(
                anstream::stderr(),
                "\r\x1b[2K{DIM}[{bar}{rest}] {percent:3} %  {text}{DIM:#}"
            );
        }
        self.done += 1;
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if self.watched {
            let _ = write!(anstream::stderr(), "\r\x1b[2K");
        }
    }
}
