//! `tenon ext new`.

use std::process::ExitCode;

use serde_json::json;
use tenon_host::discovery::Scope;
use tenon_host::scaffold::scaffold;

use crate::args::Args;
use crate::args::NewArgs;
use crate::error::CliError;
use crate::output;
use crate::output::BOLD;
use crate::output::CYAN;
use crate::output::DIM;
use crate::output::GREEN;
use crate::workspace::Workspace;

pub fn run(args: &Args, new: &NewArgs) -> Result<ExitCode, CliError> {
    let workspace = Workspace::of(args)?;
    let (scope, parent) = if new.user {
        (Scope::User, workspace.user_extensions())
    } else {
        (Scope::Project, workspace.project_extensions())
    };
    let made = scaffold(&parent, &new.name, new.kind, new.description.as_deref())
        .map_err(|error| CliError::new(error.to_string()))?;
    workspace.approve_own(scope, &made.folder, &made.hash);
    let id = format!("{scope}:{}", new.name);
    if args.json {
        output::json(&json!({
            "id": id,
            "folder": made.folder,
            "entry": made.entry,
            "tool": made.tool,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(format_args!("{GREEN}made{GREEN:#} {BOLD}{id}{BOLD:#}"));
    output::line(format_args!("  {}", made.entry.display()));
    output::line(format_args!("{BOLD}Next{BOLD:#}"));
    let step = |command: String, what: &str| {
        output::line(format_args!("  {CYAN}{command:<34}{CYAN:#}  {DIM}{what}{DIM:#}"));
    };
    if scope == Scope::Project && !workspace.is_trusted(args) {
        step("tenon trust".to_owned(), "let this repository's extensions run");
    }
    step(format!("tenon ext check {}", new.name), "load it once and see what is wrong");
    if let Some(tool) = &made.tool {
        step(format!("tenon call {tool}"), "call its tool");
    }
    Ok(ExitCode::SUCCESS)
}
