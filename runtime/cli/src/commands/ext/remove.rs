//! `tenon ext remove`.

use std::process::ExitCode;

use serde_json::json;
use tenon_host::control::Request;
use tenon_host::discovery::Found;
use tenon_host::discovery::Scope;
use tenon_host::install;
use tenon_host::switches::Switches;

use super::tell::tell;
use crate::args::Args;
use crate::error::CliError;
use crate::output;
use crate::output::BOLD;
use crate::output::DIM;
use crate::output::GREEN;
use crate::workspace::Workspace;

pub async fn run(args: &Args, name: &str, yes: bool) -> Result<ExitCode, CliError> {
    let workspace = Workspace::of(args)?;
    let found = workspace.pick(name)?;
    if !matches!(found.scope, Scope::User | Scope::Project) {
        return Err(CliError::new(format!("{} is not removed by this command", found.id()))
            .hint(format!("delete {} yourself", found.folder.display())));
    }
    if !yes {
        confirm(&found)?;
    }
    let real = std::fs::canonicalize(&found.folder);
    install::remove(&found.folder).map_err(|error| CliError::new(error.to_string()))?;
    // One that comes to that place later is another extension, and not switched off.
    if let Ok(real) = real {
        let _ = Switches::of(&workspace.home).switch_on(&real);
    }
    let told = tell(workspace.live_with(found.scope).await, &Request::Refresh).await;
    if args.json {
        output::json(&json!({ "id": found.id(), "removed": found.folder, "sessions": told }))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(format_args!("{GREEN}removed{GREEN:#} {BOLD}{}{BOLD:#}", found.id()));
    output::line(format_args!("  {}", found.folder.display()));
    told.iter().for_each(|one| output::line(format_args!("  {}", one.heading())));
    Ok(ExitCode::SUCCESS)
}

/// Shows what will be gone, and asks.
fn confirm(found: &Found) -> Result<(), CliError> {
    let is_link = std::fs::symlink_metadata(&found.folder).is_ok_and(|file| file.is_symlink());
    let what = if is_link { "the link" } else { "the folder with everything in it" };
    let from = match install::record(&found.folder) {
        Some(record) => format!("\n{DIM}installed from {}{DIM:#}", record.source),
        None => String::new(),
    };
    let question = format!(
        "{BOLD}{}{BOLD:#}: {what} will be deleted: {}{from}\nDelete it?",
        found.id(),
        found.folder.display()
    );
    match output::confirm(&question) {
        Some(true) => Ok(()),
        Some(false) => Err(CliError::new("nothing was removed")),
        None => Err(CliError::new(format!(
            "{what} would be deleted: {}; nobody is there to be asked",
            found.folder.display()
        ))
        .hint("say --yes to delete it")),
    }
}
