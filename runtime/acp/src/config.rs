//! The user's configuration of coding agents: `[agents.NAME]` and `default-agent` in `config.toml`.
//!
//! These are the words of the file. What they mean for a program that is started is the business of whoever
//! starts it.

mod words;

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use tenon_host::config::Config;
use tenon_host::config::ConfigError;

pub use self::words::EnvPolicy;
pub use self::words::HomePolicy;
pub use self::words::McpTransport;
pub use self::words::PermissionMode;
pub use self::words::ReloadStrategy;
pub use self::words::UnknownWord;

/// The longest name of an agent, in bytes. It becomes part of the names of files and folders.
pub const MAX_AGENT_NAME_BYTES: usize = 64;

/// The name under which Tenon offers the extensions' tools to an agent.
const OWN_SERVER: &str = "tenon";

/// The user's configuration of agents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentsConfig {
    /// By agent: what is different from the built-in agent of this name, or another agent.
    pub agents: BTreeMap<String, AgentSettings>,
    /// The agent that is used when none is named.
    pub default_agent: Option<String>,
}

/// The configuration of agents could not be used.
#[derive(Debug, thiserror::Error)]
pub enum AgentsConfigError {
    /// The file cannot be read, or is not what it should be.
    #[error(transparent)]
    File(#[from] ConfigError),
    /// An agent cannot be configured like this.
    #[error("{path}: [agents.\"{agent}\"]: {problem}")]
    Agent {
        /// The file.
        path: PathBuf,
        /// The entry.
        agent: String,
        /// What is wrong.
        problem: String,
    },
}

impl AgentsConfig {
    /// Reads the configuration of a home folder; without a file it is empty.
    pub fn read(home: &Path) -> Result<Self, AgentsConfigError> {
        let config = Config::read(home)?;
        let agents: BTreeMap<String, AgentSettings> = config.agents()?;
        for (agent, settings) in &agents {
            if let Some(problem) = settings.problem(agent) {
                let (path, agent) = (home.join(tenon_host::config::FILE_NAME), agent.clone());
                return Err(AgentsConfigError::Agent { path, agent, problem });
            }
        }
        Ok(Self { agents, default_agent: config.default_agent })
    }
}

/// What the user has configured for one agent. A table with the name of a built-in agent begins with that
/// one; so does a table that names it as its `profile`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct AgentSettings {
    /// The built-in agent to begin with.
    pub profile: Option<String>,
    /// The program and its arguments as one would type them. They are taken apart like in a shell, but no
    /// shell is started.
    pub command: Option<String>,
    /// Further arguments.
    pub args: Vec<String>,
    /// Variables that are set for it.
    pub env: BTreeMap<String, String>,
    /// What of the user's environment it sees.
    pub env_policy: Option<EnvPolicy>,
    /// Whose home directory it works with.
    pub home_policy: Option<HomePolicy>,
    /// Secrets it gets.
    pub credentials: Vec<Credential>,
    /// What is answered when it asks for permission.
    pub permissions: Option<PermissionMode>,
    /// Further MCP servers it shall use.
    pub mcp_servers: Vec<McpServer>,
    /// Directories it may work in beside the working directory.
    pub additional_directories: Vec<PathBuf>,
    /// How it learns of tools that have changed.
    pub reload: Option<ReloadStrategy>,
    /// How it reaches the extensions' tools.
    pub mcp: Option<McpTransport>,
    /// Whether it may read and write files through Tenon.
    pub client_fs: Option<bool>,
    /// Whether it may run commands through Tenon.
    pub client_terminal: Option<bool>,
    /// What it is told with the first prompt of a session.
    pub startup_prompt: Option<String>,
    /// The model it shall use.
    pub model: Option<String>,
    /// The mode that its sessions begin in.
    pub mode: Option<String>,
    /// How long it may take to start, in seconds.
    pub start_deadline_s: Option<u32>,
    /// More for every session that is opened on it: fields of ACP's `session/new`.
    pub session_params: Option<serde_json::Value>,
}

