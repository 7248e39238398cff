//! What is on the terminal: the conversation, a line that says what is going on, and dialogs, one at a time.
//!
//! The conversation goes to standard output, which may be a file; everything that is there for a moment goes
//! to standard error.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::io::Write;

use anstyle::Style;
use parking_lot::Mutex;
use parking_lot::MutexGuard;

use crate::output;
use crate::output::DIM;

/// The most text that waits while a dialog is open, in bytes. What is longer is printed at once: better
/// between than lost.
const MAX_HELD: usize = 4 * 1024 * 1024;

/// What a terminal is taken for that does not say how large it is: columns and rows.
const USUAL_SIZE: (usize, usize) = (80, 24);

/// Goes to the beginning of the line and clears it.
const CLEAR_LINE: &str = "\r\x1b[2K";

static SCREEN: Mutex<Screen> = Mutex::new(Screen { in_line: false, status: false, held: None });

struct Screen {
    /// The last line that was printed has not ended.
    in_line: bool,
    /// A line says what is going on.
    status: bool,
    /// What is printed when the dialog is over; none without one.
    held: Option<String>,
}

fn lock() -> MutexGuard<'static, Screen> {
    SCREEN.lock()
}

/// Whether somebody is there who can be asked: standard input and error are a terminal that can move its
/// cursor.
pub fn is_interactive() -> bool {
    let moves = std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    moves && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Whether what is there for a moment may have colours.
pub fn colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The size of the terminal: columns and rows.
pub fn size() -> (usize, usize) {
    let Ok(size) = rustix::termios::tcgetwinsize(std::io::stderr()) else { return USUAL_SIZE };
    let or = |number: u16, usual: usize| if number > 0 { number.into() } else { usual };
    (or(size.ws_col, USUAL_SIZE.0), or(size.ws_row, USUAL_SIZE.1))
}

/// Prints a part of the conversation; later, while a dialog is open. An error if nobody reads it.
pub fn print(text: &str) -> std::io::Result<()> {
    let mut screen = lock();
    match screen.unless_held(text) {
        Some(text) => screen.print(&text),
        None => Ok(()),
    }
}

/// Shows what is going on, in a line that goes away when something is printed. Only where that does not
/// break into a line.
pub fn status(text: &str) {
    let mut screen = lock();
    if screen.held.is_some() || screen.in_line {
        return;
    }
    screen.status = true;
    let text: String = text.chars().take(size().0.saturating_sub(1)).collect();
    let style = if colours() { DIM } else { Style::new() };
    write(&format!("{CLEAR_LINE}{style}{text}{style:#}"));
}

/// Nothing is going on any more.
pub fn clear_status() {
    lock().clear_status();
}

/// Ends the line that is open, if one is, so that something can be drawn below it.
pub fn begin_line() {
    let mut screen = lock();
    screen.clear_status();
    if screen.in_line {
        // Whoever prints next notices that nobody reads it.
        let _ = screen.print("\n");
    }
}

/// Writes something for the moment: a dialog, or what somebody types.
pub fn write(text: &str) {
    // A terminal that is gone shows nothing.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Keeps back what is printed until the guard is dropped. The cursor is at the beginning of a line.
pub fn hold() -> Hold {
    begin_line();
    lock().held.get_or_insert_default();
    Hold(())
}

/// A dialog is open.
pub struct Hold(());

impl Drop for Hold {
    fn drop(&mut self) {
        let mut screen = lock();
        if let Some(text) = screen.held.take() {
            // Whoever prints next notices that nobody reads it.
            let _ = screen.print(&text);
        }
    }
}

impl Screen {
    /// What is to be printed now: the text, unless it is kept back.
    fn unless_held<'a>(&mut self, text: &'a str) -> Option<Cow<'a, str>> {
        let Some(held) = &mut self.held else { return Some(text.into()) };
        held.push_str(text);
        (held.len() > MAX_HELD).then(|| std::mem::take(held).into())
    }

    fn print(&mut self, text: &str) -> std::io::Result<()> {
        let Some(last) = text.chars().next_back() else { return Ok(()) };
        self.clear_status();
        self.in_line = last != '\n';
        output::stream(text)
    }

    fn clear_status(&mut self) {
        if std::mem::take(&mut self.status) {
            write(CLEAR_LINE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_while_a_dialog_is_open_waits_unless_it_is_too_much() {
        let mut screen = Screen { in_line: false, status: false, held: None };
        assert_eq!(screen.unless_held("now").as_deref(), Some("now"));
        screen.held = Some(String::new());
        assert_eq!(screen.unless_held("later"), None);
        let long = "x".repeat(MAX_HELD);
        let printed = screen.unless_held(&long).unwrap();
        assert!(printed.starts_with("laterx") && printed.len() == MAX_HELD + 5);
        assert_eq!(screen.held.as_deref(), Some(""));
    }
}
