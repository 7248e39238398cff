//! `tenon trust`: which repositories' extensions may run.

use std::path::Path;
use std::process::ExitCode;

use anstyle::Style;
use serde_json::json;
use tenon_host::config::Config;
use tenon_host::control::Request;
use tenon_host::discovery;
use tenon_host::discovery::Scope;
use tenon_host::trust::TrustStore;

use crate::args::Args;
use crate::args::TrustArgs;
use crate::commands::ext::tell::tell;
use crate::error::CliError;
use crate::output;
use crate::output::BOLD;
use crate::output::DIM;
use crate::output::GREEN;
use crate::output::Table;
use crate::output::YELLOW;
use crate::workspace::Workspace;
use crate::workspace::directory;
use crate::workspace::shown;

pub async fn run(args: &Args, trust: &TrustArgs) -> Result<ExitCode, CliError> {
    let mut workspace = Workspace::of(args)?;
    let store = TrustStore::of(&workspace.home);
    if trust.list {
        return list(args, &store);
    }
    if trust.revoke {
        let path = trust.path.as_deref().unwrap_or(&workspace.cwd);
        return revoke(args, &store, path);
    }
    if let Some(path) = &trust.path {
        workspace.cwd = directory("PATH", path)?;
    }
    match &trust.review {
        Some(name) => review(args, &workspace, &store, name).await,
        None => give(args, &workspace, &store),
    }
}

fn give(args: &Args, workspace: &Workspace, store: &TrustStore) -> Result<ExitCode, CliError> {
    let root = workspace.root();
    store.trust(root).map_err(failed)?;
    let found = workspace.found().into_iter().filter(|found| found.scope == Scope::Project);
    let names: Vec<_> = found.map(|found| found.name).collect();
    if args.json {
        output::json(&json!({ "folder": root, "trusted": true, "extensions": names }))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(format_args!("{GREEN}trusted{GREEN:#} {BOLD}{}{BOLD:#}", shown(root)));
    if names.is_empty() {
        output::line(format_args!("  {DIM}it has no extensions yet{DIM:#}"));
    } else {
        output::line(format_args!("  its extensions may run: {}", names.join(", ")));
    }
    Ok(ExitCode::SUCCESS)
}

fn revoke(args: &Args, store: &TrustStore, path: &Path) -> Result<ExitCode, CliError> {
    // It need not be there any more.
    let path = match std::fs::canonicalize(path) {
        Ok(path) => path,
        Err(_) => std::path::absolute(path)?,
    };
    let root = discovery::project_root(&path);
    let was = store.revoke(root).map_err(failed)?;
    if args.json {
        output::json(&json!({ "folder": root, "trusted": false, "was_trusted": was }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let said = if was { "no longer trusted" } else { "was not trusted" };
    output::line(format_args!("{YELLOW}{said}{YELLOW:#} {BOLD}{}{BOLD:#}", shown(root)));
    Ok(ExitCode::SUCCESS)
}

fn list(args: &Args, store: &TrustStore) -> Result<ExitCode, CliError> {
    let folders = store.list().map_err(failed)?;
    if args.json {
        output::json(&folders)?;
        return Ok(ExitCode::SUCCESS);
    }
    if folders.is_empty() {
        output::line(format_args!("{DIM}no repository is trusted{DIM:#}"));
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["FOLDER", "SINCE", "NOTE"]);
    for folder in folders {
        let note = if folder.is_there { "" } else { "gone, or another one now" };
        table.row(vec![
            (shown(&folder.path), BOLD),
            (folder.trusted_at, Style::new()),
            (note.to_owned(), YELLOW),
        ]);
    }
    table.print();
    Ok(ExitCode::SUCCESS)
}

async fn review(
    args: &Args,
    workspace: &Workspace,
    store: &TrustStore,
    name: &str,
) -> Result<ExitCode, CliError> {
    let found = workspace.pick(name)?;
    let hash = store.content_to_review(&found.folder).map_err(|error| {
        CliError::new(format!("{} cannot be read: {error}", found.folder.display()))
    })?;
    let known = store.is_reviewed(&found.folder, &hash);
    let waited = store.held(&found.folder).map_err(failed)?.is_some();
    store.review(&found.folder, &hash).map_err(failed)?;
    // A session in which it waits loads it now.
    let told = tell(workspace.live_with(found.scope).await, &Request::Refresh).await;
    if args.json {
        output::json(&json!({
            "id": found.id(),
            "folder": found.folder,
            "hash": hash,
            "was_reviewed": known,
            "waited": waited,
            "sessions": told,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(format_args!(
        "{GREEN}reviewed{GREEN:#} {BOLD}{}{BOLD:#} {DIM}as it is now, {}{DIM:#}",
        found.id(),
        &hash[..12]
    ));
    output::line(format_args!("  {}", shown(&found.folder)));
    told.iter().for_each(|one| output::line(format_args!("  {}", one.heading())));
    if !waited && !Config::read(&workspace.home).is_ok_and(|config| config.trust.review) {
        output::line(format_args!(
            "  {DIM}it counts where a restricted extension runs, and everywhere once config.toml says{DIM:#} \
             [trust] review = true"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn failed(error: impl std::fmt::Display) -> CliError {
    CliError::new(error.to_string())
}