impl AgentSettings {
    /// What is wrong with the settings of the agent with this name, beyond what their types say.
    fn problem(&self, name: &str) -> Option<String> {
        if !is_agent_name(name) {
            return Some(format!(
                "a name has up to {MAX_AGENT_NAME_BYTES} letters, digits, '-', '_' and '.', and begins with a \
                 letter or a digit"
            ));
        }
        if self.start_deadline_s == Some(0) {
            return Some("start-deadline-s: nothing starts in no time at all".to_owned());
        }
        if let Some(variable) = self.env.keys().find(|variable| !is_variable(variable)) {
            return Some(format!("env: {variable:?} cannot be the name of a variable"));
        }
        if let Some((variable, _)) = self.env.iter().find(|(_, value)| value.contains('\0')) {
            return Some(format!("env: the value of {variable} contains a NUL character"));
        }
        let mut slots: Vec<&str> = self.credentials.iter().map(|secret| &*secret.slot).collect();
        slots.sort_unstable();
        if let Some(twice) = slots.windows(2).find(|pair| pair[0] == pair[1]) {
            return Some(format!("credentials: the slot {} is filled twice", twice[0]));
        }
        let mut servers: Vec<&str> = self.mcp_servers.iter().map(McpServer::name).collect();
        servers.sort_unstable();
        let twice = servers.windows(2).find(|pair| pair[0] == pair[1])?;
        Some(format!("mcp-servers: two are called \"{}\"", twice[0]))
    }
}

/// Whether an agent can be called that: its name becomes part of paths.
pub fn is_agent_name(name: &str) -> bool {
    name.len() <= MAX_AGENT_NAME_BYTES
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Whether an environment can have a variable of this name.
fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

/// A secret that an agent gets.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawCredential")]
pub struct Credential {
    /// The variable that the agent finds it in.
    pub slot: String,
    /// Where it comes from.
    pub from: SecretSource,
    /// Whether the agent is not started without it.
    pub required: bool,
}

/// Where a secret comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// `env:NAME`: a variable of the environment that Tenon was started with.
    Env(String),
}

impl std::fmt::Display for SecretSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Env(variable) => write!(f, "env:{variable}"),
        }
    }
}

/// As it stands in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCredential {
    slot: String,
    from: String,
    #[serde(default = "yes")]
    required: bool,
}

fn yes() -> bool {
    true
}

impl TryFrom<RawCredential> for Credential {
    type Error = String;

    fn try_from(raw: RawCredential) -> Result<Self, String> {
        let RawCredential { slot, from, required } = raw;
        if !is_variable(&slot) {
            return Err(format!("{slot:?} cannot be the name of a variable"));
        }
        match from.strip_prefix("env:") {
            Some(variable) if is_variable(variable) => {
                Ok(Self { slot, from: SecretSource::Env(variable.to_owned()), required })
            }
            _ => Err(format!("{from:?} is not where a secret can come from; write \"env:NAME\"")),
        }
    }
}

/// An MCP server that an agent shall use.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawMcpServer")]
pub enum McpServer {
    /// A program that the agent starts.
    Stdio {
        /// The server's name.
        name: String,
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables that are set for it.
        env: BTreeMap<String, String>,
    },
    /// An address that the agent connects to.
    Http {
        /// The server's name.
        name: String,
        /// The address.
        url: String,
        /// Headers that are sent with every request.
        headers: BTreeMap<String, String>,
    },
}

impl McpServer {
    /// The server's name.
    pub fn name(&self) -> &str {
        match self {
            Self::Stdio { name, .. } | Self::Http { name, .. } => name,
        }
    }
}

/// As it stands in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMcpServer {
    name: String,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

impl TryFrom<RawMcpServer> for McpServer {
    type Error = String;

