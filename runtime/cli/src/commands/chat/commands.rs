//! Slash commands: the chat's own, those of extensions, those of the agent.

use anstyle::Style;
use serde_json::Value;
use tenon_acp::record;
use tenon_acp::record::SessionRecord;
use tenon_host::Session;
use tenon_host::discovery;
use tenon_host::manage::ReloadReport;

use super::Chat;
use super::Flow;
use super::completion;
use super::completion::Candidate;
use super::completion::Known;
use super::input::Input;
use super::opening::Which;
use super::tables;
use super::tables::MAX_DESCRIPTION;
use super::tables::cell;
use super::waiting::OnInterrupt;
use super::waiting::Waited;
use crate::agent_choice;
use crate::commands::ext::print_error;
use crate::commands::ext::print_list;
use crate::output;
use crate::output::BOLD;
use crate::output::CYAN;
use crate::output::DIM;
use crate::output::Table;
use crate::sanitise::one_line;
use crate::terminal::screen;
use crate::workspace;

/// The most lines of a log that are shown.
const LOG_LINES: usize = 40;

/// The longest line of a log that is shown, in characters.
const LOG_LINE: usize = 500;

/// The most sessions that are listed.
const MAX_SESSIONS: usize = 20;

/// What `/log` calls the agent.
const AGENT: &str = "agent";

/// A command of the chat itself.
struct BuiltIn {
    name: &'static str,
    /// What can follow it.
    takes: &'static str,
    does: &'static str,
}

const fn built_in(name: &'static str, takes: &'static str, does: &'static str) -> BuiltIn {
    BuiltIn { name, takes, does }
}

const BUILT_IN: [BuiltIn; 11] = [
    built_in("help", "", "what can be typed here"),
    built_in("tools", "", "the tools of extensions"),
    built_in("extensions", "", "the extensions, and how they fare"),
    built_in("reload", "", "load every extension anew"),
    built_in("clear", "", "a new session; everything is loaded anew"),
    built_in("resume", "[ID]", "earlier sessions of this repository, or go on with one"),
    built_in("model", "[ID]", "the agent's models, or use another"),
    built_in("mode", "[ID]", "the agent's modes, or use another"),
    built_in("log", "[NAME]", "what an extension, or the agent, has logged last"),
    built_in("quit", "", "end; so does Ctrl-D"),
    built_in("exit", "", "the same"),
];

/// A command that was entered.
#[derive(Debug, PartialEq, Eq)]
pub struct Command<'a> {
    /// Without the slash.
    pub name: &'a str,
    /// What follows it.
    pub args: &'a str,
}

/// The command that a line is; none if it is a prompt. A path is a prompt.
pub fn parse(line: &str) -> Option<Command<'_>> {
    let rest = line.trim().strip_prefix('/')?;
    let (name, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
    let is_name = name.starts_with(char::is_alphanumeric) && name.chars().all(plain);
    is_name.then(|| Command { name, args: args.trim() })
}

