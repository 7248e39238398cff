//! What Tenon itself does, and how long it takes: the log of `tenon acp`, and `TENON_LOG` for every command.
//!
//! Names, numbers and times are written, never what people, agents and extensions say to each other.

use std::io::IsTerminal;
use std::io::Write;
use std::path::PathBuf;
use std::sync::OnceLock;

use tenon_host::LogLine;
use tenon_host::log_files::LogFiles;
use tenon_host::protocol::message::LogLevel;
use tracing::Level;
use tracing::Metadata;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::Args;
use crate::args::Command;
use crate::error::CliError;
use crate::workspace;

/// What is to be written: a level for everything (`debug`), or levels for parts (`tenon_host=trace,tenon_acp=info`).
pub const VARIABLE: &str = "TENON_LOG";

/// What the names of all parts begin with. Libraries have others; some of them write whole messages.
const PREFIX: &str = "tenon";

/// The log of `tenon acp`, whose standard error is often seen by nobody.
const NAME_OF_ACP: &str = "tenon-acp";

/// What is still to be written at the end.
static FILES: OnceLock<LogFiles> = OnceLock::new();

/// Starts writing if it is wanted.
pub fn start(args: &Args) -> Result<(), CliError> {
    let wanted = std::env::var(VARIABLE).unwrap_or_default();
    let is_acp = matches!(args.command, Some(Command::Acp(_)));
    if wanted.is_empty() && !is_acp {
        return Ok(());
    }
    let filter = if wanted.is_empty() { all_of(LevelFilter::INFO) } else { parse(&wanted)? };
    // A span is written when it ends, with the time that it took.
    let layer = fmt::layer().with_span_events(FmtSpan::CLOSE);
    if is_acp {
        let home = workspace::home(args)?;
        let files = FILES.get_or_init(|| LogFiles::new(&home));
        let file = ToFile { files, path: files.file_of_program(NAME_OF_ACP) };
        // The file has its own columns for time and level.
        let layer = layer.with_ansi(false).without_time().with_level(false).with_writer(file);
        tracing_subscriber::registry().with(layer.with_filter(filter)).init();
    } else {
        let layer = layer.with_ansi(std::io::stderr().is_terminal()).with_writer(std::io::stderr);
        tracing_subscriber::registry().with(layer.with_filter(filter)).init();
    }
    Ok(())
}

/// Waits until everything is written.
pub fn finish() {
    if let Some(files) = FILES.get() {
        files.flush();
    }
}

fn all_of(level: LevelFilter) -> Targets {
    Targets::new().with_target(PREFIX, level)
}

fn parse(text: &str) -> Result<Targets, CliError> {
    if let Ok(level) = text.parse::<LevelFilter>() {
        return Ok(all_of(level));
    }
    let wrong = |why: String| {
        CliError::new(format!("{VARIABLE}={text}: {why}"))
            .hint("it takes a level (error, warn, info, debug, trace), or PART=LEVEL,... as in tenon_host=debug")
    };
    let targets: Targets = text.parse().map_err(|error| wrong(format!("{error}")))?;
    if let Some((target, _)) = targets.iter().find(|(target, _)| !target.starts_with(PREFIX)) {
        return Err(wrong(format!("\"{target}\" is no part of Tenon")));
    }
    Ok(targets)
}

/// Writes lines to a log file.
struct ToFile {
    files: &'static LogFiles,
    path: PathBuf,
}

/// One line on its way to a file.
struct Entry<'a> {
    to: &'a ToFile,
    level: LogLevel,
}

impl<'a> MakeWriter<'a> for ToFile {
    type Writer = Entry<'a>;

    fn make_writer(&'a self) -> Entry<'a> {
        Entry { to: self, level: LogLevel::Info }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Entry<'a> {
        let level = match *metadata.level() {
            Level::ERROR => LogLevel::Error,
            Level::WARN => LogLevel::Warning,
            _ => LogLevel::Info,
        };
        Entry { to: self, level }
    }
}

impl Write for Entry<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(bytes).trim().to_owned();
        let timestamp = chrono::Utc::now().timestamp_millis().unsigned_abs();
        self.to.files.write(&self.to.path, &LogLine { timestamp, level: self.level, text });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_for_all_parts_of_tenon_and_for_nothing_else() {
        let targets = parse("debug").unwrap();
        assert!(targets.would_enable("tenon_host::session", &Level::DEBUG));
        assert!(!targets.would_enable("tenon_host::session", &Level::TRACE));
        assert!(!targets.would_enable("rmcp::service", &Level::ERROR));
    }

    #[test]
    fn parts_have_levels_of_their_own() {
        let targets = parse("tenon_host=trace,tenon_acp=info").unwrap();
        assert!(targets.would_enable("tenon_host::hooks", &Level::TRACE));
        assert!(!targets.would_enable("tenon_acp::process", &Level::DEBUG));
    }

    #[test]
    fn what_is_no_level_and_no_part_of_tenon_is_an_error() {
        for text in ["loud", "hyper=trace", "tenon_host=loud"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
