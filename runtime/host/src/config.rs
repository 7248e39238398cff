//! The user's configuration: `config.toml` in the home folder. Nothing in a repository can add to it.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::de::IgnoredAny;
use tenon_protocol::limits::MIN_HEAP_BYTES;

/// The name of the file in the home folder.
pub const FILE_NAME: &str = "config.toml";

/// What the user has configured.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// By extension: `scope:name`, or a name for every scope. `"*"` is for all others.
    #[serde(default)]
    pub extensions: BTreeMap<String, ExtensionConfig>,
    /// What is needed before a repository's extensions run.
    #[serde(default)]
    pub trust: TrustConfig,
    /// How changes on disk are noticed.
    #[serde(default)]
    pub reload: ReloadConfig,
    /// `[agents]`: only programs that start agents know what it means, and they read it with [`Config::agents`].
    #[serde(default, rename = "agents")]
    _agents: IgnoredAny,
    /// The agent that is used when none is named.
    pub default_agent: Option<String>,
    /// Where this was read.
    #[serde(skip)]
    file: File,
}

/// The file of a configuration as it stands. What is read of it later has mistakes with a place.
#[derive(Debug, Clone, Default)]
struct File {
    path: PathBuf,
    text: String,
}

/// The part of the file that sessions do not look into.
#[derive(Deserialize)]
struct Agents<T> {
    agents: Option<T>,
}

/// What is needed before a repository's extensions run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TrustConfig {
    /// Ask for every extension that is new or has changed, not once for the workspace.
    #[serde(default)]
    pub review: bool,
}

/// How changes on disk are noticed.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReloadConfig {
    /// By the system's notifications, by looking again and again, or not at all.
    #[serde(default)]
    pub watch: Watch,
    /// How long it must be quiet before changes count, in milliseconds.
    pub debounce_ms: Option<u32>,
    /// How often to look, where it is done by looking, in milliseconds.
    pub poll_ms: Option<u32>,
}

/// How changes on disk are noticed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Watch {
    /// The system says so; where it cannot, by looking.
    #[default]
    Auto,
    /// By looking again and again: for network file systems, which say nothing.
    Poll,
    /// Not at all.
    Off,
}

/// A usual set of permissions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Everything the user may do.
    #[default]
    Full,
    /// Files inside the workspace, the session's folder and the extension's own data folder; of the session's folder it
    /// writes files and plan only. No network, no subprocess.
    Workspace,
    /// Its own files, to be loaded, and nothing else.
    None,
}

impl Profile {
    /// A profile with a larger one permits all that one with a smaller one does.
    pub(crate) fn breadth(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Workspace => 1,
            Self::Full => 2,
        }
    }
}

/// What happens where the kernel cannot enforce an extension's grant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sandbox {
    /// As much of it is enforced as the kernel can; the rest is checked by Tenon alone.
    #[default]
    BestEffort,
    /// The extension does not run.
    Required,
}

/// What the user has configured for one extension: a profile, what is different from it, and limits.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExtensionConfig {
    /// Where to start from.
    pub profile: Option<Profile>,
    /// Paths that may be read beside those of the profile.
    #[serde(default)]
    pub allow_read: Vec<String>,
    /// Paths that may not be read.
    #[serde(default)]
    pub deny_read: Vec<String>,
    /// Paths that may be written beside those of the profile.
    #[serde(default)]
    pub allow_write: Vec<String>,
    /// Paths that may not be written.
    #[serde(default)]
    pub deny_write: Vec<String>,
    /// Hosts that may be reached beside those of the profile.
    #[serde(default)]
    pub allow_net: Vec<String>,
    /// Hosts that may not be reached.
    #[serde(default)]
    pub deny_net: Vec<String>,
    /// Programs that may be started beside those of the profile.
    #[serde(default)]
    pub allow_run: Vec<String>,
    /// Programs that may not be started.
    #[serde(default)]
    pub deny_run: Vec<String>,
    /// Secret environment variables that are passed on.
    #[serde(default)]
    pub allow_env: Vec<String>,
    /// Environment variables that are not passed on.
    #[serde(default)]
    pub deny_env: Vec<String>,
    /// The largest heap, in megabytes.
    pub heap_mb: Option<u32>,
    /// The most memory outside the heap, in megabytes.
    pub buffer_mb: Option<u32>,
    /// The most memory of its process, in megabytes.
    pub memory_mb: Option<u32>,
    /// The most CPU time without returning to the event loop, in milliseconds.
    pub cpu_ms: Option<u32>,
    /// The most child processes at a time.
    pub children: Option<u32>,
    /// Log lines per second that are kept.
    pub log_lines_per_second: Option<u32>,
    /// The longest result of a tool, in kilobytes.
    pub result_kb: Option<u32>,
    /// How long a call of its tools may take, in milliseconds; for ever if it is not set.
    pub tool_deadline_ms: Option<u32>,
    /// Whether it may run where the kernel cannot enforce its grant.
    #[serde(default)]
    pub sandbox: Sandbox,
    /// Older versions kept extensions in one process, and this gave one a process of its own. Now each has; it is read
    /// so that configurations stay valid, and changes nothing.
    pub isolation: Option<String>,
    /// How long it may take to join, in seconds.
    pub start_deadline_s: Option<u32>,
    /// How long its hooks may take, in milliseconds.
    pub hook_deadline_ms: Option<u32>,
    /// How long its handlers of requests may take, in milliseconds.
    pub handler_deadline_ms: Option<u32>,
}

