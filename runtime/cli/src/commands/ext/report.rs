//! An extension's status and error, as a person reads them.

use anstyle::Style;
use tenon_host::LoadError;
use tenon_host::Status;

use crate::output;
use crate::output::CYAN;
use crate::output::DIM;
use crate::output::GREEN;
use crate::output::RED;
use crate::output::YELLOW;
use crate::sanitise::clean;

/// How a status is shown.
pub fn status_style(status: Status) -> Style {
    match status {
        Status::Running => GREEN,
        Status::Failed => RED,
        Status::Disabled => DIM,
        Status::Starting | Status::Draining | Status::Untrusted | Status::Shadowed => YELLOW,
    }
}

/// An error with its place and the line it points at.
pub fn print_error(error: &LoadError, indent: &str) {
    let what = &error.what;
    for text in clean(&what.message).lines() {
        output::line(format_args!("{indent}{RED}{text}{RED:#}"));
    }
    if let (Some(file), Some(line), Some(column)) = (&what.file, what.line, what.column) {
        output::line(format_args!(
            "{indent}{DIM}-->{DIM:#} {CYAN}{}:{line}:{column}{CYAN:#}",
            clean(file)
        ));
        if let Some(source) = &what.source_line {
            let source = clean(source);
            let number = line.to_string();
            let gutter = " ".repeat(number.len());
            let before: String = source
                .chars()
                .take(column.saturating_sub(1) as usize)
                .map(|c| if c == '\t' { '\t' } else { ' ' })
                .collect();
            output::line(format_args!("{indent}{DIM}{number} |{DIM:#} {source}"));
            output::line(format_args!("{indent}{DIM}{gutter} |{DIM:#} {before}{RED}^{RED:#}"));
        }
    }
    if let Some(hint) = &error.hint {
        output::line(format_args!("{indent}{GREEN}hint{GREEN:#}: {}", clean(hint)));
    }
}
