//! `tenon ext list` and `tenon ext inspect`.

use std::process::ExitCode;

use anstyle::Style;
use tenon_host::ExtensionInfo;
use tenon_host::LoadError;
use tenon_host::LogLine;
use tenon_host::Session;
use tenon_host::Status;
use tenon_host::isolate::message::LogLevel;
use tenon_host::session::EndReason;

use crate::args::Args;
use crate::args::ExtCommand;
use crate::error::CliError;
use crate::output;
use crate::output::BOLD;
use crate::output::CYAN;
use crate::output::DIM;
use crate::output::GREEN;
use crate::output::RED;
use crate::output::Table;
use crate::output::YELLOW;
use crate::workspace;

/// The newest log lines that `inspect` shows.
const LOG_TAIL: usize = 20;

pub async fn run(args: &Args, command: &ExtCommand) -> Result<ExitCode, CliError> {
    let session = workspace::load(args).await?;
    // Their last words belong into the log that is shown.
    session.end(EndReason::Complete).await;
    match command {
        ExtCommand::List => list(args, &session),
        ExtCommand::Inspect { name } => inspect(args, &session, name),
    }
}

fn list(args: &Args, session: &Session) -> Result<ExitCode, CliError> {
    let extensions = session.list();
    if args.json {
        output::json(&extensions)?;
        return Ok(ExitCode::SUCCESS);
    }
    if extensions.is_empty() {
        return Err(workspace::nothing_found(session));
    }
    let mut table = Table::new(&["ID", "STATUS", "TOOLS", "ALSO"]);
    for info in &extensions {
        let tools: Vec<&str> = info.tools.iter().map(|tool| tool.name.as_str()).collect();
        table.row(vec![
            (info.id.clone(), BOLD),
            (info.status.to_string(), status_style(info.status)),
            (if tools.is_empty() { "-".into() } else { tools.join(", ") }, Style::new()),
            (also(info), DIM),
        ]);
    }
    table.print();
    for info in &extensions {
        if let Some(error) = &info.error {
            output::line("");
            output::line(format_args!("{BOLD}{}{BOLD:#} {}", info.id, info.status));
            print_error(error, "  ");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Hooks, commands and canvases in a few words.
fn also(info: &ExtensionInfo) -> String {
    let count = |number: usize, one: &str, many: &str| match number {
        0 => None,
        1 => Some(format!("1 {one}")),
        number => Some(format!("{number} {many}")),
    };
    let parts = [
        count(info.hooks.len(), "hook", "hooks"),
        count(info.commands.len(), "command", "commands"),
        count(info.canvases.len(), "canvas", "canvases"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn inspect(args: &Args, session: &Session, name: &str) -> Result<ExitCode, CliError> {
    let found = session.find(name);
    let info = match found.as_slice() {
        [info] => info,
        [] => {
            let ids: Vec<_> = session.list().into_iter().map(|info| info.id).collect();
            if ids.is_empty() {
                return Err(workspace::nothing_found(session));
            }
            return Err(CliError::new(format!("there is no extension \"{name}\""))
                .hint(format!("there are: {}", ids.join(", "))));
        }
        several => {
            let ids: Vec<_> = several.iter().map(|info| info.id.as_str()).collect();
            return Err(CliError::new(format!("several extensions are called \"{name}\""))
                .hint(format!("use the id: {}", ids.join(", "))));
        }
    };
    let log = session.log(info);
    if args.json {
        let mut value = serde_json::to_value(info)?;
        value["log"] = serde_json::to_value(&log)?;
        output::json(&value)?;
        return Ok(ExitCode::SUCCESS);
    }
    print_info(info);
    print_log(&log);
    Ok(ExitCode::SUCCESS)
}

fn print_info(info: &ExtensionInfo) {
    let style = status_style(info.status);
    output::line(format_args!("{BOLD}{}{BOLD:#}  {style}{}{style:#}", info.id, info.status));
    output::line(format_args!("  path        {}", info.path.display()));
    output::line(format_args!("  generation  {}", info.generation));
    if let Some(hash) = &info.hash {
        output::line(format_args!("  hash        {}", &hash[..12]));
    }
    if let Some(ready) = info.ready {
        let cpu = ready.cpu_us as f64 / 1000.0;
        output::line(format_args!("  ready       {cpu:.1} ms of CPU on {}", info.engine));
    }
    if let Some(error) = &info.error {
        output::line(format_args!("{BOLD}Error{BOLD:#}"));
        print_error(error, "  ");
        if let Some(stack) = &error.what.stack {
            output::line(format_args!("{BOLD}Stack{BOLD:#}"));
            stack
                .lines()
                .for_each(|frame| output::line(format_args!("  {DIM}{}{DIM:#}", frame.trim())));
        }
    }
    if !info.tools.is_empty() {
        output::line(format_args!("{BOLD}Tools{BOLD:#}"));
        for tool in &info.tools {
            output::line(format_args!("  {CYAN}{}{CYAN:#}  {}", tool.name, tool.description));
        }
    }
    if !info.hooks.is_empty() {
        output::line(format_args!("{BOLD}Hooks{BOLD:#}"));
        let hooks: Vec<_> = info.hooks.iter().map(|hook| hook.name.as_str()).collect();
        output::line(format_args!("  {}", hooks.join(", ")));
    }
    if !info.commands.is_empty() {
        output::line(format_args!("{BOLD}Commands{BOLD:#}"));
        for command in &info.commands {
            output::line(format_args!(
                "  {CYAN}/{}{CYAN:#}  {}",
                command.name, command.description
            ));
        }
    }
    if !info.canvases.is_empty() {
        output::line(format_args!("{BOLD}Canvases{BOLD:#}"));
        for canvas in &info.canvases {
            output::line(format_args!("  {CYAN}{}{CYAN:#}  {}", canvas.id, canvas.description));
        }
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
            output::line(format_args!("  {style}{text}{style:#}"));
        }
    }
}

/// An error with its place and the line it points at.
pub fn print_error(error: &LoadError, indent: &str) {
    let what = &error.what;
    for text in what.message.lines() {
        output::line(format_args!("{indent}{RED}{text}{RED:#}"));
    }
    if let (Some(file), Some(line), Some(column)) = (&what.file, what.line, what.column) {
        output::line(format_args!("{indent}{DIM}-->{DIM:#} {CYAN}{file}:{line}:{column}{CYAN:#}"));
        if let Some(source) = &what.source_line {
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
        output::line(format_args!("{indent}{GREEN}hint{GREEN:#}: {hint}"));
    }
}

fn status_style(status: Status) -> Style {
    match status {
        Status::Running => GREEN,
        Status::Failed => RED,
        Status::Starting | Status::Untrusted | Status::Shadowed => YELLOW,
    }
}
