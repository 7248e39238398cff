//! `tenon sessions`: the conversations that were recorded.

mod delete;
mod history;

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;

use anstyle::Style;
use chrono::Utc;
use serde::Serialize;
use tenon_host::control;
use tenon_host::discovery;

use self::history::History;
use self::history::Said;
use super::chat;
use crate::args::Args;
use crate::args::fronts::ChatArgs;
use crate::args::fronts::SessionsCommand;
use crate::catalogue;
use crate::catalogue::Stored;
use crate::catalogue::age;
use crate::catalogue::one_line;
use crate::error::CliError;
use crate::output;
use crate::output::BOLD;
use crate::output::CYAN;
use crate::output::DIM;
use crate::output::GREEN;
use crate::output::Table;
use crate::sanitise::clean;
use crate::workspace;
use crate::workspace::Workspace;

/// The longest title in a table, in characters.
const MAX_TITLE: usize = 48;

/// How many lines of a message are shown.
const MESSAGE_LINES: usize = 12;

/// How many characters of a line of a message are shown.
const LINE_LENGTH: usize = 200;

/// A session, and whether somebody works on it.
#[derive(Debug, Serialize)]
struct Listed {
    #[serde(flatten)]
    session: Stored,
    /// The process it is live in.
    pid: Option<u32>,
}

pub async fn run(args: &Args, command: &SessionsCommand) -> Result<ExitCode, CliError> {
    match command {
        SessionsCommand::List { all } => list(args, *all).await,
        SessionsCommand::Show { id, events } => show(args, id, *events).await,
        SessionsCommand::Resume { id, agent } => resume(args, id, agent.clone()).await,
        SessionsCommand::Delete { ids, yes } => delete::run(args, ids, *yes).await,
    }
}

async fn resume(args: &Args, id: &str, agent: Option<String>) -> Result<ExitCode, CliError> {
    let id = catalogue::find(&workspace::home(args)?, id)?.id;
    let chat_args = ChatArgs { agent, resume: Some(Some(id)), ..ChatArgs::default() };
    chat::run(args, &chat_args).await
}

/// The processes in which sessions are live, by session.
async fn live(home: &Path) -> HashMap<String, u32> {
    control::live(home).await.into_iter().map(|live| (live.id, live.pid)).collect()
}

async fn list(args: &Args, all: bool) -> Result<ExitCode, CliError> {
    let workspace = Workspace::of(args)?;
    let live = live(&workspace.home).await;
    let stored = catalogue::list(&workspace.home);
    // Of all there are, not of those that are shown: what is shown must name one.
    let length = catalogue::short_length(stored.iter().map(|session| session.id.as_str()));
    let total = stored.len();
    let listed: Vec<_> = stored
        .into_iter()
        .filter(|session| all || is_in(session, workspace.root()))
        .map(|session| Listed { pid: live.get(&session.id).copied(), session })
        .collect();
    if args.json {
        output::json(&listed)?;
        return Ok(ExitCode::SUCCESS);
    }
    if listed.is_empty() {
        let root = workspace.root().display();
        match (all, total) {
            (false, 1..) => output::line(format_args!(
                "{DIM}no sessions in {root}; --all lists those of other folders{DIM:#}"
            )),
            _ => output::line(format_args!("{DIM}no sessions yet{DIM:#}")),
        }
        return Ok(ExitCode::SUCCESS);
    }
    table(&listed, length).print();
    Ok(ExitCode::SUCCESS)
}

/// Whether a session works in a repository.
fn is_in(session: &Stored, root: &Path) -> bool {
    session.cwd.as_deref().is_some_and(|cwd| discovery::project_root(cwd) == root)
}

fn table(sessions: &[Listed], length: usize) -> Table {
    let mut table = Table::new(&["ID", "AGENT", "TITLE", "FOLDER", "WHEN", "LIVE"]);
    let now = Utc::now();
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for Listed { session, pid } in sessions {
        let folder = session.cwd.as_ref().map(|cwd| cwd.display().to_string());
        table.row(vec![
            (session.id.chars().take(length).collect(), BOLD),
            (or_dash(session.agent.clone()), Style::new()),
            (or_dash(title(session)), Style::new()),
            (or_dash(folder), DIM),
            (or_dash(session.updated_at().map(|then| age(then, now))), Style::new()),
            (pid.map_or(String::new(), |pid| format!("pid {pid}")), GREEN),
        ]);
    }
    table
}

fn title(session: &Stored) -> Option<String> {
    let title = session.title.as_deref().map(|title| one_line(title, MAX_TITLE));
    title.filter(|title| !title.is_empty())
}

