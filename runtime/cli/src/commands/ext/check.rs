//! `tenon ext check`: every extension loaded once, and what is wrong as a linter says it.

use std::path::Path;
use std::path::PathBuf;
use std::pin::pin;
use std::process::ExitCode;

use serde::Serialize;
use tenon_host::LoadError;
use tenon_host::Session;
use tenon_host::discovery::ENTRY_FILES;
use tenon_host::discovery::Found;
use tenon_host::discovery::Scope;
use tenon_host::manage::CheckReport;
use tenon_host::session::EndReason;

use crate::args::Args;
use crate::args::CheckArgs;
use crate::error::CliError;
use crate::output;
use crate::output::BOLD;
use crate::output::GREEN;
use crate::output::Progress;
use crate::output::RED;
use crate::output::YELLOW;
use crate::output::count;
use crate::sanitise::clean;
use crate::workspace;
use crate::workspace::Workspace;

/// What is to be checked.
struct Target {
    /// Its id, or the path that was given.
    name: String,
    folder: PathBuf,
    /// Why it cannot even be loaded.
    obstacle: Option<LoadError>,
}

/// What was found out about one extension.
#[derive(Debug, Serialize)]
struct Checked {
    name: String,
    folder: PathBuf,
    #[serde(flatten)]
    report: CheckReport,
}

pub async fn run(args: &Args, check: &CheckArgs) -> Result<ExitCode, CliError> {
    let workspace = Workspace::of(args)?;
    let targets = targets(args, &workspace, &check.targets)?;
    let session = workspace.throw_away()?;
    let checked = check_all(&session, targets).await;
    session.end(EndReason::Complete).await;
    let checked = checked?;
    let errors = checked.iter().filter(|one| !one.report.ok).count();
    let warnings = checked.iter().map(|one| one.report.warnings.len()).sum();
    if args.json {
        output::json(&checked)?;
    } else {
        checked.iter().for_each(|one| print(one, &workspace.cwd));
        summarise(checked.len(), errors, warnings);
    }
    let wrong = errors > 0 || (check.strict && warnings > 0);
    Ok(if wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What the command line names: extensions that are found, or folders; without names, all that are found.
fn targets(args: &Args, workspace: &Workspace, names: &[String]) -> Result<Vec<Target>, CliError> {
    let found = workspace.found();
    if found.is_empty() && names.is_empty() {
        return Err(workspace.nothing_found());
    }
    let mut picked = Vec::new();
    let mut targets = Vec::new();
    for name in names {
        let is_known = found.iter().any(|found| found.name == *name || found.id() == *name);
        match folder_of(Path::new(name)) {
            Some(folder) if !is_known => {
                targets.push(Target { name: name.clone(), folder, obstacle: None });
            }
            _ => picked.push(workspace.pick(name)?),
        }
    }
    let picked = if names.is_empty() { found } else { picked };
    let is_project = |found: &Found| found.scope == Scope::Project;
    let trusted = picked.iter().any(is_project) && workspace.trusted_or_asked(args)?;
    targets.extend(picked.into_iter().map(|found| of_found(found, trusted)));
    Ok(targets)
}

/// The folder a path means: itself, or that of an entry file.
fn folder_of(path: &Path) -> Option<PathBuf> {
    let path = std::fs::canonicalize(path).ok()?;
    if path.is_dir() { Some(path) } else { path.parent().map(Path::to_owned) }
}

/// An extension that was found. Code of a repository that nobody trusts does not run, not even to be
/// checked; whoever names its folder has decided.
fn of_found(found: Found, trusted: bool) -> Target {
    let obstacle = match &found.entry {
        Err(reason) => Some(LoadError::new(reason, None)),
        Ok(_) if found.scope == Scope::Project && !trusted => Some(LoadError::new(
            "it was not loaded: this workspace is not trusted",
            "tenon trust lets the extensions of this repository run".to_owned(),
        )),
        Ok(_) => None,
    };
    Target { name: found.id(), folder: found.folder, obstacle }
}

async fn check_all(session: &Session, targets: Vec<Target>) -> Result<Vec<Checked>, CliError> {
    let _progress = Progress::start("checking ...");
    let mut stop = pin!(workspace::interruption());
    let mut all = Vec::new();
    for target in targets {
        all.push(tokio::select! {
            checked = examine(session, target) => checked,
            () = &mut stop => return Err(CliError::new("interrupted")),
        });
    }
    Ok(all)
}

async fn examine(session: &Session, target: Target) -> Checked {
    let Target { name, folder, obstacle } = target;
    let report = match obstacle {
        Some(error) => CheckReport { error: Some(error), ..CheckReport::default() },
        None => session.check(&folder).await,
    };
    Checked { name, folder, report }
}

fn print(checked: &Checked, cwd: &Path) {
    let entry = ENTRY_FILES.iter().map(|name| checked.folder.join(name)).find(|file| file.exists());
    let entry = entry.unwrap_or_else(|| checked.folder.clone());
    let shown = |path: &Path| path.strip_prefix(cwd).unwrap_or(path).display().to_string();
    match &checked.report.error {
        Some(error) => {
            let what = &error.what;
            let mut place = what.file.as_ref().map_or(shown(&entry), |file| shown(Path::new(file)));
            if let (Some(line), Some(column)) = (what.line, what.column) {
                place += &format!(":{line}:{column}");
            }
            problem(&place, "error", RED, &what.message);
            if let Some(hint) = &error.hint {
                problem(&place, "hint", GREEN, hint);
            }
        }
        None if !checked.report.ok => problem(&shown(&entry), "error", RED, "it does not load"),
        None => {}
    }
    for warning in &checked.report.warnings {
        problem(&shown(&entry), "warning", YELLOW, warning);
    }
}

/// One problem; what its text goes on with is indented, so that every line at the left is a problem.
fn problem(place: &str, kind: &str, style: anstyle::Style, text: &str) {
    let text = clean(text);
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    output::line(format_args!("{BOLD}{place}:{BOLD:#} {style}{kind}{style:#}: {first}"));
    lines.for_each(|line| output::line(format_args!("    {line}")));
}

fn summarise(number: usize, errors: usize, warnings: usize) {
    let checked = count(number, "extension checked", "extensions checked");
    if errors == 0 && warnings == 0 {
        output::line(format_args!("{checked}, {GREEN}nothing wrong{GREEN:#}"));
        return;
    }
    let (red, yellow) = (
        if errors > 0 { RED } else { anstyle::Style::new() },
        if warnings > 0 { YELLOW } else { anstyle::Style::new() },
    );
    output::line(format_args!(
        "{checked}: {red}{}{red:#}, {yellow}{}{yellow:#}",
        count(errors, "error", "errors"),
        count(warnings, "warning", "warnings")
    ));
}