impl Chat<'_> {
    /// Runs a command, wherever it belongs.
    pub(super) async fn command(&mut self, command: Command<'_>, line: &str) -> Flow {
        let Command { name, args } = command;
        match name {
            "quit" | "exit" => return Flow::End,
            "help" => self.help(),
            "clear" => self.switch(Which::New).await,
            "resume" => self.resume(args).await,
            _ if self.open.is_none() => {
                self.note("no session is open; a prompt, /clear or /resume begins one");
            }
            "tools" => self.tools(),
            "extensions" => self.extensions(),
            "reload" => self.reload().await,
            "model" => self.model(args).await,
            "mode" => self.mode(args).await,
            "log" => self.log(args),
            _ => self.foreign_command(name, args, line).await,
        }
        Flow::GoOn
    }

    fn session(&self) -> Option<Session> {
        Some(self.open.as_ref()?.conversation.session().clone())
    }

    /// A command of an extension, or of the agent.
    async fn foreign_command(&mut self, name: &str, args: &str, line: &str) {
        let Some(session) = self.session() else { return };
        let is_meant = |known: &str| known.eq_ignore_ascii_case(name);
        if session.commands().iter().any(|listing| is_meant(&listing.command.name)) {
            let label = format!("/{name}");
            let work = async {
                // What goes wrong is an event.
                let _ = session.run_command(name, args).await;
            };
            if let Waited::Left = self.wait(&label, OnInterrupt::Leave, work).await {
                self.note("interrupted");
            }
            return;
        }
        if self.agents_commands().iter().any(|known| is_meant(&known.text)) {
            return self.prompt(line.trim()).await;
        }
        self.note(&format!("there is no command /{name}; /help lists them"));
    }

    fn agents_commands(&self) -> Vec<Candidate> {
        let commands = self.open.as_ref().map(|open| open.conversation.agent_commands());
        let named = commands.into_iter().flatten().filter_map(|command| {
            let name = command["name"].as_str()?.trim_start_matches('/').to_owned();
            Some(Candidate::new(name, text(&command, "description")))
        });
        named.collect()
    }

    fn help(&mut self) {
        let mut table = Table::new(&["COMMAND", "FROM", "DOES"]);
        let mut row = |name: String, from: String, does: &str| {
            table.row(vec![(name, BOLD), (from, DIM), (cell(does), Style::new())]);
        };
        for BuiltIn { name, takes, does } in &BUILT_IN {
            row(format!("/{name} {takes}").trim_end().to_owned(), String::new(), does);
        }
        let commands = self.session().map(|session| session.commands()).unwrap_or_default();
        for listing in commands {
            let name = cell(&listing.command.name);
            let hidden = BUILT_IN.iter().any(|built_in| built_in.name == name);
            let described = listing.command.description.as_str();
            let does = if hidden { "hidden by the command above" } else { described };
            row(format!("/{name}"), listing.extension_id, does);
        }
        for Candidate { text, note } in self.agents_commands() {
            row(format!("/{}", one_line(&text, 40)), AGENT.to_owned(), &note);
        }
        self.table(&table);
        self.say("");
        for line in [
            "A backslash at the end of a line, or Alt-Enter, begins another line.",
            "While the agent works: Esc or Ctrl-C interrupts, a line is queued.",
            "Tab completes, Ctrl-R looks for what was entered before.",
        ] {
            self.say(&format!("{DIM}{line}{DIM:#}"));
        }
    }

    fn tools(&mut self) {
        let tools = self.session().map(|session| session.tools()).unwrap_or_default();
        self.table(&tables::tools(tools));
    }

    fn extensions(&mut self) {
        let Some(session) = self.session() else { return };
        let extensions = session.list();
        if extensions.is_empty() {
            return self.note(workspace::nothing_found(&session).message());
        }
        screen::clear_status();
        print_list(&extensions);
    }

    async fn reload(&mut self) {
        let Some(session) = self.session() else { return };
        match self.wait("reloading", OnInterrupt::Leave, session.reload()).await {
            Waited::Done(report) => self.report_reload(&report),
            Waited::Left => self.note("it goes on reloading"),
            Waited::Stopped => {}
        }
    }

    /// What a reload has come to. What has changed was said when it did.
    fn report_reload(&mut self, report: &ReloadReport) {
        let well = |ids: &[String]| ids.iter().filter(|id| !report.failed.contains(id)).count();
        let counts = [
            (well(&report.reloaded), "reloaded"),
            (well(&report.added), "added"),
            (report.removed.len(), "removed"),
            (report.waiting.len(), "waiting for your approval"),
            (report.failed.len(), "failed"),
        ];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let parts: Vec<_> = counts.map(|(count, word)| format!("{count} {word}")).collect();
        match parts.is_empty() {
            true => self.note("there is nothing to load"),
            false => self.note(&parts.join(", ")),
        }
        for info in &report.extensions {
            if let Some(error) = info
                .error
                .as_ref()
                .filter(|_| report.failed.contains(&info.id) || report.waiting.contains(&info.id))
            {
                self.say(&format!("{BOLD}{}{BOLD:#}", info.id));
                print_error(error, "  ");
            }
        }
    }

    /// Goes on with another conversation.
    async fn switch(&mut self, which: Which) {
        if let Err(error) = self.begin(which).await
            && !self.stop.is_wanted()
        {
            self.report(&error);
            self.note("no session is open; a prompt, /clear or /resume begins one");
        }
    }

    /// Sessions of this repository that can go on, the newest first.
    fn sessions(&self) -> Vec<SessionRecord> {
        let cwd = match &self.open {
            Some(open) => open.conversation.session().cwd().to_owned(),
            None => self.started_in.clone(),
        };
        let root = discovery::project_root(&cwd).to_owned();
        let current = self.session().map(|session| session.id().to_owned());
        let records = record::list(&self.home).into_iter().filter(|record| {
            discovery::project_root(&record.cwd) == root && Some(&record.id) != current.as_ref()
        });
        records.take(MAX_SESSIONS).collect()
    }

    async fn resume(&mut self, id: &str) {
        if id.is_empty() {
            return self.list_sessions();
        }
        if self.session().is_some_and(|session| session.id() == id) {
            return self.note("that is this session");
        }
        match agent_choice::resumed(self.args, Some(id)) {
            Ok(Some(record)) => self.switch(Which::Stored(record)).await,
            Ok(None) => {}
            Err(error) => self.report(&error),
        }
    }

    fn list_sessions(&mut self) {
        let sessions = self.sessions();
        if sessions.is_empty() {
            return self.note("there are no other sessions in this repository");
        }
        self.table(&tables::sessions(sessions, chrono::Utc::now()));
        self.note("/resume ID goes on with one; its beginning is enough");
    }

    async fn model(&mut self, id: &str) {
        let Some(open) = &self.open else { return };
        let conversation = open.conversation.clone();
        if id.is_empty() {
            let current = conversation.current_model();
            return self.choices("models", &conversation.models(), current.as_deref());
        }
        let work = conversation.set_model(id);
        match self.wait("changing the model", OnInterrupt::Leave, work).await {
            Waited::Done(Err(error)) => self.note(&error.message),
            // The session says so.
            Waited::Done(Ok(())) | Waited::Left | Waited::Stopped => {}
        }
    }

    async fn mode(&mut self, id: &str) {
        let Some(open) = &self.open else { return };
        let conversation = open.conversation.clone();
        if id.is_empty() {
            let modes = conversation.modes();
            let available = modes["availableModes"].as_array().cloned().unwrap_or_default();
            return self.choices("modes", &available, modes["currentModeId"].as_str());
        }
        let work = conversation.set_mode(id);
        match self.wait("changing the mode", OnInterrupt::Leave, work).await {
            Waited::Done(Ok(())) => self.note(&format!("the agent's mode: {id}")),
            Waited::Done(Err(error)) => self.note(&error.message),
            Waited::Left | Waited::Stopped => {}
        }
    }

    /// Things with an `id`, and which of them is in use.
    fn choices(&mut self, what: &str, choices: &[Value], current: Option<&str>) {
        if choices.is_empty() {
            return self.note(&format!("the agent has no {what} to choose from"));
        }
        self.table(&tables::choices(choices, current));
    }

    fn log(&mut self, name: &str) {
        let Some(open) = &self.open else { return };
        let lines: Vec<String> = if name.is_empty() || name == AGENT {
            open.conversation.agent().process().last_stderr()
        } else {
            let session = open.conversation.session();
            let found = session.find(name);
            let Some(info) = found.first() else {
                let ids: Vec<_> = session.list().into_iter().map(|info| info.id).collect();
                let text = format!("there is no extension {name}; there are: {}", ids.join(", "));
                return self.note(&text);
            };
            let mut lines = Vec::new();
            for line in session.log(info) {
                lines.extend(line.text.lines().map(str::to_owned));
            }
            lines
        };
        if lines.is_empty() {
            let who = if name.is_empty() { AGENT } else { name };
            return self.note(&format!("{who} has logged nothing"));
        }
        let skipped = lines.len().saturating_sub(LOG_LINES);
        if skipped > 0 {
            self.say(&format!("{DIM}... {skipped} earlier lines{DIM:#}"));
        }
        for line in &lines[skipped..] {
            self.say(&format!("{DIM}|{DIM:#} {}", one_line(line, LOG_LINE)));
        }
    }

    fn table(&mut self, table: &Table) {
        table.lines().iter().for_each(|line| self.say(line));
    }

    /// Completes what is typed, or lists what there is to choose from.
    pub(super) fn complete(&mut self) {
        let Input::Person(person) = &self.input else { return };
        let completion = completion::complete(person.editor.before_cursor(), &*self);
        let Input::Person(person) = &mut self.input else { return };
        let candidates = person.editor.complete(completion);
        if candidates.is_empty() {
            return;
        }
        screen::write(&person.editor.erase());
        let mut table = Table::new(&["", ""]);
        for Candidate { text, note } in candidates {
            table.row(vec![(one_line(&text, 100), CYAN), (one_line(&note, MAX_DESCRIPTION), DIM)]);
        }
        // The first line is the header.
        table.lines().iter().skip(1).for_each(output::note);
    }
}

