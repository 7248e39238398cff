//! The command line.

pub mod demo_agent;
pub mod fronts;

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::Parser;
use clap::Subcommand;
use tenon_host::scaffold::Kind;

use self::demo_agent::DemoAgentArgs;

/// What `--version` prints after the name.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let engine = crate::engine::info();
    format!("{} ({} {})", env!("CARGO_PKG_VERSION"), engine.name, engine.version)
});

/// Runs Copilot-style extensions for every coding agent that speaks ACP.
#[derive(Debug, Parser)]
#[command(name = "tenon", version = VERSION.as_str(), after_help = EXAMPLES)]
pub struct Args {
    /// Work as if started in this directory
    #[arg(long, global = true, value_name = "DIR")]
    pub cwd: Option<PathBuf>,

    /// Let the extensions of this repository run, this time
    #[arg(long, global = true)]
    pub trust: bool,

    /// Also load every extension in DIR/*/ (repeatable)
    #[arg(long = "extensions", global = true, value_name = "DIR")]
    pub extension_folders: Vec<PathBuf>,

    /// Tenon's own folder [default: $TENON_HOME, else ~/.tenon]
    #[arg(long, global = true, value_name = "DIR")]
    pub home: Option<PathBuf>,

    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub json: bool,

    /// Print which JavaScript engine is built in, and end
    #[arg(long)]
    pub engine_info: bool,

    /// What to do
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Args {
    /// Whether the command starts a coding agent.
    pub fn starts_an_agent(&self) -> bool {
        matches!(
            self.command,
            Some(Command::Run(_) | Command::Chat(_) | Command::Acp(_) | Command::Demo)
        )
    }
}

const EXAMPLES: &str = "Examples:
  tenon demo                              see it work, in a throw-away workspace
  tenon ext new my-extension              write a first extension
  tenon trust                             let this repository's extensions run
  tenon ext list                          load the extensions and list them
  tenon ext inspect my-extension          tools, hooks, limits, log and last error of one
  tenon call word_count --args '{\"path\":\"README.md\"}' --extensions ./extensions
  tenon agents                            which coding agents there are, and how to log in
  tenon run -a claude \"Why does the build fail?\"
  tenon chat -a claude                    a conversation in the terminal
  tenon sessions list                     earlier conversations
  tenon doctor                            what is missing on this machine";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make, list, check, install and watch extensions
    #[command(
        subcommand,
        after_help = "Examples:
  tenon ext new my-extension
  tenon ext list
  tenon ext check --json"
    )]
    Ext(ExtCommand),
    /// Call a tool of an extension
    Call(CallArgs),
    /// Let the extensions of a repository run, or no longer
    Trust(TrustArgs),
    /// Look for what keeps extensions from running, and say what to do
    #[command(after_help = "Examples:
  tenon doctor
  tenon doctor --json

Exits with 1 if something fails; warnings do not count.")]
    Doctor,
    /// Give an agent one prompt and print what it does
    Run(fronts::RunArgs),
    /// Talk to an agent in the terminal
    Chat(fronts::ChatArgs),
    /// Be an ACP agent for an editor, in front of another agent
    Acp(fronts::AcpArgs),
    /// Offer the tools of extensions by MCP
    Mcp(fronts::McpArgs),
    /// Connect standard input and output to a session's tools
    #[command(hide = true)]
    McpShim(fronts::McpShimArgs),
    /// List, show, go on with and delete recorded sessions
    #[command(
        subcommand,
        after_help = "Examples:
  tenon sessions list
  tenon sessions show 3f2a
  tenon sessions resume 3f2a"
    )]
    Sessions(fronts::SessionsCommand),
    /// List the coding agents that are known, which are installed, and how to log in
    #[command(after_help = "Examples:
  tenon agents
  tenon agents --json")]
    Agents,
    /// Be the demo agent: an ACP agent without a model, which follows directives
    DemoAgent(DemoAgentArgs),
    /// Show what Tenon does, in a throw-away workspace
    #[command(after_help = "Examples:
  tenon demo")]
    Demo,
    /// Fork a process for every extension of this user's sessions
    #[command(hide = true)]
    Zygote {
        /// Where further sessions find it
        socket: Option<std::path::PathBuf>,
    },
}

