//! `tenon ext logs`.

use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use anstyle::Style;
use serde_json::json;
use tenon_host::log_files::Follow;
use tenon_host::log_files::LogFiles;
use tenon_host::log_files::tail;

use crate::args::Args;
use crate::args::LogsArgs;
use crate::error::CliError;
use crate::output;
use crate::output::DIM;
use crate::output::RED;
use crate::output::YELLOW;
use crate::sanitise::clean;
use crate::workspace;
use crate::workspace::Workspace;

/// How often a log is looked at for more.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub async fn run(args: &Args, logs: &LogsArgs) -> Result<ExitCode, CliError> {
    let workspace = Workspace::of(args)?;
    let found = workspace.pick(&logs.name)?;
    let file = LogFiles::new(&workspace.home).file_for(found.scope, &found.name, &found.folder);
    if logs.follow {
        return follow(args, &file, logs.lines).await;
    }
    let lines = tail(&file, logs.lines).map_err(|error| unreadable(&file, &error))?;
    if lines.is_empty() && !file.exists() {
        return Err(CliError::new(format!("{} has no log yet", found.id()))
            .hint(format!("it will be in {} once the extension was loaded", file.display())));
    }
    if args.json {
        output::json(&json!({ "id": found.id(), "file": file, "lines": lines }))?;
    } else {
        let mut style = Style::new();
        lines.iter().for_each(|line| output::line(styled(line, &mut style)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what is added until somebody interrupts, or nobody reads it any more.
async fn follow(args: &Args, file: &Path, lines: usize) -> Result<ExitCode, CliError> {
    let mut stop = pin!(workspace::interruption());
    let mut follow = Follow::new(file, lines);
    let mut style = Style::new();
    loop {
        let lines = follow.next_lines().map_err(|error| unreadable(file, &error))?;
        for line in lines {
            let read = if args.json {
                output::stream_line(json!(line))
            } else {
                output::stream_line(styled(&line, &mut style))
            };
            if !read {
                return Ok(ExitCode::SUCCESS);
            }
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = &mut stop => return Ok(ExitCode::SUCCESS),
        }
    }
}

fn unreadable(file: &Path, error: &std::io::Error) -> CliError {
    CliError::new(format!("{} cannot be read: {error}", file.display()))
}

/// A line in the colour of its level. What an entry goes on with has the same.
fn styled(line: &str, style: &mut Style) -> String {
    let line = clean(line);
    if !line.starts_with(' ') {
        *style = match line.split_whitespace().nth(1) {
            Some("WARN") => YELLOW,
            Some("ERROR") => RED,
            _ => Style::new(),
        };
    }
    match line.split_once(' ') {
        Some((time, rest)) if !time.is_empty() => {
            format!("{DIM}{time}{DIM:#} {style}{rest}{style:#}")
        }
        _ => format!("{style}{line}{style:#}"),
    }
}