impl Known for Chat<'_> {
    fn commands(&self) -> Vec<Candidate> {
        let own = BUILT_IN.iter().map(|built_in| Candidate::new(built_in.name, built_in.does));
        let extensions = self.session().map(|session| session.commands()).unwrap_or_default();
        let extensions = extensions
            .into_iter()
            .map(|listing| Candidate::new(listing.command.name, listing.command.description));
        own.chain(extensions).chain(self.agents_commands()).collect()
    }

    fn arguments(&self, command: &str) -> Vec<Candidate> {
        let Some(open) = &self.open else { return Vec::new() };
        let named = |choices: Vec<Value>| -> Vec<Candidate> {
            choices.iter().map(|it| Candidate::new(text(it, "id"), text(it, "name"))).collect()
        };
        match command {
            "model" => named(open.conversation.models()),
            "mode" => {
                let modes = open.conversation.modes();
                named(modes["availableModes"].as_array().cloned().unwrap_or_default())
            }
            "log" => {
                let extensions = open.conversation.session().list().into_iter();
                let extensions =
                    extensions.map(|info| Candidate::new(info.id, info.status.to_string()));
                extensions.chain([Candidate::new(AGENT, "its standard error")]).collect()
            }
            "resume" => self
                .sessions()
                .into_iter()
                .map(|record| Candidate::new(record.id, record.title.unwrap_or_default()))
                .collect(),
            _ => Vec::new(),
        }
    }
}

/// A text in a JSON object, or none.
fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_a_slash_is_a_command_unless_it_is_a_path() {
        assert_eq!(parse("/help"), Some(Command { name: "help", args: "" }));
        assert_eq!(parse("  /log  x y "), Some(Command { name: "log", args: "x y" }));
        let reviewed = parse("/review\nall of it");
        assert_eq!(reviewed, Some(Command { name: "review", args: "all of it" }));
        for prompt in ["help", "/usr/bin is full", "// a comment", "/", "/ x", "what is /help"] {
            assert_eq!(parse(prompt), None, "{prompt}");
        }
    }

    #[test]
    fn every_built_in_command_is_one_that_can_be_entered() {
        for built_in in &BUILT_IN {
            let line = format!("/{}", built_in.name);
            assert_eq!(parse(&line).map(|command| command.name), Some(built_in.name));
        }
    }
}
