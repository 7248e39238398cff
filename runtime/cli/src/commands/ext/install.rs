//! `tenon ext install`.

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use tenon_host::LoadError;
use tenon_host::Session;
use tenon_host::approvals;
use tenon_host::control::Request;
use tenon_host::discovery::Scope;
use tenon_host::install;
use tenon_host::install::Candidate;
use tenon_host::install::InstallError;
use tenon_host::install::Installed;
use tenon_host::install::Source;
use tenon_host::install::Wanted;
use tenon_host::session::EndReason;
use tokio::runtime::Handle;

use super::tell::tell;
use crate::args::Args;
use crate::args::InstallArgs;
use crate::error::CliError;
use crate::output;
use crate::output::BOLD;
use crate::output::CYAN;
use crate::output::DIM;
use crate::output::GREEN;
use crate::output::Progress;
use crate::output::YELLOW;
use crate::sanitise::clean;
use crate::workspace;
use crate::workspace::Workspace;
use crate::workspace::shown;

pub async fn run(args: &Args, install: &InstallArgs) -> Result<ExitCode, CliError> {
    let workspace = Workspace::of(args)?;
    let (scope, into) = if install.project {
        (Scope::Project, workspace.project_extensions())
    } else {
        (Scope::User, workspace.user_extensions())
    };
    let source = Source::parse(&install.source).map_err(explain)?;
    let session = if install.no_check { None } else { Some(workspace.throw_away()?) };
    let wanted = Wanted {
        source: &source,
        inside: install.path.as_deref(),
        name: install.name.as_deref(),
        into: &into,
        replace: install.replace,
        is_stopped: &workspace::is_interrupted,
    };
    let (mut warnings, mut forgotten) = (Vec::new(), false);
    let installed = {
        let _progress = Progress::start("installing ...");
        let mut validate = |candidate: &Candidate<'_>| {
            if let Some(session) = &session {
                check(session, candidate.files, &mut warnings)?;
            }
            // Before it gets its place, where a live session would load it at once.
            if !candidate.same_source {
                let Candidate { name, folder, .. } = *candidate;
                forgotten = approvals::forget_secrets(&workspace.home, scope, name, folder)
                    .map_err(|error| error.to_string())?;
            }
            Ok(())
        };
        // Copying and fetching keep a thread busy; it is told apart from those that must not wait.
        tokio::task::block_in_place(|| install::install(&wanted, &mut validate))
    };
    if let Some(session) = &session {
        session.end(EndReason::Complete).await;
    }
    let installed = match installed {
        Ok(installed) => installed,
        Err(InstallError::Interrupted) => {
            CliError::new("interrupted").hint("nothing was installed").print();
            return Ok(ExitCode::from(workspace::INTERRUPTED));
        }
        Err(error) => return Err(explain(error)),
    };
    workspace.approve_own(scope, &installed.folder, &installed.hash);
    let told = tell(workspace.live_with(scope).await, &Request::Refresh).await;
    let id = format!("{scope}:{}", installed.name);
    if args.json {
        output::json(&json!({
            "id": id,
            "folder": installed.folder,
            "replaced": installed.replaced,
            "record": installed.record,
            "secrets_forgotten": forgotten,
            "warnings": warnings,
            "sessions": told,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&id, &installed, &warnings);
    if forgotten {
        output::line(format_args!(
            "  {DIM}it has to ask for the secrets that the last one of that name was given{DIM:#}"
        ));
    }
    told.iter().for_each(|one| output::line(format_args!("  {}", one.heading())));
    if scope == Scope::Project && !workspace.is_trusted(args) {
        output::line(format_args!(
            "  {CYAN}tenon trust{CYAN:#}  {DIM}lets this repository's extensions run{DIM:#}"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Loads the extension once, where it was made ready.
fn check(session: &Session, folder: &Path, warnings: &mut Vec<String>) -> Result<(), String> {
    let report = Handle::current().block_on(async {
        tokio::select! {
            report = session.check(folder) => Ok(report),
            () = workspace::interruption() => Err("interrupted".to_owned()),
        }
    })?;
    warnings.extend(report.warnings);
    match report.error {
        Some(error) => Err(describe(&error, folder)),
        None if report.ok => Ok(()),
        None => Err("it does not load".to_owned()),
    }
}

/// An error with its place inside the extension; where the files are now is nobody's concern.
fn describe(error: &LoadError, folder: &Path) -> String {
    let what = &error.what;
    let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let inside = format!("{}/", folder.display());
    let mut text = what.message.replace(&inside, "");
    if let (Some(file), Some(line), Some(column)) = (&what.file, what.line, what.column) {
        text += &format!("\n  at {}:{line}:{column}", file.replace(&inside, ""));
    }
    text
}

fn print(id: &str, installed: &Installed, warnings: &[String]) {
    let verb = if installed.replaced { "replaced" } else { "installed" };
    output::line(format_args!("{GREEN}{verb}{GREEN:#} {BOLD}{id}{BOLD:#}"));
    output::line(format_args!("  folder  {}", shown(&installed.folder)));
    output::line(format_args!("  from    {}", clean(&installed.record.source)));
    if let Some(commit) = &installed.record.commit {
        output::line(format_args!("  commit  {commit}"));
    }
    for warning in warnings {
        output::line(format_args!("  {YELLOW}warning{YELLOW:#}: {}", clean(warning)));
    }
}

fn explain(error: InstallError) -> CliError {
    let described = CliError::new(error.to_string());
    match error {
        InstallError::Exists { .. } => {
            described.hint("--replace replaces it, --name NAME gives another name")
        }
        InstallError::Several { .. } | InstallError::NoEntry { .. } => {
            described.hint("--path SUB says where in the source the extension is")
        }
        InstallError::Name(_) => described.hint("--name NAME gives another name"),
        InstallError::Refused { .. } => {
            described.hint("--no-check installs it without loading it first")
        }
        _ => described,
    }
}
