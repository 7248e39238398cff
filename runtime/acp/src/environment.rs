//! The environment of an agent: what it sees of the user's, and what is set for it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;

use serde_json::Value;
use tenon_host::environment::is_secret;

use crate::config::EnvPolicy;
use crate::config::HomePolicy;
use crate::config::SecretSource;
use crate::definition::AgentDefinition;
use crate::profiles;
use crate::profiles::Preset;

/// What our own variables begin with.
const OWN_PREFIX: &str = "TENON_";

/// The way to the person's keys, which never leave their place. Agents push to repositories with it.
const SSH_AGENT: &str = "SSH_AUTH_SOCK";

/// The `PATH` of an agent when the user has none: where programs usually are.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Nobody else's to read: logins are kept there.
const HOME_MODE: u32 = 0o700;

/// What an agent sees whose environment is isolated.
const OPERATIONAL: [&str; 21] = [
    "ALL_PROXY",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "PATH",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// And what begins like this.
const OPERATIONAL_PREFIXES: [&str; 2] = ["LC_", "XDG_"];

/// The folders that programs keep their things in, each with its place below a home directory.
const XDG_HOMES: [(&str, &str); 4] = [
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
];

/// An agent's environment cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// A secret that the agent needs is not there.
    #[error(
        "the agent \"{agent}\" needs a secret for {slot}, but the variable {variable} is not set; set it, or \
         change the credentials of [agents.{agent}]"
    )]
    Credential {
        /// The agent.
        agent: String,
        /// The variable that the agent looks at.
        slot: String,
        /// The variable that the secret should come from.
        variable: String,
    },
    /// The agent's own home directory cannot be made.
    #[error("the agent's folder {} cannot be made: {source}", .path.display())]
    Home {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// How an agent proves who pays for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMode {
    /// It has logins of its own.
    NativeCli,
    /// It is given secrets.
    BoundSecret,
    /// Nobody pays.
    None,
}

impl AuthMode {
    /// How this agent does.
    pub fn of(definition: &AgentDefinition) -> Self {
        if !definition.credentials.is_empty() {
            Self::BoundSecret
        } else if definition.profile.as_deref() == Some(profiles::DEMO) {
            Self::None
        } else {
            Self::NativeCli
        }
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NativeCli => "native_cli",
            Self::BoundSecret => "bound_secret",
            Self::None => "none",
        }
    }
}

/// What an environment is made from.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// The agent.
    pub definition: &'a AgentDefinition,
    /// The user's environment.
    pub host: &'a [(String, String)],
    /// Our own program.
    pub tenon: &'a Path,
    /// Tenon's folder.
    pub home: &'a Path,
    /// The session that the agent is started for.
    pub session_id: Option<&'a str>,
}

