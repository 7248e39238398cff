//! `tenon ext remove`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use std::time::Instant;

use serde_json::json;
use tenon_host::approvals;
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
use crate::sanitise::one_line;
use crate::workspace::Workspace;
use crate::workspace::shown;

/// How much of where an extension came from is shown, in characters: addresses are shorter.
const SOURCE_CHARS: usize = 300;

/// How long live sessions have to let go of it. They finish their calls first; what takes longer than this
/// may leave a log with its last words.
const LET_GO: Duration = Duration::from_secs(30);

/// How often they are asked, and how long last words are on their way to the log.
const ASK_EVERY: Duration = Duration::from_millis(200);

pub async fn run(args: &Args, name: &str, yes: bool) -> Result<ExitCode, CliError> {
    let workspace = Workspace::of(args)?;
    let found = workspace.pick(name)?;
    if !matches!(found.scope, Scope::User | Scope::Project) {
        return Err(CliError::new(format!("{} is not removed by this command", found.id()))
            .hint(format!("delete {} yourself", found.folder.display())));
    }
    let belongings = belongings(&workspace, &found);
    if !yes {
        confirm(&found, &belongings)?;
    }
    let real = std::fs::canonicalize(&found.folder);
    // One that comes to that place later is another extension: it asks for secrets itself, and is not
    // switched off. Secrets first: if they cannot be forgotten, nothing has happened yet.
    let forgotten =
        approvals::forget_secrets(&workspace.home, found.scope, &found.name, &found.folder)
            .map_err(|error| CliError::new(error.to_string()))?;
    install::remove(&found.folder).map_err(|error| CliError::new(error.to_string()))?;
    if let Ok(real) = real {
        let _ = Switches::of(&workspace.home).switch_on(&real);
    }
    let told = tell(workspace.live_with(found.scope).await, &Request::Refresh).await;
    if !(told.is_empty() || belongings.is_empty()) {
        let_go(&workspace, &found).await;
    }
    install::delete_belongings(&belongings).map_err(|error| {
        CliError::new(format!("{} was removed, but not what it has kept: {error}", found.id()))
            .hint("delete it yourself")
    })?;
    if args.json {
        output::json(&json!({
            "id": found.id(),
            "removed": found.folder,
            "also_removed": belongings,
            "secrets_forgotten": forgotten,
            "sessions": told,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(format_args!("{GREEN}removed{GREEN:#} {BOLD}{}{BOLD:#}", found.id()));
    for path in [&found.folder].into_iter().chain(&belongings) {
        output::line(format_args!("  {}", shown(path)));
    }
    if forgotten {
        output::line(format_args!("  {DIM}the secrets that it was given are forgotten{DIM:#}"));
    }
    told.iter().for_each(|one| output::line(format_args!("  {}", one.heading())));
    Ok(ExitCode::SUCCESS)
}

/// What goes with the extension: its data and its logs. The user has two folders, and two extensions of one
/// name in them share these; they stay as long as one of the two does.
fn belongings(workspace: &Workspace, found: &Found) -> Vec<PathBuf> {
    let shares = |other: &Found| other.id() == found.id() && other.folder != found.folder;
    if workspace.found().iter().any(shares) {
        return Vec::new();
    }
    install::belongings(&workspace.home, workspace.root(), found)
}

/// Waits until no live session has the extension any more: while it ends it still writes.
async fn let_go(workspace: &Workspace, found: &Found) {
    let begun = Instant::now();
    while begun.elapsed() < LET_GO {
        let is_loaded = is_loaded(workspace, found).await;
        tokio::time::sleep(ASK_EVERY).await;
        if !is_loaded {
            return;
        }
    }
}

async fn is_loaded(workspace: &Workspace, found: &Found) -> bool {
    for live in workspace.live_with(found.scope).await {
        // One that does not answer has nothing to say about it.
        let list = live.ask(&Request::List).await.unwrap_or_default();
        let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
        if list.iter().any(|extension| extension["id"] == found.id()) {
            return true;
        }
    }
    false
}

/// Shows what will be gone, and asks.
fn confirm(found: &Found, belongings: &[PathBuf]) -> Result<(), CliError> {
    let is_link = std::fs::symlink_metadata(&found.folder).is_ok_and(|file| file.is_symlink());
    let what = if is_link { "the link" } else { "the folder with everything in it" };
    let mut more = match install::record(&found.folder) {
        Some(record) => {
            format!("\n{DIM}installed from {}{DIM:#}", one_line(&record.source, SOURCE_CHARS))
        }
        None => String::new(),
    };
    for path in belongings {
        more += &format!("\nand what it has kept: {}", shown(path));
    }
    let question = format!(
        "{BOLD}{}{BOLD:#}: {what} will be deleted: {}{more}\nDelete it?",
        found.id(),
        shown(&found.folder)
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