/// `tenon ext`.
#[derive(Debug, Subcommand)]
pub enum ExtCommand {
    /// Load every extension and list what each offers
    #[command(after_help = "Examples:
  tenon ext list
  tenon ext list --extensions ./extensions --json")]
    List,
    /// Everything about one extension: tools, hooks, limits, error with its place, log
    #[command(after_help = "Examples:
  tenon ext inspect my-extension
  tenon ext inspect project:my-extension --json")]
    Inspect {
        /// Its name, or its id such as project:my-extension
        name: String,
    },
    /// Write a new extension that works, to begin with
    New(NewArgs),
    /// Load each extension once and report what is wrong, as a linter would
    Check(CheckArgs),
    /// Let the live sessions of this workspace load their extensions anew
    #[command(after_help = "Examples:
  tenon ext reload
  tenon ext reload my-extension --json

Exits with 1 if no session is live, or something does not load.")]
    Reload {
        /// Report on this extension only; the others are loaded anew too
        name: Option<String>,
    },
    /// Switch an extension on again
    #[command(after_help = "Examples:
  tenon ext enable my-extension
  tenon ext enable user:my-extension --json")]
    Enable {
        /// Its name, or its id such as project:my-extension
        name: String,
    },
    /// Switch an extension off, in this and every later session
    #[command(after_help = "Examples:
  tenon ext disable my-extension
  tenon ext disable user:my-extension --why \"too slow\"")]
    Disable {
        /// Its name, or its id such as project:my-extension
        name: String,
        /// Why; shown wherever the extension is listed
        #[arg(long, value_name = "TEXT")]
        why: Option<String>,
    },
    /// Install an extension from a folder or a git repository
    Install(InstallArgs),
    /// Remove an extension of yours or of this repository, with its folder, data and logs
    #[command(after_help = "Examples:
  tenon ext remove my-extension
  tenon ext remove user:my-extension --yes")]
    Remove {
        /// Its name, or its id such as user:my-extension
        name: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Print the log of an extension, from this and earlier sessions
    Logs(LogsArgs),
    /// Show what each extension uses, until q or Ctrl-C
    #[command(after_help = "Examples:
  tenon ext top
  tenon ext top --once
  tenon ext top --json | jq .

Shows the live sessions of this workspace; without one it loads the extensions itself.")]
    Top {
        /// Print one table and end
        #[arg(long)]
        once: bool,
    },
}

/// `tenon ext new`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon ext new my-extension
  tenon ext new board --kind canvas --description \"Shows what is going on\"
  tenon ext new mine --user --kind ts")]
pub struct NewArgs {
    /// Its name: that of its folder
    pub name: String,
    /// What to begin with: basic (a tool), canvas (a page beside the conversation), hooks (around prompts
    /// and tools) or ts (a tool, in TypeScript)
    #[arg(long, default_value_t = Kind::Basic)]
    pub kind: Kind,
    /// Put it into your own folder instead of this repository
    #[arg(long)]
    pub user: bool,
    /// What it does, in a sentence
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
}

/// `tenon ext check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon ext check
  tenon ext check my-extension
  tenon ext check ./extensions/word-count --json

Exits with 1 if an extension does not load.")]
pub struct CheckArgs {
    /// Names, ids or folders [default: every extension that is found]
    #[arg(value_name = "NAME|PATH")]
    pub targets: Vec<String>,
    /// Exit with 1 for warnings too
    #[arg(long)]
    pub strict: bool,
}

/// `tenon ext install`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon ext install ./word-count
  tenon ext install https://example.org/tools.git --path extensions/word-count
  tenon ext install ./word-count --name count --project

The extension is loaded once before it is put in place; one that does not load is not installed.")]
pub struct InstallArgs {
    /// A folder, or the address of a git repository with an optional #branch, #tag or #commit
    pub source: String,
    /// Where the extension is inside the source
    #[arg(long, value_name = "SUB")]
    pub path: Option<PathBuf>,
    /// What to call it [default: the name of its folder]
    #[arg(long)]
    pub name: Option<String>,
    /// Install into this repository instead of your own folder
    #[arg(long)]
    pub project: bool,
    /// Replace the one that is there
    #[arg(long)]
    pub replace: bool,
    /// Do not load it first
    #[arg(long)]
    pub no_check: bool,
}

/// `tenon ext logs`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon ext logs my-extension
  tenon ext logs my-extension -n 200
  tenon ext logs my-extension -f")]
pub struct LogsArgs {
    /// Its name, or its id such as project:my-extension
    pub name: String,
    /// Go on with what is added, until Ctrl-C
    #[arg(long, short)]
    pub follow: bool,
    /// How many of the newest lines to begin with
    #[arg(long, short = 'n', value_name = "LINES", default_value_t = 50)]
    pub lines: usize,
}

/// `tenon trust`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon trust                       let this repository's extensions run
  tenon trust ../other --revoke     no longer
  tenon trust --list
  tenon trust --review my-extension say that you have read it as it is now

What a repository commits cannot switch on code by itself; --trust is for one run only.")]
pub struct TrustArgs {
    /// A folder in the repository [default: the current directory]
    pub path: Option<PathBuf>,
    /// List the repositories that are trusted
    #[arg(long, conflicts_with_all = ["path", "revoke", "review"])]
    pub list: bool,
    /// Take the trust back
    #[arg(long, conflicts_with = "review")]
    pub revoke: bool,
    /// Approve the current content of an extension; needed where it waits for your approval, and where the
    /// configuration says `[trust] review = true`
    #[arg(long, value_name = "NAME")]
    pub review: Option<String>,
}

/// `tenon call`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon call say_hello --args '{\"name\":\"Ada\"}' --trust
  echo '{\"name\":\"Ada\"}' | tenon call say_hello --args - --trust --json

Exits with 0 only if the tool succeeded.")]
pub struct CallArgs {
    /// The tool's name
    pub tool: String,
    /// Its arguments as a JSON object, or - to read them from standard input
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub args: String,
    /// Print the extension's log to standard error
    #[arg(long, short)]
    pub verbose: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn check(command: &clap::Command) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.contains("Examples:"), "tenon {} --help has no examples", command.get_name());
        command.get_subcommands().filter(|it| !it.is_hide_set()).for_each(check);
    }

    #[test]
    fn every_command_has_examples() {
        check(&Args::command());
    }
}
