//! Telling live sessions, in whatever process they are, what to do.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;
use tenon_host::control::Live;
use tenon_host::control::Request;

use crate::output::BOLD;
use crate::output::DIM;
use crate::workspace;

/// What a live session answered.
#[derive(Debug, Serialize)]
pub struct Told {
    /// The session.
    pub session: String,
    /// The process it is in.
    pub pid: u32,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Told {
    /// The session in a few words.
    pub fn heading(&self) -> String {
        heading(&self.session, self.pid, &self.cwd)
    }
}

/// A session in a few words.
pub fn heading(id: &str, pid: u32, cwd: &std::path::Path) -> String {
    let short: String = id.chars().take(8).collect();
    format!("{BOLD}session {short}{BOLD:#}  {DIM}pid {pid}  {}{DIM:#}", workspace::shown(cwd))
}

/// Asks each session for the same, one after the other.
pub async fn tell(sessions: Vec<Live>, request: &Request) -> Vec<Told> {
    let mut told = Vec::new();
    for live in sessions {
        let (answer, error) = match live.ask(request).await {
            Ok(answer) => (Some(answer), None),
            Err(error) => (None, Some(error.to_string())),
        };
        told.push(Told { session: live.id, pid: live.pid, cwd: live.cwd, answer, error });
    }
    told
}
