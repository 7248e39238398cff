//! Which agent it is: a built-in profile with the user's configuration laid over it.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use serde_json::json;

use crate::command_line::CommandError;
use crate::command_line::CommandLine;
use crate::config::AgentSettings;
use crate::config::AgentsConfig;
use crate::config::Credential;
use crate::config::EnvPolicy;
use crate::config::HomePolicy;
use crate::config::McpServer;
use crate::config::McpTransport;
use crate::config::PermissionMode;
use crate::config::ReloadStrategy;
use crate::profiles;
use crate::profiles::PROFILES;
use crate::profiles::Preset;
use crate::profiles::Profile;

/// Programs that fetch what they run. Asking through them for a version could take minutes.
const FETCHERS: [&str; 6] = ["npx", "bunx", "pnpm", "yarn", "uvx", "pipx"];

/// Everything there is to know about an agent before it is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentDefinition {
    /// The name people use.
    pub name: String,
    /// The name to show.
    pub title: String,
    /// The built-in profile it began with.
    pub profile: Option<String>,
    /// The program and its arguments.
    pub command: CommandLine,
    /// Variables that the user wants set for it.
    pub env: BTreeMap<String, String>,
    /// Variables that its profile sets for it.
    pub presets: Vec<Preset>,
    /// What of the user's environment it sees.
    pub env_policy: EnvPolicy,
    /// Secrets in the user's environment that it sees in spite of that.
    pub keeps: Vec<String>,
    /// Whose home directory it works with.
    pub home_policy: HomePolicy,
    /// Variables that say where it keeps its settings and logins, each with the place below its home.
    pub homes: Vec<(String, String)>,
    /// Secrets it gets.
    pub credentials: Vec<Credential>,
    /// What is answered when it asks for permission, if the user has said so.
    pub permissions: Option<PermissionMode>,
    /// Further MCP servers, as ACP describes them.
    pub mcp_servers: Vec<Value>,
    /// Directories it may work in beside the working directory.
    pub additional_directories: Vec<PathBuf>,
    /// How it learns of tools that have changed.
    pub reload: ReloadStrategy,
    /// How it reaches the extensions' tools.
    pub mcp: McpTransport,
    /// Whether it may read and write files through us.
    pub client_fs: bool,
    /// Whether it may run commands through us.
    pub client_terminal: bool,
    /// What it is told with the first prompt.
    pub startup_prompt: Option<String>,
    /// The model it shall use.
    pub model: Option<String>,
    /// The mode its sessions begin in.
    pub mode: Option<String>,
    /// The npm package its program comes in.
    pub package: Option<String>,
    /// How a person logs in.
    pub login: Option<String>,
    /// Arguments that make its program say its version and end; none: it cannot be asked.
    pub version_args: Vec<String>,
    /// The mode of its sessions in which it asks a person, where the usual one does not.
    pub ask_mode: Option<String>,
    /// How long it may take to start, if not as long as usual.
    pub start_deadline: Option<Duration>,
    /// More for every session that is opened on it: fields of `session/new`.
    pub session_params: Value,
}

/// There is no such agent, or it is described in a way that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// Neither built in nor configured.
    #[error("there is no agent \"{name}\"; there are: {}", .known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// Every agent there is.
        known: Vec<String>,
    },
    /// The configuration wants to begin with something that is not built in.
    #[error(
        "[agents.{agent}] begins with the profile \"{profile}\", which does not exist; there are: {}",
        .known.join(", ")
    )]
    Profile {
        /// The agent.
        agent: String,
        /// What it wants to begin with.
        profile: String,
        /// Every profile there is.
        known: Vec<String>,
    },
    /// The agent is not built in, and the configuration does not say what to start.
    #[error("[agents.{agent}] has no command; add one, or a profile to begin with")]
    NoCommand {
        /// The agent.
        agent: String,
    },
    /// The command is not one.
    #[error(transparent)]
    Command(#[from] CommandError),
}

impl AgentDefinition {
    /// The agent of this name. `tenon` is our own program, which is the demo agent as well.
    pub fn resolve(
        name: &str,
        config: &AgentsConfig,
        tenon: &Path,
    ) -> Result<Self, DefinitionError> {
        let settings = config.agents.get(name);
        let profile = match settings.and_then(|settings| settings.profile.as_deref()) {
            Some(wanted) => {
                Some(profiles::find(wanted).ok_or_else(|| DefinitionError::Profile {
                    agent: name.to_owned(),
                    profile: wanted.to_owned(),
                    known: PROFILES.iter().map(|profile| profile.name.to_owned()).collect(),
                })?)
            }
            None => profiles::find(name),
        };
        if settings.is_none() && profile.is_none() {
            let known = names(config);
            return Err(DefinitionError::Unknown { name: name.to_owned(), known });
        }
        let nothing = AgentSettings::default();
        Self::build(name, settings.unwrap_or(&nothing), profile, tenon)
    }

