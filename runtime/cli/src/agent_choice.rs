//! Which agent is meant, and the conversation with it. What `tenon run`, `tenon chat` and `tenon acp` share.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use serde_json::json;
use tenon_acp::agent::ClientInfo;
use tenon_acp::config::AgentsConfig;
use tenon_acp::config::PermissionMode;
use tenon_acp::conversation::ConversationOptions;
use tenon_acp::conversation::Start;
use tenon_acp::definition::AgentDefinition;
use tenon_acp::definition::DefinitionError;
use tenon_acp::record;
use tenon_acp::record::SessionRecord;
use tenon_host::Session;
use tenon_host::SessionOptions;
use tenon_host::control::ControlGuard;
use tenon_host::discovery;
use tenon_host::front::Front;
use tenon_host::session::LARGE_RESULT_BYTES;

use crate::args::Args;
use crate::catalogue;
use crate::error::CliError;
use crate::output;
use crate::output::DIM;
use crate::output::YELLOW;
use crate::workspace;
use crate::workspace::Workspace;

/// The variable that names the agent to use.
pub const VARIABLE: &str = "TENON_AGENT";

/// The agent that is part of this program. It is always there, and nobody means it without saying so.
const DEMO: &str = "demo";

/// An agent that is known by name, or the reason why it cannot be used.
pub struct Known {
    /// Its name.
    pub name: String,
    /// Whether it is known without the configuration.
    pub is_built_in: bool,
    /// How it is started.
    pub definition: Result<AgentDefinition, DefinitionError>,
    /// Where its program is, if it is installed.
    pub program: Option<PathBuf>,
}

impl Known {
    /// Whether it counts when the only installed agent is looked for.
    fn is_candidate(&self) -> bool {
        self.name != DEMO && self.program.is_some()
    }
}

/// Who says which agent is used when nobody names one on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultBy {
    /// The environment.
    Variable,
    /// The configuration.
    Config,
    /// There is no other.
    OnlyOne,
}

impl Display for DefaultBy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Variable => "TENON_AGENT",
            Self::Config => "config.toml",
            Self::OnlyOne => "the only one installed",
        })
    }
}

/// Every agent that is known: those that are built in and those of the configuration, by name.
pub fn known(config: &AgentsConfig, tenon: &Path) -> Vec<Known> {
    let built_in: BTreeSet<String> = AgentDefinition::all(&AgentsConfig::default(), tenon)
        .into_iter()
        .filter_map(|definition| Some(definition.ok()?.name))
        .collect();
    let names: BTreeSet<&String> = built_in.iter().chain(config.agents.keys()).collect();
    names
        .into_iter()
        .map(|name| {
            let definition = AgentDefinition::resolve(name, config, tenon);
            let program = definition.as_ref().ok().and_then(locate);
            let is_built_in = built_in.contains(name);
            Known { name: name.clone(), is_built_in, definition, program }
        })
        .collect()
}

/// Where an agent's program is.
pub fn locate(definition: &AgentDefinition) -> Option<PathBuf> {
    let path = match definition.env.get("PATH") {
        Some(path) => path.into(),
        None => std::env::var_os("PATH").unwrap_or_default(),
    };
    definition.locate(&path)
}

/// The agent that is used when nobody names one on the command line.
pub fn default_agent(config: &AgentsConfig, known: &[Known]) -> Option<(String, DefaultBy)> {
    let candidates: Vec<_> = known
        .iter()
        .filter(|known| known.is_candidate())
        .map(|known| known.name.as_str())
        .collect();
    default_of(std::env::var(VARIABLE).ok(), config.default_agent.as_deref(), &candidates)
}

fn default_of(
    variable: Option<String>,
    configured: Option<&str>,
    installed: &[&str],
) -> Option<(String, DefaultBy)> {
    // A variable that is empty is one that somebody took back.
    if let Some(name) = variable.filter(|name| !name.is_empty()) {
        return Some((name, DefaultBy::Variable));
    }
    if let Some(name) = configured {
        return Some((name.to_owned(), DefaultBy::Config));
    }
    match installed {
        [only] => Some(((*only).to_owned(), DefaultBy::OnlyOne)),
        _ => None,
    }
}

/// What the user has configured about agents.
pub fn config(home: &Path) -> Result<AgentsConfig, CliError> {
    Ok(AgentsConfig::read(home)?)
}

/// This program, which is started again as guard, zygote and demo agent.
pub fn own_program() -> Result<PathBuf, CliError> {
    std::env::current_exe().map_err(|error| {
        CliError::new(format!("the path of the tenon program cannot be determined: {error}"))
            .hint("tenon needs /proc: mount it, as in mount -t proc proc /proc")
    })
}