/// Everything about one session.
#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    listed: Listed,
    #[serde(flatten)]
    history: History,
}

async fn show(args: &Args, id: &str, events: bool) -> Result<ExitCode, CliError> {
    let home = workspace::home(args)?;
    let session = catalogue::find(&home, id)?;
    let file = catalogue::events_file(&home, &session.id);
    if events {
        history::print_events(&file)?;
        return Ok(ExitCode::SUCCESS);
    }
    let pid = live(&home).await.get(&session.id).copied();
    let history = History::of(&file)?;
    if args.json {
        output::json(&Shown { listed: Listed { session, pid }, history })?;
        return Ok(ExitCode::SUCCESS);
    }
    print_facts(&session, pid, &history, &file);
    history.messages.iter().for_each(print_message);
    Ok(ExitCode::SUCCESS)
}

fn print_facts(session: &Stored, pid: Option<u32>, history: &History, file: &Path) {
    output::line(format_args!("{BOLD}session {}{BOLD:#}", session.id));
    let fact = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            output::line(format_args!("  {DIM}{name:<14}{DIM:#}{value}"));
        }
    };
    fact("title", session.title.as_deref().map(|title| one_line(title, LINE_LENGTH)));
    fact("agent", session.agent.clone());
    fact("agent's id", session.agent_session.as_deref().map(|id| one_line(id, LINE_LENGTH)));
    fact("folder", session.cwd.as_ref().map(|cwd| cwd.display().to_string()));
    fact("began", session.created.clone());
    fact("last changed", session.updated.clone());
    fact("live", pid.map(|pid| format!("{GREEN}pid {pid}{GREEN:#}")));
    let History { events, prompts, tool_calls, .. } = history;
    fact("events", Some(format!("{events}: {prompts} prompts, {tool_calls} tool calls")));
    fact("recorded in", Some(file.display().to_string()));
}

fn print_message(said: &Said) {
    let style = if said.by == "assistant" { GREEN } else { CYAN };
    let by = one_line(&said.by, LINE_LENGTH);
    output::line(format_args!("\n{style}{by}{style:#} {DIM}{}{DIM:#}", said.at));
    let lines: Vec<_> = said.text.trim().lines().collect();
    for line in lines.iter().take(MESSAGE_LINES) {
        output::line(format_args!("  {}", plain(line)));
    }
    if lines.len() > MESSAGE_LINES {
        output::line(format_args!("  {DIM}... {} more lines{DIM:#}", lines.len() - MESSAGE_LINES));
    }
}

/// A line of somebody else that cannot command the terminal, with its indentation.
fn plain(line: &str) -> String {
    let shown = clean(line).replace('\t', " ");
    let mut text: String = shown.chars().take(LINE_LENGTH).collect();
    if shown.chars().count() > LINE_LENGTH {
        text += " ...";
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn session(title: &str) -> Stored {
        Stored {
            id: "0123456789abcdef".to_owned(),
            agent: None,
            agent_session: None,
            title: Some(title.to_owned()),
            cwd: Some(PathBuf::from("/repo")),
            created: None,
            updated: Some(Utc::now().to_rfc3339()),
        }
    }

    #[test]
    fn a_session_without_an_agent_has_a_dash() {
        let listed = Listed { session: session("Fix\nit"), pid: Some(7) };
        let lines = table(&[listed], 8).lines();
        assert!(lines[1].contains("01234567") && !lines[1].contains("012345678"), "{}", lines[1]);
        for part in ["-", "Fix it", "/repo", "just now", "pid 7"] {
            assert!(lines[1].contains(part), "{part} is missing in {}", lines[1]);
        }
    }

    #[test]
    fn a_session_belongs_to_the_repository_it_works_in() {
        let folder = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(folder.path()).unwrap();
        std::fs::create_dir_all(root.join(".git")).unwrap();
        let deep = root.join("deep");
        std::fs::create_dir(&deep).unwrap();
        let stored = Stored { cwd: Some(deep), ..session("x") };
        assert!(is_in(&stored, &root));
        assert!(!is_in(&Stored { cwd: None, ..session("x") }, &root));
        assert!(!is_in(&session("x"), &root));
    }

    #[test]
    fn messages_cannot_command_the_terminal() {
        assert_eq!(plain("  a\x1b[2Jb\tc"), "  ab c");
        assert_eq!(plain(&"x".repeat(LINE_LENGTH)).len(), LINE_LENGTH);
        assert!(plain(&"x".repeat(LINE_LENGTH + 1)).ends_with(" ..."));
    }
}