    /// Every agent there is, by name.
    pub fn all(config: &AgentsConfig, tenon: &Path) -> Vec<Result<Self, DefinitionError>> {
        names(config).iter().map(|name| Self::resolve(name, config, tenon)).collect()
    }

    /// Where its program is, if it is installed in one of the folders of `path`. A relative path is one
    /// from the directory this program is in.
    pub fn locate(&self, path: &OsStr) -> Option<PathBuf> {
        let here = std::env::current_dir().unwrap_or_default();
        self.command.find(path, &here).ok()
    }

    /// The name of whoever made it, for the agent's environment.
    pub fn provider(&self) -> &str {
        self.profile.as_deref().unwrap_or(&self.name)
    }

    fn build(
        name: &str,
        settings: &AgentSettings,
        profile: Option<&Profile>,
        tenon: &Path,
    ) -> Result<Self, DefinitionError> {
        let usual = profile.map(|profile| usual_command(profile, tenon));
        let mut command = match (&settings.command, &usual) {
            (Some(command), _) => CommandLine::parse(command)?,
            (None, Some(usual)) => usual.clone(),
            (None, None) => {
                return Err(DefinitionError::NoCommand { agent: name.to_owned() });
            }
        };
        let is_usual_program = usual.as_ref().is_some_and(|usual| {
            Path::new(&usual.program).file_name() == Path::new(&command.program).file_name()
        });
        let version_args = profile.map(|profile| version_args(profile, &command));
        command.args.extend(settings.args.iter().cloned());
        let owned = |text: Option<&'static str>| text.map(str::to_owned);
        let title = match profile {
            Some(profile) if profile.name == name => profile.title.to_owned(),
            Some(profile) => format!("{} ({name})", profile.title),
            None => name.to_owned(),
        };
        let list = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        Ok(Self {
            name: name.to_owned(),
            title,
            profile: profile.map(|profile| profile.name.to_owned()),
            command,
            env: settings.env.clone(),
            presets: profile.map(|profile| profile.presets.to_vec()).unwrap_or_default(),
            env_policy: settings.env_policy.unwrap_or(EnvPolicy::Filtered),
            keeps: profile.map(|profile| list(profile.keeps)).unwrap_or_default(),
            home_policy: settings.home_policy.unwrap_or(HomePolicy::Operator),
            homes: profile.map(homes).unwrap_or_default(),
            credentials: settings.credentials.clone(),
            permissions: settings.permissions,
            mcp_servers: settings.mcp_servers.iter().map(acp_server).collect(),
            additional_directories: settings.additional_directories.clone(),
            reload: settings
                .reload
                .or(profile.map(|profile| profile.reload))
                .unwrap_or(ReloadStrategy::ListChanged),
            mcp: settings.mcp.or(profile.map(|profile| profile.mcp)).unwrap_or(McpTransport::Http),
            client_fs: settings
                .client_fs
                .unwrap_or(profile.is_some_and(|profile| profile.client_fs)),
            client_terminal: settings
                .client_terminal
                .unwrap_or(profile.is_some_and(|profile| profile.client_terminal)),
            startup_prompt: settings.startup_prompt.clone(),
            model: settings.model.clone(),
            mode: settings.mode.clone(),
            // Another program comes from somewhere else.
            package: owned(profile.and_then(|profile| profile.package))
                .filter(|_| is_usual_program),
            login: owned(profile.and_then(|profile| profile.login)),
            version_args: version_args.unwrap_or_default(),
            ask_mode: owned(profile.and_then(|profile| profile.ask_mode)),
            start_deadline: settings.start_deadline_s.map(|it| Duration::from_secs(it.into())),
            session_params: settings.session_params.clone().unwrap_or_default(),
        })
    }
}

/// The names of all agents, in order.
fn names(config: &AgentsConfig) -> Vec<String> {
    let built_in = PROFILES.iter().map(|profile| profile.name.to_owned());
    built_in.chain(config.agents.keys().cloned()).collect::<BTreeSet<_>>().into_iter().collect()
}

fn usual_command(profile: &Profile, tenon: &Path) -> CommandLine {
    let program = match profile.program {
        Some(program) => program.to_owned(),
        None => tenon.to_string_lossy().into_owned(),
    };
    CommandLine { program, args: profile.args.iter().map(|&arg| arg.to_owned()).collect() }
}