/// The configuration could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is there but cannot be read.
    #[error("{path} cannot be read: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// No extension fits into such a heap.
    #[error("{path}: heap-mb of \"{name}\" must be at least {minimum}")]
    HeapTooSmall {
        /// The file.
        path: PathBuf,
        /// The entry.
        name: String,
        /// The least, in megabytes.
        minimum: u32,
    },
    /// A list has an entry that would mean nothing.
    #[error("{path}: {list} of \"{name}\" has \"{entry}\": {mistake}")]
    MeaninglessEntry {
        /// The file.
        path: PathBuf,
        /// The entry of the extension.
        name: String,
        /// The list.
        list: &'static str,
        /// What is in it.
        entry: String,
        /// What is wrong, and what to write instead.
        mistake: &'static str,
    },
    /// The file is not what it should be.
    #[error("{path} is not a valid configuration:\n{source}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        source: Box<toml::de::Error>,
    },
}

impl Config {
    /// Reads the configuration of a home folder; without a file it is empty.
    pub fn read(home: &Path) -> Result<Self, ConfigError> {
        let path = home.join(FILE_NAME);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(source) => return Err(ConfigError::Read { path, source }),
        };
        let file = File { path, text };
        let config: Self = file.parse()?;
        Self { file, ..config }.check()
    }

    fn check(self) -> Result<Self, ConfigError> {
        let minimum = (MIN_HEAP_BYTES / (1024 * 1024)) as u32;
        let too_small = |(_, config): &(&String, &ExtensionConfig)| {
            config.heap_mb.is_some_and(|megabytes| megabytes < minimum)
        };
        if let Some((name, _)) = self.extensions.iter().find(too_small) {
            let (path, name) = (self.file.path.clone(), name.clone());
            return Err(ConfigError::HeapTooSmall { path, name, minimum });
        }
        let mistaken = |(name, config): (&String, &ExtensionConfig)| {
            let (list, entry, mistake) = config.mistaken_entry()?;
            let (path, name) = (self.file.path.clone(), name.clone());
            Some(ConfigError::MeaninglessEntry { path, name, list, entry, mistake })
        };
        match self.extensions.iter().find_map(mistaken) {
            Some(error) => Err(error),
            None => Ok(self),
        }
    }

    /// The table `[agents]` as whoever starts agents understands it. A session has no agents.
    pub fn agents<T: DeserializeOwned + Default>(&self) -> Result<T, ConfigError> {
        let Agents { agents } = self.file.parse()?;
        Ok(agents.unwrap_or_default())
    }

    /// What holds for one extension: the most particular entry that there is.
    pub fn of(&self, id: &str, name: &str) -> ExtensionConfig {
        [id, name, "*"]
            .iter()
            .find_map(|key| self.extensions.get(*key))
            .cloned()
            .unwrap_or_default()
    }
}

