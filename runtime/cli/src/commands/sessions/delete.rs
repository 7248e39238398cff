//! `tenon sessions delete`.

use std::fs::File;
use std::fs::TryLockError;
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use tenon_acp::record;
use tenon_host::control;

use super::MAX_TITLE;
use crate::args::Args;
use crate::catalogue;
use crate::catalogue::Stored;
use crate::catalogue::one_line;
use crate::error::CliError;
use crate::output;
use crate::output::BOLD;
use crate::output::DIM;
use crate::output::GREEN;
use crate::output::count;
use crate::workspace;

pub async fn run(args: &Args, ids: &[String], yes: bool) -> Result<ExitCode, CliError> {
    let home = workspace::home(args)?;
    let sessions = named(&home, ids)?;
    refuse_live(&home, &sessions).await?;
    if !yes {
        confirm(&sessions)?;
    }
    let mut deleted = Vec::new();
    for session in &sessions {
        record::delete(&home, &session.id).map_err(|error| {
            let done = match deleted.len() {
                0 => String::new(),
                done => format!("; {} deleted before", count(done, "session was", "sessions were")),
            };
            CliError::new(format!("session {} cannot be deleted: {error}{done}", session.id))
        })?;
        deleted.push(session.id.as_str());
    }
    if args.json {
        output::json(&json!({ "deleted": deleted }))?;
        return Ok(ExitCode::SUCCESS);
    }
    for id in deleted {
        output::line(format_args!("{GREEN}deleted{GREEN:#} {BOLD}{id}{BOLD:#}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The sessions that are meant, each once. Nothing is deleted if one of them is not there.
fn named(home: &Path, ids: &[String]) -> Result<Vec<Stored>, CliError> {
    let mut sessions: Vec<Stored> = Vec::new();
    for id in ids {
        let found = catalogue::find(home, id)?;
        if !sessions.contains(&found) {
            sessions.push(found);
        }
    }
    Ok(sessions)
}

/// A session that some process works on must end first; nothing is deleted then.
async fn refuse_live(home: &Path, sessions: &[Stored]) -> Result<(), CliError> {
    let live = control::live(home).await;
    for session in sessions {
        if let Some(live) = live.iter().find(|live| live.id == session.id) {
            let message = format!("session {} is live, in process {}", session.id, live.pid);
            return Err(CliError::new(message).hint("end it first; nothing was deleted"));
        }
        // One that others cannot reach still records.
        if is_being_recorded(&catalogue::events_file(home, &session.id)) {
            let message = format!("session {} is open in another program", session.id);
            return Err(CliError::new(message).hint("end it first; nothing was deleted"));
        }
    }
    Ok(())
}

fn is_being_recorded(file: &Path) -> bool {
    let Ok(file) = File::open(file) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Shows what will be gone, and asks.
fn confirm(sessions: &[Stored]) -> Result<(), CliError> {
    let list: String = sessions
        .iter()
        .map(|session| {
            let title = session.title.as_deref().unwrap_or("-");
            format!("{BOLD}{}{BOLD:#}  {DIM}{}{DIM:#}\n", session.id, one_line(title, MAX_TITLE))
        })
        .collect();
    let what = count(sessions.len(), "session", "sessions");
    match output::confirm(&format!("{list}Delete {what} with everything recorded?")) {
        Some(true) => Ok(()),
        Some(false) => Err(CliError::new("nothing was deleted")),
        None => Err(CliError::new(format!("{what} would be deleted; nobody is there to be asked"))
            .hint("say --yes to delete")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_is_being_recorded_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        assert!(!is_being_recorded(&path));
        let file = File::create(&path).unwrap();
        assert!(!is_being_recorded(&path));
        file.lock().unwrap();
        assert!(is_being_recorded(&path));
        file.unlock().unwrap();
        assert!(!is_being_recorded(&path));
    }

    #[test]
    fn one_session_named_twice_is_one() {
        let home = tempfile::tempdir().unwrap();
        let file = catalogue::events_file(home.path(), "abc");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "{}\n").unwrap();
        let ids = ["abc".to_owned(), "a".to_owned()];
        assert_eq!(named(home.path(), &ids).unwrap().len(), 1);
        assert!(named(home.path(), &["abc".to_owned(), "x".to_owned()]).is_err());
    }
}
