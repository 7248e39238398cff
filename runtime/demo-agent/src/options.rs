//! What a demo agent is started with.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// The folder of its sessions.
const FOLDER: &str = "demo-agent";

/// When a demo agent exits without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitAt {
    /// At `initialize`.
    Initialize,
    /// At `session/new`.
    New,
    /// At `session/prompt`.
    Prompt,
}

impl FromStr for ExitAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "initialize" => Ok(Self::Initialize),
            "new" => Ok(Self::New),
            "prompt" => Ok(Self::Prompt),
            _ => Err("it is initialize, new or prompt".to_owned()),
        }
    }
}

/// In what ways a demo agent is not a good one.
#[derive(Debug, Clone, Default)]
pub struct DemoOptions {
    /// Never answers `initialize`.
    pub silent: bool,
    /// Prints lines that are no JSON before and between messages.
    pub garbage: bool,
    /// Exits without an answer.
    pub exit_at: Option<ExitAt>,
    /// Can neither load nor resume sessions.
    pub no_load: bool,
    /// Has no modes.
    pub no_modes: bool,
    /// Has no models to choose from.
    pub no_models: bool,
    /// Cannot reach MCP servers over HTTP, and says so.
    pub no_http: bool,
    /// Does not list tools again when they have changed.
    pub never_list: bool,
    /// Never asks for permission.
    pub never_ask: bool,
    /// Does not say to which tool call an MCP call belongs.
    pub no_meta: bool,
    /// Has forgotten every session that it is to load or resume.
    pub forget: bool,
    /// Ignores cancellation and the end of its input.
    pub deaf: bool,
    /// How long it pauses after each piece of a message.
    pub slow: Duration,
    /// Where it keeps its sessions; `None`: below `$TENON_DEMO_STATE`, else `$TENON_HOME`, else `~/.tenon`.
    pub state: Option<PathBuf>,
    /// The environment of what it starts: shell commands, and MCP servers that are programs.
    pub environment: Vec<(String, String)>,
}

impl DemoOptions {
    /// Where sessions are kept.
    pub(super) fn folder(&self) -> PathBuf {
        let state = self.state.clone();
        state.unwrap_or_else(|| usual_state(|name: &str| std::env::var_os(name))).join(FOLDER)
    }
}

/// Where sessions are kept if nobody says.
fn usual_state(variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let home = || set("HOME").map_or_else(std::env::temp_dir, PathBuf::from).join(".tenon");
    set("TENON_DEMO_STATE").or_else(|| set("TENON_HOME")).map_or_else(home, PathBuf::from)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_first_variable_that_is_set_says_where_sessions_are_kept() {
        let all = [("TENON_DEMO_STATE", "/state"), ("TENON_HOME", "/tenon"), ("HOME", "/me")];
        let state = |set: &[(&str, &str)]| {
            usual_state(|name| set.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into()))
        };
        assert_eq!(state(&all), Path::new("/state"));
        assert_eq!(state(&all[1..]), Path::new("/tenon"));
        assert_eq!(state(&all[2..]), Path::new("/me/.tenon"));
        assert_eq!(state(&[("TENON_HOME", ""), ("HOME", "/me")]), Path::new("/me/.tenon"));
    }

    #[test]
    fn the_moment_to_exit_is_read() {
        assert_eq!("new".parse::<ExitAt>(), Ok(ExitAt::New));
        assert!("never".parse::<ExitAt>().is_err());
    }
}