impl ExtensionConfig {
    /// The first entry of a list that would mean nothing: its list, what it is, and what is wrong with it.
    fn mistaken_entry(&self) -> Option<(&'static str, String, &'static str)> {
        type Mistake = fn(&str) -> Option<&'static str>;
        let lists: [(_, _, Mistake); 8] = [
            ("allow-read", &self.allow_read, mistake_in),
            ("deny-read", &self.deny_read, mistake_in),
            ("allow-write", &self.allow_write, mistake_in),
            ("deny-write", &self.deny_write, mistake_in),
            ("allow-run", &self.allow_run, mistake_in_program),
            ("deny-run", &self.deny_run, mistake_in_program),
            ("allow-net", &self.allow_net, mistake_in_host),
            ("deny-net", &self.deny_net, mistake_in_host),
        ];
        lists.into_iter().find_map(|(list, entries, mistake_in)| {
            entries.iter().find_map(|entry| Some((list, entry.clone(), mistake_in(entry)?)))
        })
    }
}

/// Why an entry of a list of programs would name none.
fn mistake_in_program(program: &str) -> Option<&'static str> {
    if program.trim().is_empty() {
        Some("an empty name is no program; remove it")
    } else if program.contains(char::is_whitespace) && !program.contains('/') {
        Some("arguments cannot be told apart; name the program alone")
    } else if program.contains(['*', '?', '[']) && program != "[" {
        Some("patterns are not expanded; name each program, or leave the list out to mean all")
    } else {
        None
    }
}

/// Why an entry of a list of hosts would name none.
fn mistake_in_host(entry: &str) -> Option<&'static str> {
    let (host, port) = match entry.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
        _ => (entry, None),
    };
    let is_number = |text: &str| text.chars().all(|it| it.is_ascii_digit() || it == '.');
    let address = host.split_once('/').map_or(host, |(address, _)| address);
    if host.trim().is_empty() || entry.contains(char::is_whitespace) {
        Some("no host has such a name; remove it, and blanks around it")
    } else if entry.contains("://") {
        Some("this is an address of a page; write the host alone")
    } else if port == Some("0") {
        Some("no host is reached at port 0; leave the port out to mean all")
    } else if !address.is_empty()
        && is_number(address)
        && address.parse::<std::net::Ipv4Addr>().is_err()
    {
        Some("an address has four numbers; write all of them")
    } else {
        None
    }
}

/// Why an entry of a list of paths would name nothing, so that what it should deny is allowed.
fn mistake_in(path: &str) -> Option<&'static str> {
    let has_scheme = path.split_once(':').is_some_and(|(scheme, rest)| {
        let is_name = |it: char| it.is_ascii_alphanumeric() || "+-.".contains(it);
        rest.starts_with("//") && !scheme.is_empty() && scheme.chars().all(is_name)
    });
    if path.trim().is_empty() {
        Some("an empty path names nothing; remove it")
    } else if path != path.trim() {
        Some("it begins or ends with a blank, which belongs to the path; remove the blank")
    } else if path.contains('\0') {
        Some("no path has a zero byte")
    } else if path.contains('$') {
        Some("variables are not expanded; write the path, where ~/ is your home")
    } else if path.contains(['*', '?', '[']) {
        Some("patterns are not expanded; name the folder, which stands for all that is in it")
    } else if has_scheme || path.starts_with("file:") {
        Some("this is an address; write the path")
    } else if path.starts_with('~') && path != "~" && !path.starts_with("~/") {
        Some("only ~/ is expanded, to your own home; write the path")
    } else {
        None
    }
}

impl File {
    fn parse<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        toml::from_str(&self.text).map_err(|source| ConfigError::Parse {
            path: self.path.clone(),
            source: Box::new(source),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_particular_entry_counts() {
        let config: Config = toml::from_str(
            "[extensions.\"*\"]\nprofile = \"none\"\n[extensions.\"project:a\"]\nprofile = \"workspace\"",
        )
        .unwrap();
        assert_eq!(config.of("project:a", "a").profile, Some(Profile::Workspace));
        assert_eq!(config.of("user:a", "a").profile, Some(Profile::None));
    }

    #[test]
    fn a_heap_that_nothing_fits_into_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join(FILE_NAME), "[extensions.a]\nheap-mb = 8\n").unwrap();
        let message = Config::read(temp.path()).unwrap_err().to_string();
        assert!(message.contains("heap-mb of \"a\" must be at least 32"), "{message}");
    }

