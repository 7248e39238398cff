//! Colours, tables and JSON on standard output.

use std::fs::File;
use std::io::IsTerminal;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::sync::Mutex;
use std::sync::OnceLock;

use anstream::AutoStream;
use anstyle::AnsiColor;
use anstyle::Style;
use serde::Serialize;

use crate::error::CliError;

pub const BOLD: Style = Style::new().bold();
pub const DIM: Style = Style::new().dimmed();
pub const RED: Style = AnsiColor::Red.on_default().bold();
pub const GREEN: Style = AnsiColor::Green.on_default().bold();
pub const YELLOW: Style = AnsiColor::Yellow.on_default();
pub const CYAN: Style = AnsiColor::Cyan.on_default();

/// Standard output, once it is ours alone.
static OUT: OnceLock<Mutex<AutoStream<File>>> = OnceLock::new();

/// Keeps standard output for this module: file descriptor 1 leads nowhere afterwards, so that nothing an
/// extension or a process it starts does with the number, or with `/dev/stdout`, is read as our output.
pub fn claim_stdout() -> std::io::Result<()> {
    let own = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    let nowhere = File::options().write(true).open("/dev/null")?;
    // SAFETY: both numbers are open files of this process; dup2 touches no memory.
    if unsafe { libc::dup2(nowhere.as_raw_fd(), libc::STDOUT_FILENO) } < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // Claimed once, at the start of the program.
    let _ = OUT.set(Mutex::new(AutoStream::auto(own)));
    Ok(())
}

/// Writes to standard output. A reader that has gone away is not an error.
fn write(text: std::fmt::Arguments<'_>) {
    let _ = match OUT.get().and_then(|out| out.lock().ok()) {
        Some(mut out) => out.write_fmt(text),
        None => anstream::stdout().write_fmt(text),
    };
}

/// Prints a line.
pub fn line(text: impl std::fmt::Display) {
    write(format_args!("{text}\n"));
}

/// Prints a value as JSON.
pub fn json(value: &impl Serialize) -> Result<(), CliError> {
    line(serde_json::to_string_pretty(value)?);
    Ok(())
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
        line(header.join("  "));
        for row in &self.rows {
            let cells: Vec<_> =
                row.iter().enumerate().map(|(i, (text, style))| pad(text, i, *style)).collect();
            line(cells.join("  "));
        }
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
