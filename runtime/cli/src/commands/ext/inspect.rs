//! `tenon ext inspect`.

use std::path::Path;
use std::process::ExitCode;

use tenon_host::ExtensionInfo;
use tenon_host::LoadError;
use tenon_host::LogLine;
use tenon_host::Session;
use tenon_host::session::EndReason;
use tenon_protocol::message::LogLevel;

use super::report::print_error;
use super::report::status_style;
use crate::args::Args;
use crate::error::CliError;
use crate::output;
use crate::output::BOLD;
use crate::output::CYAN;
use crate::output::DIM;
use crate::output::RED;
use crate::output::YELLOW;
use crate::sanitise::clean;
use crate::workspace;

/// The newest log lines that are shown.
const LOG_TAIL: usize = 20;

/// The most notes about the sandbox that are shown.
const MAX_NOTES: usize = 3;

/// The most files that are shown.
const MAX_FILES: usize = 20;

pub async fn run(args: &Args, name: &str) -> Result<ExitCode, CliError> {
    let session = workspace::load(args).await?;
    // Their last words belong into the log that is shown.
    session.end(EndReason::Complete).await;
    let info = one(&session, name)?;
    let log = session.log(&info);
    if args.json {
        let mut value = serde_json::to_value(&info)?;
        value["log"] = serde_json::to_value(&log)?;
        output::json(&value)?;
        return Ok(ExitCode::SUCCESS);
    }
    print_facts(&info);
    match (&info.error, &info.last_error) {
        (Some(error), _) => print_failure("Error", error),
        (None, Some(error)) => print_failure("Last error", error),
        (None, None) => {}
    }
    print_offers(&info);
    print_files(&info);
    print_limits(&info);
    print_log(&log);
    Ok(ExitCode::SUCCESS)
}

/// The extension with a name or id.
fn one(session: &Session, name: &str) -> Result<ExtensionInfo, CliError> {
    let mut found = session.find(name);
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => {
            let ids: Vec<_> = session.list().into_iter().map(|info| info.id).collect();
            if ids.is_empty() {
                return Err(workspace::nothing_found(session));
            }
            Err(CliError::new(format!("there is no extension \"{name}\""))
                .hint(format!("there are: {}", ids.join(", "))))
        }
        _ => {
            let ids: Vec<_> = found.iter().map(|info| info.id.as_str()).collect();
            Err(CliError::new(format!("several extensions are called \"{name}\""))
                .hint(format!("use the id: {}", ids.join(", "))))
        }
    }
}

fn print_facts(info: &ExtensionInfo) {
    let style = status_style(info.status);
    output::line(format_args!("{BOLD}{}{BOLD:#}  {style}{}{style:#}", info.id, info.status));
    output::line(format_args!("  path        {}", info.path.display()));
    output::line(format_args!("  generation  {}", info.generation));
    if info.failures > 0 {
        output::line(format_args!("  failures    {YELLOW}{}{YELLOW:#}", info.failures));
    }
    if let Some(hash) = &info.hash {
        output::line(format_args!("  hash        {}", &hash[..12]));
    }
    if let Some(ready) = info.ready {
        let cpu = ready.cpu_us as f64 / 1000.0;
        output::line(format_args!("  ready       {cpu:.1} ms of CPU on {}", ready.engine));
    }
    if let Some(layers) = &info.sandbox {
        output::line(format_args!("  sandbox     {layers}"));
        for note in layers.notes.iter().take(MAX_NOTES) {
            output::line(format_args!("              {YELLOW}{note}{YELLOW:#}"));
        }
        if let more @ 1.. = layers.notes.len().saturating_sub(MAX_NOTES) {
            output::line(format_args!(
                "              {DIM}and {more} more (--json lists all){DIM:#}"
            ));
        }
    }
    if let Some(group) = info.sandbox.as_ref().and_then(|layers| layers.control_group) {
        output::line(format_args!("  group       {group}"));
    }
    if let Some(file) = &info.log_file {
        output::line(format_args!("  log file    {}", file.display()));
    }
}

fn print_failure(title: &str, error: &LoadError) {
    output::line(format_args!("{BOLD}{title}{BOLD:#}"));
    print_error(error, "  ");
    if let Some(stack) = &error.what.stack {
        output::line(format_args!("{BOLD}Stack{BOLD:#}"));
        stack
            .lines()
            .for_each(|frame| output::line(format_args!("  {DIM}{}{DIM:#}", clean(frame.trim()))));
    }
}

fn print_offers(info: &ExtensionInfo) {
    let section = |title: &str, rows: Vec<(String, &str)>| {
        if !rows.is_empty() {
            output::line(format_args!("{BOLD}{title}{BOLD:#}"));
        }
        for (name, description) in rows {
            let (name, description) = (clean(&name), clean(description));
            output::line(format_args!("  {CYAN}{name}{CYAN:#}  {description}"));
        }
    };
    let tools = info.tools.iter().map(|tool| (tool.name.clone(), tool.description.as_str()));
    section("Tools", tools.collect());
    if !info.hooks.is_empty() {
        output::line(format_args!("{BOLD}Hooks{BOLD:#}"));
        let hooks: Vec<_> = info.hooks.iter().map(|hook| hook.name.as_str()).collect();
        output::line(format_args!("  {}", hooks.join(", ")));
    }
    let commands = info.commands.iter();
    let commands = commands.map(|one| (format!("/{}", one.name), one.description.as_str()));
    section("Commands", commands.collect());
    let canvases = info.canvases.iter().map(|one| (one.id.clone(), one.description.as_str()));
    section("Canvases", canvases.collect());
}

/// The files it was loaded from, relative to its folder where they are in it.
fn print_files(info: &ExtensionInfo) {
    if info.files.is_empty() {
        return;
    }
    output::line(format_args!("{BOLD}Files{BOLD:#}"));
    let entry = std::fs::canonicalize(&info.path).unwrap_or_else(|_| info.path.clone());
    let folder = entry.parent().unwrap_or(Path::new("/"));
    for file in info.files.iter().take(MAX_FILES) {
        output::line(format_args!("  {}", file.strip_prefix(folder).unwrap_or(file).display()));
    }
    if let more @ 1.. = info.files.len().saturating_sub(MAX_FILES) {
        output::line(format_args!("  {DIM}and {more} more{DIM:#}"));
    }
}

fn print_limits(info: &ExtensionInfo) {
    output::line(format_args!("{BOLD}Limits{BOLD:#}"));
    let rows = info.limits.rows();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in rows {
        output::line(format_args!("  {name:<width$}  {value}"));
    }
}

fn print_log(log: &[LogLine]) {
    if log.is_empty() {
        return;
    }
    output::line(format_args!("{BOLD}Log{BOLD:#}"));
    for entry in &log[log.len().saturating_sub(LOG_TAIL)..] {
        let style = match entry.level {
            LogLevel::Info => DIM,
            LogLevel::Warning => YELLOW,
            LogLevel::Error => RED,
        };
        for text in entry.text.lines() {
            output::line(format_args!("  {style}{}{style:#}", clean(text)));
        }
    }
}
