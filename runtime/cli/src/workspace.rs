//! The session for the directory the program works in.

use std::path::Path;
use std::path::PathBuf;
use std::task::Poll;

use tenon_host::Session;
use tenon_host::SessionOptions;
use tenon_host::discovery::Scope;
use tenon_host::session::EndReason;

use crate::args::Args;
use crate::error::CliError;
use crate::output::Progress;

/// A session with every extension loaded.
pub async fn load(args: &Args) -> Result<Session, CliError> {
    let session = Session::new(options(args)?)?;
    let _progress = Progress::start("loading extensions ...");
    tokio::select! {
        () = session.load() => Ok(session),
        () = interruption() => {
            session.end(EndReason::UserExit).await;
            Err(CliError::new("interrupted"))
        }
    }
}

/// Waits until somebody wants the program to end, so that extensions can be ended first.
pub async fn interruption() {
    use tokio::signal::unix::SignalKind;
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let signals: Result<Vec<_>, _> = kinds.into_iter().map(tokio::signal::unix::signal).collect();
    match signals {
        Ok(mut signals) => {
            std::future::poll_fn(|cx| {
                let mut received = signals.iter_mut().map(|signal| signal.poll_recv(cx));
                if received.any(|received| received.is_ready()) {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
            .await;
        }
        // Without handlers a signal ends the program the plain way.
        Err(_) => std::future::pending().await,
    }
}

/// What the command line says about where to work.
fn options(args: &Args) -> Result<SessionOptions, CliError> {
    let cwd = match &args.cwd {
        Some(cwd) => cwd.clone(),
        None => std::env::current_dir()
            .map_err(|error| CliError::new(format!("the current directory is gone: {error}")))?,
    };
    let cwd = directory("--cwd", &cwd)?;
    // Where threads cannot have directories of their own, this one is everybody's.
    std::env::set_current_dir(&cwd)
        .map_err(|error| CliError::new(format!("{} cannot be entered: {error}", cwd.display())))?;
    let folders: Result<Vec<_>, _> =
        args.extension_folders.iter().map(|folder| directory("--extensions", folder)).collect();
    let home = home(args)?;
    Ok(SessionOptions {
        user_folders: user_folders(&home),
        extension_folders: folders?,
        trusted: args.trust,
        ..SessionOptions::new(cwd, home)
    })
}

/// Tenon's own folder.
pub fn home(args: &Args) -> Result<PathBuf, CliError> {
    let home = args
        .home
        .clone()
        .or_else(|| std::env::var_os("TENON_HOME").map(PathBuf::from))
        .or_else(|| std::env::home_dir().map(|home| home.join(".tenon")))
        .ok_or_else(|| {
            CliError::new("there is no home directory").hint("set TENON_HOME or pass --home DIR")
        })?;
    Ok(std::path::absolute(home)?)
}

/// Tenon's own folder, and Copilot's, where the user may already have extensions.
fn user_folders(home: &Path) -> Vec<PathBuf> {
    let copilot = std::env::var_os("COPILOT_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".copilot")));
    let mut folders = vec![home.to_owned()];
    folders.extend(copilot.filter(|folder| folder != home));
    folders
}

fn directory(option: &str, path: &Path) -> Result<PathBuf, CliError> {
    let found = std::fs::canonicalize(path).map_err(|error| {
        CliError::new(format!("{option}: {} cannot be entered: {error}", path.display()))
    })?;
    if !found.is_dir() {
        return Err(CliError::new(format!("{option}: {} is not a directory", path.display())));
    }
    Ok(found)
}

/// Says where extensions were looked for and none was found.
pub fn nothing_found(session: &Session) -> CliError {
    let mut message = String::from("no extensions were found. Looked in:");
    for (scope, folder) in &session.places().roots {
        let note = if folder.is_dir() { "" } else { " (not there)" };
        let what = match scope {
            Scope::User => "user",
            Scope::Project => "project",
            Scope::Folder => "--extensions",
        };
        message += &format!("\n  {what:<12}  {}{note}", folder.display());
    }
    CliError::new(message)
        .hint("an extension is a folder with an extension.mjs in one of these places")
}