    #[test]
    fn an_entry_that_names_no_path_is_refused_with_a_hint() {
        let read = |entry: &str, list: &str| {
            let temp = tempfile::tempdir().unwrap();
            let text = format!("[extensions.a]\n{list} = [\"/ok\", \"{entry}\"]\n");
            std::fs::write(temp.path().join(FILE_NAME), text).unwrap();
            Config::read(temp.path()).map(drop).map_err(|error| error.to_string())
        };
        let wrong = [
            ("$HOME/sec", "variables"),
            ("/w/s*", "patterns"),
            ("/w/s?c", "patterns"),
            ("/w/[s]", "patterns"),
            ("file:///w", "address"),
            ("file:/w", "address"),
            ("https://a/b", "address"),
            ("/w/sec ", "blank"),
            (" sec", "blank"),
            ("", "empty"),
            ("~root/x", "~/"),
        ];
        for (entry, hint) in wrong {
            for list in ["allow-read", "deny-read", "allow-write", "deny-write"] {
                let message = read(entry, list).unwrap_err();
                let place = format!("{list} of \"a\" has \"{entry}\"");
                assert!(message.contains(&place) && message.contains(hint), "{message}");
            }
        }
        for entry in ["~", "~/sec", "sec", "./a b", "/w/a:b", "C:/x", "/w/#x"] {
            assert_eq!(read(entry, "deny-read"), Ok(()), "{entry}");
        }
        // Hosts have patterns and colons.
        assert_eq!(read("*.example.org:80", "deny-net"), Ok(()));
    }

    #[test]
    fn an_entry_that_names_no_program_or_host_is_refused_with_a_hint() {
        let read = |entry: &str, list: &str| {
            let temp = tempfile::tempdir().unwrap();
            let text = format!("[extensions.a]\n{list} = [\"ok\", \"{entry}\"]\n");
            std::fs::write(temp.path().join(FILE_NAME), text).unwrap();
            Config::read(temp.path()).map(drop).map_err(|error| error.to_string())
        };
        let programs =
            [("*", "patterns"), ("id -u", "arguments"), ("", "empty"), ("py*", "patterns")];
        let hosts = [
            ("127.1", "four numbers"),
            ("127.0.0.1:0", "port 0"),
            ("", "no host"),
            (" a.example", "blanks"),
            ("https://a.example", "host alone"),
        ];
        let run = programs.map(|it| (it, ["allow-run", "deny-run"]));
        let net = hosts.map(|it| (it, ["allow-net", "deny-net"]));
        for ((entry, hint), lists) in run.into_iter().chain(net) {
            for list in lists {
                let message = read(entry, list).unwrap_err();
                let place = format!("{list} of \"a\" has \"{entry}\"");
                assert!(message.contains(&place) && message.contains(hint), "{message}");
            }
        }
        for entry in ["git", "/opt/a b/tool", "[", "./run.sh"] {
            assert_eq!(read(entry, "deny-run"), Ok(()), "{entry}");
        }
        for entry in
            ["a.example", "*.a.example:443", "127.0.0.0/8", "127.0.0.1:80", "::1", "[::1]:80"]
        {
            assert_eq!(read(entry, "deny-net"), Ok(()), "{entry}");
        }
    }

    #[test]
    fn agents_are_left_to_whoever_knows_them() {
        let temp = tempfile::tempdir().unwrap();
        let text = "[agents.a]\nlevel = 1\n[extensions.b]\nheap-mb = 64\n";
        std::fs::write(temp.path().join(FILE_NAME), text).unwrap();
        let config = Config::read(temp.path()).unwrap();
        let agents: BTreeMap<String, BTreeMap<String, u32>> = config.agents().unwrap();
        assert_eq!(agents["a"]["level"], 1);
        let message = config.agents::<BTreeMap<String, String>>().unwrap_err().to_string();
        assert!(message.contains("config.toml") && message.contains("line 1"), "{message}");
        assert_eq!(Config::default().agents::<BTreeMap<String, u32>>().unwrap(), BTreeMap::new());
    }

    #[test]
    fn a_mistake_is_shown_with_its_place() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join(FILE_NAME), "[extensions.a]\nprofil = 1\n").unwrap();
        let message = Config::read(temp.path()).unwrap_err().to_string();
        assert!(message.contains("config.toml") && message.contains("profil"), "{message}");
    }
}