    fn try_from(raw: RawMcpServer) -> Result<Self, String> {
        let RawMcpServer { name, command, args, env, url, headers } = raw;
        if name.is_empty() {
            return Err("an MCP server must have a name".to_owned());
        }
        if name == OWN_SERVER {
            return Err(format!("\"{OWN_SERVER}\" is the name of Tenon's own MCP server"));
        }
        match (command, url) {
            (Some(command), None) if !command.is_empty() => {
                if !headers.is_empty() {
                    return Err(format!("MCP server \"{name}\": headers go with a url"));
                }
                Ok(Self::Stdio { name, command, args, env })
            }
            (None, Some(url)) => {
                if !args.is_empty() || !env.is_empty() {
                    return Err(format!("MCP server \"{name}\": args and env go with a command"));
                }
                if !url.starts_with("http://") && !url.starts_with("https://") {
                    return Err(format!(
                        "MCP server \"{name}\": {url:?} does not begin with http:// or https://"
                    ));
                }
                Ok(Self::Http { name, url, headers })
            }
            _ => Err(format!("MCP server \"{name}\" must have either a command or a url")),
        }
    }
}

#[cfg(test)]
mod tests {
    use tenon_host::config::FILE_NAME;

    use super::*;

    fn read(text: &str) -> Result<AgentsConfig, String> {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join(FILE_NAME), text).unwrap();
        AgentsConfig::read(temp.path()).map_err(|error| error.to_string())
    }

    fn refused(text: &str, because: &str) {
        let message = read(text).unwrap_err();
        assert!(message.contains(because), "{message}");
        assert!(message.contains(FILE_NAME), "{message}");
    }

    #[test]
    fn an_agent_is_read_with_everything_that_can_be_said_about_it() {
        let config = read(
            r#"
            default-agent = "mine"
            [agents.mine]
            profile = "codex"
            command = "npx -y 'some agent'"
            args = ["--fast"]
            env-policy = "isolated"
            home-policy = "isolated"
            credentials = [
                { slot = "OPENAI_API_KEY", from = "env:WORK_KEY" },
                { slot = "OTHER", from = "env:OTHER", required = false },
            ]
            permissions = "approve-reads"
            mcp-servers = [
                { name = "local", command = "/bin/server", args = ["-v"], env = { A = "1" } },
                { name = "remote", url = "https://example.com/mcp", headers = { X = "y" } },
            ]
            additional-directories = ["/srv"]
            reload = "dispatcher"
            mcp = "stdio"
            client-fs = true
            client-terminal = false
            startup-prompt = "Be brief."
            model = "large"
            mode = "plan"
            [agents.mine.env]
            LEVEL = "3"
            "#,
        )
        .unwrap();
        assert_eq!(config.default_agent.as_deref(), Some("mine"));
        let mine = &config.agents["mine"];
        let map = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let expected = AgentSettings {
            profile: Some("codex".into()),
            command: Some("npx -y 'some agent'".into()),
            args: vec!["--fast".into()],
            env: map("LEVEL", "3"),
            env_policy: Some(EnvPolicy::Isolated),
            home_policy: Some(HomePolicy::Isolated),
            credentials: vec![
                Credential {
                    slot: "OPENAI_API_KEY".into(),
                    from: SecretSource::Env("WORK_KEY".into()),
                    required: true,
                },
                Credential {
                    slot: "OTHER".into(),
                    from: SecretSource::Env("OTHER".into()),
                    required: false,
                },
            ],
            permissions: Some(PermissionMode::ApproveReads),
            mcp_servers: vec![
                McpServer::Stdio {
                    name: "local".into(),
                    command: "/bin/server".into(),
                    args: vec!["-v".into()],
                    env: map("A", "1"),
                },
                McpServer::Http {
                    name: "remote".into(),
                    url: "https://example.com/mcp".into(),
                    headers: map("X", "y"),
                },
            ],
            additional_directories: vec!["/srv".into()],
            reload: Some(ReloadStrategy::Dispatcher),
            mcp: Some(McpTransport::Stdio),
            client_fs: Some(true),
            client_terminal: Some(false),
            startup_prompt: Some("Be brief.".into()),
            model: Some("large".into()),
            mode: Some("plan".into()),
            start_deadline_s: None,
            session_params: None,
        };
        assert_eq!(*mine, expected);
    }

    #[test]
    fn everything_may_be_left_out() {
        let config = read("[agents.claude]\n").unwrap();
        assert_eq!(config.agents["claude"], AgentSettings::default());
        assert_eq!(config.default_agent, None);
    }

    #[test]
    fn a_mistake_is_shown_with_its_place_in_the_file() {
        let message = read("[trust]\nreview = true\n\n[agents.a]\ncomand = \"x\"\n").unwrap_err();
        assert!(message.contains("line 5, column 1"), "{message}");
        assert!(message.contains("5 | comand = \"x\""), "{message}");
        assert!(message.contains("unknown field `comand`, expected one of `profile`"), "{message}");
    }

    #[test]
    fn mistakes_elsewhere_in_the_file_count_too() {
        refused("agents = 1\n", "expected a map");
        refused("[agents.a]\n[agent.b]\n", "agent");
        refused("[extensions.a]\nheap-mb = 1\n[agents.a]\n", "heap-mb");
    }

    #[test]
    fn a_mistake_is_named_with_what_would_be_right() {
        refused("[agents.a]\ncomand = \"x\"\n", "comand");
        refused("[agents.a]\npermissions = \"yes\"\n", "approve-reads");
        refused("[agents.a]\nenv-policy = \"none\"\n", "filtered");
        refused("[agents.a]\nhome-policy = \"mine\"\n", "operator");
        refused("[agents.a]\nreload = \"often\"\n", "list-changed");
        refused("[agents.a]\nmcp = \"sse\"\n", "stdio");
        refused("[agents.a]\nenv = { A = 1 }\n", "string");
    }

    #[test]
    fn a_secret_comes_from_a_variable_and_has_a_slot_of_its_own() {
        let with = |list: &str| format!("[agents.a]\ncredentials = [{list}]\n");
        refused(&with("{ slot = \"A\", from = \"secret\" }"), "env:NAME");
        refused(&with("{ slot = \"A\", from = \"env:\" }"), "env:NAME");
        refused(&with("{ slot = \"A=B\", from = \"env:A\" }"), "name of a variable");
        refused(&with("{ slot = \"A\" }"), "from");
        let twice = "{ slot = \"A\", from = \"env:A\" }, { slot = \"A\", from = \"env:B\" }";
        refused(&with(twice), "the slot A is filled twice");
        assert_eq!(SecretSource::Env("A".into()).to_string(), "env:A");
    }

    #[test]
    fn an_mcp_server_is_a_program_or_an_address() {
        let with = |list: &str| format!("[agents.a]\nmcp-servers = [{list}]\n");
        refused(&with("{ name = \"x\" }"), "either a command or a url");
        refused(
            &with("{ name = \"x\", command = \"a\", url = \"http://b\" }"),
            "either a command or a url",
        );
        refused(&with("{ name = \"x\", command = \"\" }"), "either a command or a url");
        refused(&with("{ name = \"x\", url = \"b\" }"), "http://");
        refused(&with("{ name = \"x\", url = \"http://b\", args = [\"c\"] }"), "go with a command");
        refused(&with("{ name = \"x\", command = \"b\", headers = { A = \"c\" } }"), "with a url");
        refused(&with("{ name = \"\", command = \"b\" }"), "must have a name");
        refused(&with("{ name = \"tenon\", command = \"b\" }"), "Tenon's own");
        let twice = "{ name = \"x\", command = \"b\" }, { name = \"x\", url = \"http://b\" }";
        refused(&with(twice), "two are called \"x\"");
    }

    #[test]
    fn names_that_would_lead_out_of_a_folder_are_refused() {
        for name in ["", "../up", "a/b", ".", "..", "-x", "a b"] {
            refused(&format!("[agents.\"{name}\"]\n"), "a name has up to");
            assert!(!is_agent_name(name), "{name:?}");
        }
        assert!(is_agent_name(&"a".repeat(MAX_AGENT_NAME_BYTES)));
        assert!(!is_agent_name(&"a".repeat(MAX_AGENT_NAME_BYTES + 1)));
        assert!(is_agent_name("claude-4.work_2"));
    }

    #[test]
    fn a_variable_that_no_environment_can_have_is_refused() {
        refused("[agents.a]\nenv = { \"A=B\" = \"c\" }\n", "name of a variable");
        refused("[agents.a]\nenv = { \"\" = \"c\" }\n", "name of a variable");
        refused("[agents.a]\nenv = { A = \"b\\u0000\" }\n", "NUL");
    }
}