impl Sources<'_> {
    /// The variables the agent gets.
    pub fn variables(&self) -> Result<BTreeMap<String, String>, EnvironmentError> {
        let definition = self.definition;
        let mut variables: BTreeMap<String, String> =
            self.host.iter().filter(|(name, value)| self.sees(name, value)).cloned().collect();
        variables.extend(definition.env.clone());
        for preset in &definition.presets {
            apply(*preset, &mut variables);
        }
        self.bind_credentials(&mut variables)?;
        if definition.home_policy == HomePolicy::Isolated {
            self.move_home(&mut variables);
        }
        // Whatever was set for another agent that we were started by is not meant for this one.
        variables.retain(|name, _| !name.starts_with(OWN_PREFIX));
        variables.extend(self.own().map(|(name, value)| (name.to_owned(), value)));
        let path = variables.remove("PATH").unwrap_or_else(|| USUAL_PATH.to_owned());
        variables.insert("PATH".to_owned(), path_with(self.tenon, path));
        Ok(variables)
    }

    /// The folder of an agent that does not work with the user's home directory.
    pub fn isolated_home(&self) -> PathBuf {
        self.home.join("agents").join(file_name(&self.definition.name))
    }

    /// Makes the folders that the variables speak of, if the agent has a home of its own.
    pub fn make_home(&self) -> Result<(), EnvironmentError> {
        if self.definition.home_policy != HomePolicy::Isolated {
            return Ok(());
        }
        let home = self.isolated_home();
        let own = self.definition.homes.iter().map(|(_, place)| place.as_str());
        let places = [""].into_iter().chain(XDG_HOMES.map(|(_, place)| place)).chain(own);
        for place in places {
            let folder = home.join(place);
            let made = DirBuilder::new()
                .recursive(true)
                .mode(HOME_MODE)
                .create(&folder)
                // It may have been there before.
                .and_then(|()| {
                    let mode = std::fs::Permissions::from_mode(HOME_MODE);
                    std::fs::set_permissions(&folder, mode)
                });
            made.map_err(|source| EnvironmentError::Home { path: folder, source })?;
        }
        Ok(())
    }

    /// Whether a variable of the user's is the agent's to see.
    fn sees(&self, name: &str, value: &str) -> bool {
        match self.definition.env_policy {
            EnvPolicy::Filtered => {
                !is_secret(name, value)
                    || name == SSH_AGENT
                    || self.definition.keeps.iter().any(|kept| kept == name)
            }
            EnvPolicy::Isolated => {
                OPERATIONAL.contains(&name)
                    || OPERATIONAL_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            }
        }
    }

    fn bind_credentials(
        &self,
        variables: &mut BTreeMap<String, String>,
    ) -> Result<(), EnvironmentError> {
        for credential in &self.definition.credentials {
            let SecretSource::Env(source) = &credential.from;
            let value = self.host.iter().find(|(name, _)| name == source);
            match value.filter(|(_, value)| !value.is_empty()) {
                Some((_, value)) => {
                    variables.insert(credential.slot.clone(), value.clone());
                }
                None if credential.required => {
                    return Err(EnvironmentError::Credential {
                        agent: self.definition.name.clone(),
                        slot: credential.slot.clone(),
                        variable: source.clone(),
                    });
                }
                // What was configured is missing; something else is not used in its place.
                None => {
                    variables.remove(&credential.slot);
                }
            }
        }
        Ok(())
    }

    /// Points everything that speaks of a home directory to the agent's own.
    fn move_home(&self, variables: &mut BTreeMap<String, String>) {
        for name in profiles::home_variables() {
            variables.remove(name);
        }
        let home = self.isolated_home();
        let itself = [("HOME", ""), ("PROVIDER_HOME", "")];
        let own = self.definition.homes.iter().map(|(name, below)| (name.as_str(), below.as_str()));
        for (name, below) in itself.into_iter().chain(XDG_HOMES).chain(own) {
            // Joining nothing would add a slash.
            let place = if below.is_empty() { home.clone() } else { home.join(below) };
            variables.insert(name.to_owned(), place.to_string_lossy().into_owned());
        }
    }

    /// What we tell every agent.
    fn own(&self) -> impl Iterator<Item = (&'static str, String)> {
        let definition = self.definition;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let always = [
            ("TENON_AGENT", definition.name.clone()),
            ("TENON_AGENT_NAME", definition.name.clone()),
            ("TENON_BIN", text(self.tenon)),
            ("TENON_HOME", text(self.home)),
            ("TENON_PROVIDER", definition.provider().to_owned()),
            ("TENON_PROVIDER_AUTH_MODE", AuthMode::of(definition).as_str().to_owned()),
            ("TENON_PROVIDER_ENV_POLICY", definition.env_policy.to_string()),
            ("TENON_PROVIDER_HARNESS", "acp".to_owned()),
            ("TENON_PROVIDER_HOME_POLICY", definition.home_policy.to_string()),
        ];
        let sometimes = [
            ("TENON_MODEL", definition.model.clone()),
            ("TENON_SESSION_ID", self.session_id.map(str::to_owned)),
        ];
        let given = sometimes.into_iter().filter_map(|(name, value)| Some((name, value?)));
        always.into_iter().chain(given)
    }
}