/// The agent that is meant: the one a session was begun with, the one named, or the default.
pub fn definition(
    args: &Args,
    named: Option<&str>,
    resume: Option<&SessionRecord>,
) -> Result<AgentDefinition, CliError> {
    let config = config(&workspace::home(args)?)?;
    let tenon = own_program()?;
    let (name, by) = match (resume, named) {
        (Some(record), Some(named)) if record.agent != named => {
            let message =
                format!("session {} was begun with {}, not with {named}", record.id, record.agent);
            return Err(CliError::new(message)
                .hint("leave --agent away, or begin a new session without --resume"));
        }
        (Some(record), _) => (record.agent.clone(), None),
        (None, Some(named)) => (named.to_owned(), None),
        (None, None) => {
            let known = known(&config, &tenon);
            let Some((name, by)) = default_agent(&config, &known) else {
                return Err(undecided(&known));
            };
            (name, Some(by))
        }
    };
    AgentDefinition::resolve(&name, &config, &tenon).map_err(|error| {
        let message = match by {
            Some(by) => format!("{error} (from {by})"),
            None => error.to_string(),
        };
        CliError::new(message).hint("tenon agents lists those there are")
    })
}

/// Says what there is to choose from.
fn undecided(known: &[Known]) -> CliError {
    let installed: Vec<_> = known
        .iter()
        .filter(|known| known.is_candidate())
        .map(|known| known.name.as_str())
        .collect();
    if let [first, ..] = installed.as_slice() {
        let message = format!("several agents are installed: {}", installed.join(", "));
        return CliError::new(message)
            .hint(format!("name one: --agent {first}"))
            .hint(format!("or for every time: default-agent = \"{first}\" in config.toml"));
    }
    let mut message = String::from("no coding agent is installed. Known are:");
    for known in known.iter().filter(|known| known.name != DEMO) {
        let how = match &known.definition {
            Ok(definition) => get(definition),
            Err(error) => error.to_string(),
        };
        message += &format!("\n  {:<10}  {how}", known.name);
    }
    CliError::new(message)
        .hint("install one of them, or describe another in config.toml under [agents.NAME]")
        .hint("--agent demo is always there: it follows directives, to try things out")
}

/// How to get an agent.
pub fn get(definition: &AgentDefinition) -> String {
    match &definition.package {
        Some(package) => format!("npm install -g {package}"),
        None => format!("{} is not on the PATH", definition.command.program),
    }
}

/// What `--permissions` says.
pub fn permissions(said: Option<&str>) -> Result<Option<PermissionMode>, CliError> {
    let parse = |said: &str| {
        said.parse::<PermissionMode>()
            .map_err(|error| CliError::new(format!("--permissions {said}: {error}")))
    };
    said.map(parse).transpose()
}

/// The session that `--resume` means, by its id or how that begins.
pub fn resumed(args: &Args, id: Option<&str>) -> Result<Option<SessionRecord>, CliError> {
    let Some(id) = id else { return Ok(None) };
    let home = workspace::home(args)?;
    let stored = catalogue::find(&home, id)?;
    match record::read(&home, &stored.id) {
        Some(record) => Ok(Some(record)),
        None => Err(CliError::new(format!("no agent has answered in session {}", stored.id))
            .hint("tenon sessions list --all shows which can go on: those with an agent")),
    }
}

/// The newest session of this repository that can go on.
pub fn last_session(args: &Args) -> Result<SessionRecord, CliError> {
    let workspace = Workspace::of(args)?;
    let root = workspace.root();
    let mut records = record::list(&workspace.home).into_iter();
    records.find(|record| discovery::project_root(&record.cwd) == root).ok_or_else(|| {
        CliError::new(format!("there is no earlier session in {}", root.display()))
            .hint("tenon sessions list --all shows those of other folders")
    })
}

/// What somebody wants of a conversation beside the agent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wishes<'a> {
    /// Which of the agent's models.
    pub model: Option<&'a str>,
    /// Which of the agent's modes.
    pub mode: Option<&'a str>,
    /// More folders to work in.
    pub directories: &'a [PathBuf],
    /// The session to go on with.
    pub resume: Option<&'a SessionRecord>,
}

/// A conversation with an agent where the command line says. The program enters the directory. A person who
/// can be asked is asked whether the repository's extensions may run.
pub fn conversation_options(
    args: &Args,
    mut definition: AgentDefinition,
    permissions: Option<PermissionMode>,
    front: Option<Arc<dyn Front>>,
    wishes: &Wishes<'_>,
) -> Result<ConversationOptions, CliError> {
    let mut workspace = Workspace::of(args)?;
    for directory in wishes.directories {
        definition.additional_directories.push(workspace::directory("--add-dir", directory)?);
    }
    if let Some(record) = wishes.resume
        && args.cwd.is_none()
    {
        go_back(&mut workspace, record)?;
    }
    if let Some(model) = wishes.model {
        definition.model = Some(model.to_owned());
    }
    if let Some(mode) = wishes.mode {
        definition.mode = Some(mode.to_owned());
    }
    let trusted = workspace.trusted_or_asked(args)?;
    let session = SessionOptions {
        trusted,
        id: wishes.resume.map(|record| record.id.clone()),
        record: true,
        watch: true,
        log_files: true,
        large_result_bytes: Some(LARGE_RESULT_BYTES),
        isolates: workspace::isolates(Some(&workspace.home))?,
        user_folders: workspace.user_folders,
        extension_folders: workspace.extension_folders,
        ..SessionOptions::new(workspace.cwd, workspace.home)
    };
    Ok(ConversationOptions {
        session,
        definition,
        permissions,
        front,
        outer: None,
        tenon: own_program()?,
        guarded: true,
        agent: None,
        client: ClientInfo {
            name: "tenon".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            // What the session itself can do for the agent.
            capabilities: Value::Null,
            initialize: Value::Null,
        },
        replay: false,
        start: if wishes.resume.is_some() { Start::Stored } else { Start::New },
        params: json!({}),
    })
}

