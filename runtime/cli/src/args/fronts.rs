//! The command line of everything that talks to a coding agent, or lets somebody else talk to one.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Subcommand;

/// What `--permissions` takes.
const PERMISSIONS: [&str; 4] = ["deny-all", "approve-reads", "approve-all", "ask"];

/// `tenon run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon run \"Why does the build fail?\"
  tenon run -a claude --permissions approve-reads Explain this repository
  git diff | tenon run \"Review this change\"        standard input follows the text
  tenon run - < prompt.md
  tenon run --json \"Add a test\" | jq -r .type
  tenon run --resume 3f2a \"And now the docs\"

With --json every event of the session is a line, and the last line is of the type run.result.

Exit codes:
  0    the agent has ended by itself
  1    it failed, crashed, or could not be started
  2    the command line is wrong
  3    an extension blocked the prompt, or the agent refused
  130  Ctrl-C: once stops the agent, twice ends at once")]
pub struct RunArgs {
    /// What to tell the agent; - or nothing for standard input
    #[arg(value_name = "PROMPT")]
    pub prompt: Vec<String>,
    /// Which agent [default: $TENON_AGENT, default-agent in config.toml, or the only one installed]
    #[arg(long, short, value_name = "NAME")]
    pub agent: Option<String>,
    /// Go on with an earlier session: its id, or how it begins
    #[arg(long, value_name = "ID")]
    pub resume: Option<String>,
    /// What the agent may do without asking [default: as in config.toml, else approve-reads]
    #[arg(long, value_name = "MODE", value_parser = PERMISSIONS)]
    pub permissions: Option<String>,
    /// Which of the agent's models
    #[arg(long)]
    pub model: Option<String>,
    /// Which of the agent's modes
    #[arg(long)]
    pub mode: Option<String>,
    /// Another folder the agent may work in (repeatable)
    #[arg(long = "add-dir", value_name = "DIR")]
    pub dir: Vec<PathBuf>,
    /// Print the answer only
    #[arg(long, short)]
    pub quiet: bool,
}

/// `tenon chat`.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "Examples:
  tenon chat
  tenon chat -a gemini --mode plan
  tenon chat --resume               go on with the last session of this folder
  tenon chat --resume 3f2a --permissions ask

/help lists what can be typed there.")]
pub struct ChatArgs {
    /// Which agent [default: $TENON_AGENT, default-agent in config.toml, or the only one installed]
    #[arg(long, short, value_name = "NAME")]
    pub agent: Option<String>,
    /// Go on with an earlier session: its id, or how it begins [default: the last of this folder]
    #[arg(long, value_name = "ID")]
    pub resume: Option<Option<String>>,
    /// What the agent may do without asking [default: as in config.toml, else approve-reads]
    #[arg(long, value_name = "MODE", value_parser = PERMISSIONS)]
    pub permissions: Option<String>,
    /// Which of the agent's models
    #[arg(long)]
    pub model: Option<String>,
    /// Which of the agent's modes
    #[arg(long)]
    pub mode: Option<String>,
    /// Another folder the agent may work in (repeatable)
    #[arg(long = "add-dir", value_name = "DIR")]
    pub dir: Vec<PathBuf>,
}

/// `tenon acp`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon acp -a claude               what an editor starts in place of claude-agent-acp
  tenon acp --trust --permissions approve-reads

Speaks ACP on standard input and output. The editor talks to the agent as if nothing were between,
and every session has its extensions.")]
pub struct AcpArgs {
    /// Which agent [default: $TENON_AGENT, default-agent in config.toml, or the only one installed]
    #[arg(long, short, value_name = "NAME")]
    pub agent: Option<String>,
    /// What the agent may do without asking [default: as in config.toml, else ask]
    #[arg(long, value_name = "MODE", value_parser = PERMISSIONS)]
    pub permissions: Option<String>,
}

/// `tenon mcp`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon mcp --trust                                     on standard input and output
  TENON_MCP_TOKEN=... tenon mcp --http 127.0.0.1:7000   for clients that connect

Offers the tools of the extensions to any MCP client; the list changes when the extensions do.")]
pub struct McpArgs {
    /// Listen at this address instead of standard input and output; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS")]
    pub http: Option<SocketAddr>,
    /// What clients have to send as bearer token [default: $TENON_MCP_TOKEN, else made up and printed
    /// to standard error]
    #[arg(long, requires = "http")]
    pub token: Option<String>,
}

/// `tenon mcp-shim`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon mcp-shim ~/.tenon/run/SESSION.mcp

Started by agents that reach MCP servers by standard input and output only; tenon tells them how.")]
pub struct McpShimArgs {
    /// The socket of the session's tools
    pub socket: PathBuf,
}

/// `tenon sessions`.
#[derive(Debug, Subcommand)]
pub enum SessionsCommand {
    /// List the sessions of this folder, the newest first
    #[command(after_help = "Examples:
  tenon sessions list
  tenon sessions list --all --json")]
    List {
        /// Those of every folder
        #[arg(long, short)]
        all: bool,
    },
    /// What a session was about, and what was said last
    #[command(after_help = "Examples:
  tenon sessions show 3f2a
  tenon sessions show 3f2a --events | jq -r .type")]
    Show {
        /// Its id, or how it begins
        id: String,
        /// Print every recorded event as a line of JSON instead
        #[arg(long)]
        events: bool,
    },
    /// Go on with a session in the terminal: tenon chat --resume
    #[command(after_help = "Examples:
  tenon sessions resume 3f2a")]
    Resume {
        /// Its id, or how it begins
        id: String,
        /// The agent it was begun with; another cannot go on with it
        #[arg(long, short, value_name = "NAME")]
        agent: Option<String>,
    },
    /// Delete sessions with everything that was recorded of them
    #[command(after_help = "Examples:
  tenon sessions delete 3f2a
  tenon sessions delete 3f2a 90bc --yes

A session that is live is not deleted.")]
    Delete {
        /// Their ids, or how each begins
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use tenon_acp::config::PermissionMode;

    use super::*;

    #[derive(Debug, Parser)]
    enum Fronts {
        Run(RunArgs),
        Chat(ChatArgs),
        #[command(subcommand)]
        Sessions(SessionsCommand),
    }

    #[test]
    fn a_prompt_is_every_word_that_is_no_option() {
        let parsed = Fronts::try_parse_from(["tenon", "run", "fix", "-a", "demo", "it", "-"]);
        let Fronts::Run(run) = parsed.unwrap() else { panic!("another command") };
        assert_eq!(run.prompt, ["fix", "it", "-"]);
        assert_eq!(run.agent.as_deref(), Some("demo"));
    }

    #[test]
    fn a_chat_resumes_a_session_or_the_last_one() {
        let resume = |line: &[&str]| match Fronts::try_parse_from(line).unwrap() {
            Fronts::Chat(chat) => chat.resume,
            other => panic!("{other:?}"),
        };
        assert_eq!(resume(&["tenon", "chat"]), None);
        assert_eq!(resume(&["tenon", "chat", "--resume"]), Some(None));
        assert_eq!(resume(&["tenon", "chat", "--resume", "3f"]), Some(Some("3f".to_owned())));
    }

    #[test]
    fn permission_modes_are_those_of_the_configuration() {
        assert_eq!(PERMISSIONS, *PermissionMode::WORDS);
    }

    #[test]
    fn nothing_to_delete_and_unknown_modes_are_mistakes() {
        assert!(Fronts::try_parse_from(["tenon", "sessions", "delete"]).is_err());
        assert!(Fronts::try_parse_from(["tenon", "run", "--permissions", "all", "x"]).is_err());
    }
}