/// A name that can be part of a path, whatever an embedding program calls its agents.
pub fn file_name(name: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let mut safe: String =
        name.chars().map(|c| if is_safe(c) || c == '.' { c } else { '_' }).collect();
    // Neither hidden nor a folder above.
    if !safe.starts_with(is_safe) {
        safe.insert(0, '_');
    }
    safe.truncate(100);
    safe
}

fn apply(preset: Preset, variables: &mut BTreeMap<String, String>) {
    match preset {
        Preset::Unless(name, value) => {
            variables.entry(name.to_owned()).or_insert_with(|| value.to_owned());
        }
        Preset::Below(name, ours) => {
            let theirs = variables.entry(name.to_owned()).or_insert_with(|| "{}".to_owned());
            let parsed = serde_json::from_str::<Value>(theirs).and_then(|theirs| {
                let ours = serde_json::from_str(ours)?;
                Ok((theirs, ours))
            });
            // What is no JSON is the agent's to complain about.
            if let Ok((mut merged, ours)) = parsed {
                lay_below(&mut merged, ours);
                *theirs = merged.to_string();
            }
        }
    }
}

/// Adds what is missing, at every depth.
fn lay_below(theirs: &mut Value, ours: Value) {
    let (Value::Object(theirs), Value::Object(ours)) = (theirs, ours) else { return };
    for (key, value) in ours {
        match theirs.get_mut(&key) {
            Some(existing) => lay_below(existing, value),
            None => {
                theirs.insert(key, value);
            }
        }
    }
}

