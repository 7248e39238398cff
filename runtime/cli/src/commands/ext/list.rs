//! `tenon ext list`.

use std::process::ExitCode;

use anstyle::Style;
use tenon_host::ExtensionInfo;
use tenon_host::session::EndReason;

use super::report::print_error;
use super::report::status_style;
use crate::args::Args;
use crate::error::CliError;
use crate::output;
use crate::output::BOLD;
use crate::output::DIM;
use crate::output::Table;
use crate::output::count;
use crate::workspace;

pub async fn run(args: &Args) -> Result<ExitCode, CliError> {
    let session = workspace::load(args).await?;
    session.end(EndReason::Complete).await;
    let extensions = session.list();
    if args.json {
        output::json(&extensions)?;
        return Ok(ExitCode::SUCCESS);
    }
    if extensions.is_empty() {
        return Err(workspace::nothing_found(&session));
    }
    print_list(&extensions);
    Ok(ExitCode::SUCCESS)
}

/// Prints a table of extensions, and below it what is wrong with those that failed.
pub fn print_list(extensions: &[ExtensionInfo]) {
    let mut table = Table::new(&["ID", "STATUS", "TOOLS", "ALSO"]);
    for info in extensions {
        let tools: Vec<&str> = info.tools.iter().map(|tool| tool.name.as_str()).collect();
        table.row(vec![
            (info.id.clone(), BOLD),
            (info.status.to_string(), status_style(info.status)),
            (if tools.is_empty() { "-".into() } else { tools.join(", ") }, Style::new()),
            (also(info), DIM),
        ]);
    }
    table.print();
    for info in extensions {
        if let Some(error) = &info.error {
            let style = status_style(info.status);
            output::line("");
            output::line(format_args!("{BOLD}{}{BOLD:#} {style}{}{style:#}", info.id, info.status));
            print_error(error, "  ");
        }
    }
}

/// Hooks, commands and canvases in a few words.
fn also(info: &ExtensionInfo) -> String {
    let parts = [
        (info.hooks.len(), "hook", "hooks"),
        (info.commands.len(), "command", "commands"),
        (info.canvases.len(), "canvas", "canvases"),
    ];
    let said = parts.into_iter().filter(|(number, ..)| *number > 0);
    said.map(|(number, one, many)| count(number, one, many)).collect::<Vec<_>>().join(", ")
}