/// A session goes on where it began: agents keep theirs by folder.
fn go_back(workspace: &mut Workspace, record: &SessionRecord) -> Result<(), CliError> {
    if record.cwd == workspace.cwd {
        return Ok(());
    }
    let cwd =
        std::fs::canonicalize(&record.cwd).ok().filter(|cwd| cwd.is_dir()).ok_or_else(|| {
            let cwd = record.cwd.display();
            CliError::new(format!("the folder of session {} is gone: {cwd}", record.id))
                .hint("--cwd DIR lets it go on elsewhere")
        })?;
    std::env::set_current_dir(&cwd)
        .map_err(|error| CliError::new(format!("{} cannot be entered: {error}", cwd.display())))?;
    if cwd != workspace.cwd {
        output::note(format_args!("{DIM}in {}, where it began{DIM:#}", workspace::shown(&cwd)));
    }
    workspace.cwd = cwd;
    Ok(())
}

/// Lets other processes of the same user reach a session, as long as the guard lives.
pub fn serve_control(session: &Session) -> Option<ControlGuard> {
    let guard = session.serve_control();
    if let Err(error) = &guard {
        output::note(format_args!(
            "{YELLOW}warning{YELLOW:#}: other processes cannot reach this session: {error}"
        ));
    }
    guard.ok()
}

/// What went wrong with an agent, and what to do about it.
pub fn explain(error: impl Display, definition: &AgentDefinition) -> CliError {
    let message = error.to_string();
    let mut described = CliError::new(&message);
    if locate(definition).is_none() {
        described = described.hint(format!("get it: {}", get(definition)));
    } else if let Some(login) = &definition.login
        && is_about_login(&message)
    {
        described = described.hint(format!("log in: {login}"));
    }
    if message.contains("open in another program") {
        described =
            described.hint("end that program first; tenon sessions list says which is live");
    }
    described
}

/// Whether an agent complains that it does not know who we are. Agents agree on no words for it.
fn is_about_login(message: &str) -> bool {
    let message = message.to_lowercase();
    let words = ["auth", "log in", "login", "logged in", "sign in", "api key", "credential", "401"];
    words.iter().any(|word| message.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_comes_before_the_configuration_and_that_before_the_only_one() {
        let variable = || Some("a".to_owned());
        let some = |name: &str, by| Some((name.to_owned(), by));
        assert_eq!(default_of(variable(), Some("b"), &["c"]), some("a", DefaultBy::Variable));
        assert_eq!(default_of(None, Some("b"), &["c"]), some("b", DefaultBy::Config));
        assert_eq!(default_of(None, None, &["c"]), some("c", DefaultBy::OnlyOne));
        assert_eq!(default_of(None, None, &["c", "d"]), None);
        assert_eq!(default_of(None, None, &[]), None);
        assert_eq!(default_of(Some(String::new()), None, &["c"]), some("c", DefaultBy::OnlyOne));
    }

    #[test]
    fn the_demo_agent_is_known_and_never_the_default() {
        let known = known(&AgentsConfig::default(), Path::new("/bin/tenon"));
        let demo = known.iter().find(|known| known.name == DEMO).unwrap();
        assert!(demo.is_built_in && !demo.is_candidate());
        assert!(known.is_sorted_by_key(|known| known.name.clone()));
    }

    #[test]
    fn what_is_not_installed_is_listed_with_how_to_get_it() {
        let mut known = known(&AgentsConfig::default(), Path::new("/bin/tenon"));
        known.iter_mut().for_each(|known| known.program = None);
        let error = undecided(&known);
        assert!(error.message().contains("no coding agent is installed"), "{error:?}");
        assert!(error.message().contains("npm install -g "), "{error:?}");
        known.iter_mut().for_each(|known| known.program = Some(PathBuf::from("/bin/x")));
        let error = undecided(&known);
        assert!(error.message().starts_with("several agents are installed: claude, codex"));
        assert!(!error.message().contains(DEMO), "{error:?}");
    }

    #[test]
    fn complaints_about_a_login_are_told_by_their_words() {
        assert!(is_about_login("claude refused `session/new`: Authentication required"));
        assert!(is_about_login("Invalid API key"));
        assert!(!is_about_login("ended while it was starting: exit code 1"));
    }
}