/// A `PATH` on which our own program comes first.
fn path_with(tenon: &Path, path: String) -> String {
    let Some(folder) = tenon.parent() else { return path };
    let others = std::env::split_paths(&path).filter(|other| other != folder);
    let joined = std::env::join_paths(std::iter::once(folder.to_owned()).chain(others));
    // A folder with a colon in its name cannot be on it.
    joined.ok().and_then(|joined: OsString| joined.into_string().ok()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::AgentsConfig;
    use crate::config::Credential;

    const TENON: &str = "/opt/tenon/bin/tenon";

    fn definition(name: &str) -> AgentDefinition {
        AgentDefinition::resolve(name, &AgentsConfig::default(), Path::new(TENON)).unwrap()
    }

    fn host<const N: usize>(variables: [(&str, &str); N]) -> Vec<(String, String)> {
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    fn of(
        definition: &AgentDefinition,
        host: &[(String, String)],
    ) -> Result<BTreeMap<String, String>, EnvironmentError> {
        let (tenon, home) = (Path::new(TENON), Path::new("/home/me/.tenon"));
        Sources { definition, host, tenon, home, session_id: Some("s-1") }.variables()
    }

    fn credential(slot: &str, variable: &str, required: bool) -> Credential {
        let from = SecretSource::Env(variable.to_owned());
        Credential { slot: slot.to_owned(), from, required }
    }

    #[test]
    fn filtered_strips_secrets_but_keeps_the_agents_own_and_everything_else() {
        let host = host([
            ("PATH", "/bin"),
            ("HOME", "/home/me"),
            ("EDITOR", "vi"),
            ("ANTHROPIC_API_KEY", "a"),
            ("ANTHROPIC_BASE_URL", "http://h"),
            ("OPENAI_API_KEY", "o"),
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("DB_PASSWORD", "p"),
        ]);
        let claude = of(&definition("claude"), &host).unwrap();
        let seen = |name: &str| claude.get(name).map(String::as_str);
        assert_eq!(seen("ANTHROPIC_API_KEY"), Some("a"));
        assert_eq!(seen("ANTHROPIC_BASE_URL"), Some("http://h"));
        assert_eq!((seen("EDITOR"), seen("HOME")), (Some("vi"), Some("/home/me")));
        for secret in ["OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD"] {
            assert_eq!(seen(secret), None, "{secret}");
        }
        let codex = of(&definition("codex"), &host).unwrap();
        assert_eq!(codex.get("OPENAI_API_KEY").map(String::as_str), Some("o"));
        assert_eq!(codex.get("ANTHROPIC_API_KEY"), None);
    }

    #[test]
    fn filtered_strips_secrets_by_their_value_but_leaves_the_way_to_the_network() {
        let host = host([
            ("STORE", "redis://:hunter2@localhost"),
            ("GOPROXY", "https://me:hunter2@corp.example.org"),
            ("PLACE", "https://example.org/a"),
            ("HTTPS_PROXY", "http://me:hunter2@proxy:3128"),
        ]);
        let variables = of(&definition("claude"), &host).unwrap();
        let seen =
            ["STORE", "GOPROXY", "PLACE", "HTTPS_PROXY"].map(|it| variables.contains_key(it));
        assert_eq!(seen, [false, false, true, true]);
    }

    #[test]
    fn isolated_passes_on_only_what_a_program_needs_to_run() {
        let host = host([
            ("PATH", "/bin"),
            ("HOME", "/home/me"),
            ("LC_ALL", "C"),
            ("XDG_RUNTIME_DIR", "/run/me"),
            ("https_proxy", "http://p"),
            ("SSL_CERT_FILE", "/ca"),
            ("EDITOR", "vi"),
            ("ANTHROPIC_API_KEY", "a"),
            ("WORK_KEY", "w"),
        ]);
        let mut agent = definition("claude");
        agent.env_policy = EnvPolicy::Isolated;
        agent.credentials = vec![credential("ANTHROPIC_API_KEY", "WORK_KEY", true)];
        let variables = of(&agent, &host).unwrap();
        let names: Vec<_> =
            variables.keys().filter(|name| !name.starts_with(OWN_PREFIX)).cloned().collect();
        let expected = [
            "ANTHROPIC_API_KEY",
            "HOME",
            "LC_ALL",
            "PATH",
            "SSL_CERT_FILE",
            "XDG_RUNTIME_DIR",
            "https_proxy",
        ];
        assert_eq!(names, expected);
        assert_eq!(variables["ANTHROPIC_API_KEY"], "w");
        agent.credentials.clear();
        assert_eq!(of(&agent, &host).unwrap().get("ANTHROPIC_API_KEY"), None);
    }

    #[test]
    fn a_required_secret_that_is_missing_is_an_error_with_slot_and_variable() {
        let mut agent = definition("codex");
        agent.credentials = vec![credential("OPENAI_API_KEY", "WORK_KEY", true)];
        for host in [host([("PATH", "/bin")]), host([("WORK_KEY", "")])] {
            let error = of(&agent, &host).unwrap_err().to_string();
            assert!(error.contains("OPENAI_API_KEY") && error.contains("WORK_KEY"), "{error}");
            assert!(error.contains("codex"), "{error}");
        }
        agent.credentials = vec![credential("OPENAI_API_KEY", "WORK_KEY", false)];
        // The one of the user's environment was not meant.
        let host = host([("OPENAI_API_KEY", "private")]);
        assert_eq!(of(&agent, &host).unwrap().get("OPENAI_API_KEY"), None);
    }

    #[test]
    fn every_agent_is_told_where_it_runs_and_nothing_stale() {
        let stale = host([
            ("PATH", "/bin"),
            ("TENON_SESSION_ID", "old"),
            ("TENON_MODEL", "old"),
            ("TENON_MCP_TOKEN", "internal"),
            ("TENON_WHATEVER", "internal"),
        ]);
        let mut agent = definition("gemini");
        let ours = |variables: BTreeMap<String, String>| -> Vec<String> {
            let own = variables.into_iter().filter(|(name, _)| name.starts_with(OWN_PREFIX));
            own.map(|(name, value)| format!("{name}={value}")).collect()
        };
        let expected = [
            "TENON_AGENT=gemini",
            "TENON_AGENT_NAME=gemini",
            "TENON_BIN=/opt/tenon/bin/tenon",
            "TENON_HOME=/home/me/.tenon",
            "TENON_PROVIDER=gemini",
            "TENON_PROVIDER_AUTH_MODE=native_cli",
            "TENON_PROVIDER_ENV_POLICY=filtered",
            "TENON_PROVIDER_HARNESS=acp",
            "TENON_PROVIDER_HOME_POLICY=operator",
            "TENON_SESSION_ID=s-1",
        ];
        assert_eq!(ours(of(&agent, &stale).unwrap()), expected);

        agent.model = Some("large".into());
        agent.env.insert("TENON_AGENT".into(), "forged".into());
        let without_session = Sources {
            definition: &agent,
            host: &stale,
            tenon: Path::new(TENON),
            home: Path::new("/h"),
            session_id: None,
        };
        let variables = without_session.variables().unwrap();
        assert_eq!(variables["TENON_MODEL"], "large");
        assert_eq!(variables["TENON_AGENT"], "gemini");
        assert_eq!(variables.get("TENON_SESSION_ID"), None);
    }

    #[test]
    fn the_auth_mode_says_whether_secrets_are_bound() {
        let mut agent = definition("claude");
        assert_eq!(AuthMode::of(&agent).as_str(), "native_cli");
        agent.credentials = vec![credential("A", "B", false)];
        assert_eq!(AuthMode::of(&agent).as_str(), "bound_secret");
        assert_eq!(AuthMode::of(&definition("demo")).as_str(), "none");
    }

    #[test]
    fn our_own_folder_comes_first_on_the_path_and_once() {
        let path = |before: &[(String, String)]| {
            of(&definition("claude"), before).unwrap().remove("PATH").unwrap()
        };
        let with = |before: &str| path(&host([("PATH", before)]));
        assert_eq!(with("/bin:/usr/bin"), "/opt/tenon/bin:/bin:/usr/bin");
        assert_eq!(with("/bin:/opt/tenon/bin:/usr/bin"), "/opt/tenon/bin:/bin:/usr/bin");
        assert_eq!(with("/opt/tenon/bin:/bin:/opt/tenon/bin/"), "/opt/tenon/bin:/bin");
        assert_eq!(path(&[]), format!("/opt/tenon/bin:{USUAL_PATH}"));
        let mut agent = definition("claude");
        agent.env.insert("PATH".into(), "/own".into());
        assert_eq!(of(&agent, &host([("PATH", "/bin")])).unwrap()["PATH"], "/opt/tenon/bin:/own");
    }

    #[test]
    fn opencode_asks_unless_the_user_has_decided_otherwise() {
        let agent = definition("opencode");
        let permission = |host: &[(String, String)], agent: &AgentDefinition| {
            of(agent, host).unwrap().remove("OPENCODE_PERMISSION").unwrap()
        };
        let usual = permission(&[], &agent);
        assert!(usual.contains(r#""*":"ask""#) && usual.contains(r#""read":"allow""#), "{usual}");
        let chosen = host([("OPENCODE_PERMISSION", r#"{"*":"allow"}"#)]);
        assert_eq!(permission(&chosen, &agent), r#"{"*":"allow"}"#);
        let mut configured = agent;
        configured.env.insert("OPENCODE_PERMISSION".into(), "{}".into());
        assert_eq!(permission(&chosen, &configured), "{}");
    }

    #[test]
    fn codex_gets_its_switch_beside_what_the_user_has_configured() {
        let agent = definition("codex");
        let with = |before: &str| -> Value {
            let host = host([("CODEX_CONFIG", before)]);
            serde_json::from_str(&of(&agent, &host).unwrap()["CODEX_CONFIG"]).unwrap()
        };
        let on = json!({ "features": { "mcp_tool_list_changed": true } });
        let alone: Value = serde_json::from_str(&of(&agent, &[]).unwrap()["CODEX_CONFIG"]).unwrap();
        assert_eq!(alone, on);
        assert_eq!(
            with(r#"{"model":"x","features":{"hooks":true}}"#),
            json!({ "model": "x", "features": { "hooks": true, "mcp_tool_list_changed": true } })
        );
        let off = r#"{"features":{"mcp_tool_list_changed":false}}"#;
        assert_eq!(with(off), serde_json::from_str::<Value>(off).unwrap());
        let broken = host([("CODEX_CONFIG", "{nonsense")]);
        assert_eq!(of(&agent, &broken).unwrap()["CODEX_CONFIG"], "{nonsense");
    }

    #[test]
    fn an_isolated_home_is_private_and_everything_points_there() {
        let temp = tempfile::tempdir().unwrap();
        let mut agent = definition("codex");
        agent.home_policy = HomePolicy::Isolated;
        let operator = host([
            ("HOME", "/home/me"),
            ("CODEX_HOME", "/home/me/.codex"),
            ("CLAUDE_CONFIG_DIR", "/home/me/.claude"),
            ("XDG_CONFIG_HOME", "/home/me/.config"),
        ]);
        let sources = Sources {
            definition: &agent,
            host: &operator,
            tenon: Path::new(TENON),
            home: temp.path(),
            session_id: None,
        };
        let variables = sources.variables().unwrap();
        let home = temp.path().join("agents/codex");
        assert_eq!(sources.isolated_home(), home);
        for (name, place) in [
            ("HOME", ""),
            ("PROVIDER_HOME", ""),
            ("XDG_CACHE_HOME", ".cache"),
            ("XDG_CONFIG_HOME", ".config"),
            ("XDG_DATA_HOME", ".local/share"),
            ("XDG_STATE_HOME", ".local/state"),
            ("CODEX_HOME", ".codex"),
        ] {
            let expected = home.join(place);
            let expected = expected.to_str().unwrap().trim_end_matches('/');
            assert_eq!(variables[name], expected, "{name}");
        }
        assert_eq!(variables.get("CLAUDE_CONFIG_DIR"), None);
        assert_eq!(variables["TENON_PROVIDER_HOME_POLICY"], "isolated");

        std::fs::create_dir_all(home.join(".codex")).unwrap();
        std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o755)).unwrap();
        sources.make_home().unwrap();
        for place in ["", ".codex", ".config", ".local/share"] {
            let mode = std::fs::metadata(home.join(place)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, HOME_MODE, "{place}");
        }
    }

    #[test]
    fn the_users_home_is_left_alone() {
        let temp = tempfile::tempdir().unwrap();
        let agent = definition("codex");
        let host = host([("HOME", "/home/me"), ("CODEX_HOME", "/elsewhere")]);
        let sources = Sources {
            definition: &agent,
            host: &host,
            tenon: Path::new(TENON),
            home: temp.path(),
            session_id: None,
        };
        sources.make_home().unwrap();
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 0);
        let variables = sources.variables().unwrap();
        assert_eq!(variables["HOME"], "/home/me");
        assert_eq!(variables["CODEX_HOME"], "/elsewhere");
        assert_eq!(variables.get("PROVIDER_HOME"), None);
    }

    #[test]
    fn a_home_that_cannot_be_made_is_an_error_with_its_path() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join("agents"), "in the way").unwrap();
        let mut agent = definition("codex");
        agent.home_policy = HomePolicy::Isolated;
        let sources = Sources {
            definition: &agent,
            host: &[],
            tenon: Path::new(TENON),
            home: temp.path(),
            session_id: None,
        };
        let error = sources.make_home().unwrap_err().to_string();
        assert!(error.contains("agents/codex"), "{error}");
    }

    #[test]
    fn names_become_harmless_parts_of_paths() {
        assert_eq!(file_name("claude-4.work_2"), "claude-4.work_2");
        assert_eq!(file_name("../../etc"), "_.._.._etc");
        assert_eq!(file_name("é"), "_");
        assert_eq!(file_name(""), "_");
        assert_eq!(file_name(&"a".repeat(300)).len(), 100);
    }
}