fn homes(profile: &Profile) -> Vec<(String, String)> {
    profile.homes.iter().map(|&(name, place)| (name.to_owned(), place.to_owned())).collect()
}

/// What to call a command with to learn its version. The profile's own arguments make it serve, so those
/// are left out; what the user has put before them belongs to the program.
fn version_args(profile: &Profile, command: &CommandLine) -> Vec<String> {
    let program = Path::new(&command.program).file_name().and_then(OsStr::to_str);
    if profile.version_args.is_empty() || program.is_some_and(|name| FETCHERS.contains(&name)) {
        return Vec::new();
    }
    let count = command.args.len().saturating_sub(profile.args.len());
    let (first, last) = command.args.split_at(count);
    let first = if last == profile.args { first } else { &command.args };
    first.iter().cloned().chain(profile.version_args.iter().map(|&arg| arg.to_owned())).collect()
}

/// An MCP server as ACP describes it.
fn acp_server(server: &McpServer) -> Value {
    let pairs = |map: &BTreeMap<String, String>| -> Vec<Value> {
        map.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
    };
    match server {
        McpServer::Stdio { name, command, args, env } => {
            json!({ "name": name, "command": command, "args": args, "env": pairs(env) })
        }
        McpServer::Http { name, url, headers } => {
            json!({ "type": "http", "name": name, "url": url, "headers": pairs(headers) })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const TENON: &str = "/opt/tenon/bin/tenon";

    fn config(agents: impl IntoIterator<Item = (&'static str, AgentSettings)>) -> AgentsConfig {
        let agents = agents.into_iter().map(|(name, settings)| (name.to_owned(), settings));
        AgentsConfig { agents: agents.collect(), ..AgentsConfig::default() }
    }

    fn resolve(name: &str, config: &AgentsConfig) -> Result<AgentDefinition, DefinitionError> {
        AgentDefinition::resolve(name, config, Path::new(TENON))
    }

    fn settings(command: &str) -> AgentSettings {
        AgentSettings { command: Some(command.to_owned()), ..AgentSettings::default() }
    }

    #[test]
    fn every_built_in_agent_is_there_without_any_configuration() {
        let all: Vec<_> = AgentDefinition::all(&AgentsConfig::default(), Path::new(TENON))
            .into_iter()
            .map(|agent| agent.unwrap())
            .collect();
        let commands: Vec<_> =
            all.iter().map(|agent| (agent.name.as_str(), agent.command.to_string())).collect();
        let expected = [
            ("claude", "claude-agent-acp"),
            ("codex", "codex-acp"),
            ("copilot", "copilot --acp"),
            ("demo", "/opt/tenon/bin/tenon demo-agent"),
            ("gemini", "gemini --acp"),
            ("opencode", "opencode acp"),
            ("pi", "pi-acp"),
            ("qwen", "qwen --acp"),
        ]
        .map(|(name, command)| (name, command.to_owned()));
        assert_eq!(commands, expected);
        let gemini = &all[4];
        assert_eq!(gemini.version_args, ["--version"]);
        assert_eq!(gemini.package.as_deref(), Some("@google/gemini-cli"));
        assert_eq!(
            (gemini.env_policy, gemini.home_policy),
            (EnvPolicy::Filtered, HomePolicy::Operator)
        );
        assert_eq!(gemini.permissions, None);
        assert!(gemini.keeps.contains(&"GEMINI_API_KEY".to_owned()));
        assert!(all[6].version_args.is_empty());
        assert_eq!(all[7].reload, ReloadStrategy::Dispatcher);
    }

    #[test]
    fn an_unknown_agent_is_an_error_that_lists_those_there_are() {
        let error = resolve("eliza", &config([("mine", settings("x"))])).unwrap_err().to_string();
        assert!(error.contains("\"eliza\""), "{error}");
        for name in ["claude", "qwen", "mine"] {
            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn a_table_with_the_name_of_a_built_in_agent_changes_that_one() {
        let changed = AgentSettings {
            args: vec!["--model".into(), "x".into()],
            model: Some("x".into()),
            reload: Some(ReloadStrategy::None),
            ..AgentSettings::default()
        };
        let gemini = resolve("gemini", &config([("gemini", changed)])).unwrap();
        assert_eq!(gemini.command.to_string(), "gemini --acp --model x");
        assert_eq!(gemini.version_args, ["--version"]);
        assert_eq!(gemini.title, "Gemini CLI");
        assert_eq!(gemini.reload, ReloadStrategy::None);
        assert_eq!(gemini.package.as_deref(), Some("@google/gemini-cli"));
    }

    #[test]
    fn an_agent_of_the_users_own_may_begin_with_a_profile() {
        let work = AgentSettings {
            profile: Some("opencode".into()),
            ..settings("npx -y opencode-ai acp")
        };
        let agent = resolve("work", &config([("work", work)])).unwrap();
        assert_eq!(agent.title, "opencode (work)");
        assert_eq!(agent.provider(), "opencode");
        assert_eq!(agent.command.args, ["-y", "opencode-ai", "acp"]);
        assert_eq!(agent.presets, profiles::find("opencode").unwrap().presets);
        // Its program is npx, which comes from elsewhere and might begin to install.
        assert_eq!(agent.package, None);
        assert!(agent.version_args.is_empty());
        let wrong = AgentSettings { profile: Some("eliza".into()), ..settings("x") };
        let error = resolve("work", &config([("work", wrong)])).unwrap_err().to_string();
        assert!(error.contains("[agents.work]") && error.contains("opencode"), "{error}");
    }

    #[test]
    fn an_agent_without_a_profile_needs_a_command() {
        let own = settings("my-agent --acp 'a b'");
        let config = config([("own", own), ("empty", AgentSettings::default())]);
        let agent = resolve("own", &config).unwrap();
        assert_eq!(agent.command.args, ["--acp", "a b"]);
        assert_eq!((agent.title.as_str(), agent.provider()), ("own", "own"));
        assert_eq!((agent.reload, agent.mcp), (ReloadStrategy::ListChanged, McpTransport::Http));
        assert!(agent.version_args.is_empty() && !agent.client_fs && agent.login.is_none());
        let error = resolve("empty", &config).unwrap_err();
        assert_eq!(error, DefinitionError::NoCommand { agent: "empty".into() });
        assert!(resolve("bad", &self::config([("bad", settings("x 'y"))])).is_err());
    }

    #[test]
    fn one_mistake_does_not_hide_the_other_agents() {
        let config = config([("bad", settings("x 'y"))]);
        let all = AgentDefinition::all(&config, Path::new(TENON));
        assert_eq!(all.iter().filter(|agent| agent.is_err()).count(), 1);
        assert_eq!(all.len(), PROFILES.len() + 1);
    }

    #[test]
    fn a_version_is_asked_for_without_the_arguments_that_make_it_serve() {
        let version = |name: &str, command: &str| {
            let with = AgentSettings { profile: Some(name.to_owned()), ..settings(command) };
            resolve("x", &config([("x", with)])).unwrap().version_args.join(" ")
        };
        assert_eq!(version("opencode", "/opt/opencode acp"), "--version");
        assert_eq!(version("opencode", "/opt/opencode serve"), "serve --version");
        assert_eq!(version("claude", "node /opt/index.js"), "/opt/index.js --version");
        assert_eq!(version("claude", "/usr/bin/npx -y claude-agent-acp"), "");
        assert_eq!(version("pi", "pi-acp"), "");
    }

    #[test]
    fn mcp_servers_are_described_as_acp_does() {
        let map = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        let servers = vec![
            McpServer::Stdio {
                name: "local".into(),
                command: "/bin/x".into(),
                args: vec!["-v".into()],
                env: map.clone(),
            },
            McpServer::Http { name: "far".into(), url: "http://h/mcp".into(), headers: map },
        ];
        let with = AgentSettings { mcp_servers: servers, ..AgentSettings::default() };
        let agent = resolve("claude", &config([("claude", with)])).unwrap();
        let pair = json!([{ "name": "A", "value": "1" }]);
        assert_eq!(
            agent.mcp_servers,
            [
                json!({ "name": "local", "command": "/bin/x", "args": ["-v"], "env": pair }),
                json!({ "type": "http", "name": "far", "url": "http://h/mcp", "headers": pair }),
            ]
        );
        for server in &agent.mcp_servers {
            let known = serde_json::from_value::<agent_client_protocol_schema::v1::McpServer>(
                server.clone(),
            );
            assert!(known.is_ok(), "{known:?}");
        }
    }

    #[test]
    fn an_installed_agent_is_located() {
        let temp = tempfile::tempdir().unwrap();
        let agent = resolve("gemini", &AgentsConfig::default()).unwrap();
        assert_eq!(agent.locate(temp.path().as_os_str()), None);
        let program = temp.path().join("gemini");
        std::fs::write(&program, "").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(agent.locate(temp.path().as_os_str()), Some(program));
    }
}
