//! The command line.

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::Parser;
use clap::Subcommand;

/// What `--version` prints after the name.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let engine = tenon_host::isolate::engine_info();
    format!("{} ({} {})", env!("CARGO_PKG_VERSION"), engine.name, engine.version)
});

/// Runs Copilot-style extensions for every coding agent that speaks ACP.
#[derive(Debug, Parser)]
#[command(name = "tenon", version = VERSION.as_str(), after_help = EXAMPLES)]
pub struct Args {
    /// Work as if started in this directory
    #[arg(long, global = true, value_name = "DIR")]
    pub cwd: Option<PathBuf>,

    /// Let the extensions of this repository run
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

const EXAMPLES: &str = "Examples:
  tenon demo                              see it work, in a throw-away workspace
  tenon ext list --trust                  load this repository's extensions and list them
  tenon ext inspect my-extension --trust  tools, hooks, log and last error of one
  tenon call word_count --args '{\"path\":\"README.md\"}' --extensions ./extensions";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List or inspect extensions
    #[command(subcommand)]
    Ext(ExtCommand),
    /// Call a tool of an extension
    Call(CallArgs),
    /// List the coding agents that are known, and which are installed
    Agents,
    /// Show what Tenon does, in a throw-away workspace
    Demo,
    /// Measure what extensions cost
    #[command(subcommand)]
    Bench(BenchCommand),
}

/// `tenon ext`.
#[derive(Debug, Subcommand)]
pub enum ExtCommand {
    /// Load every extension and list what each offers
    #[command(after_help = "Examples:
  tenon ext list --trust
  tenon ext list --extensions ./extensions --json")]
    List,
    /// Everything about one extension: tools, hooks, error with its place, log
    #[command(after_help = "Examples:
  tenon ext inspect my-extension --trust
  tenon ext inspect project:my-extension --trust --json")]
    Inspect {
        /// Its name, or its id such as project:my-extension
        name: String,
    },
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

/// `tenon bench`.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// What it costs to have extensions ready and idle, beside one node process for each
    #[command(after_help = "Examples:
  tenon bench start
  tenon bench start --count 50 --json
  tenon bench start --other target/quickjs/tenon    also measure another build of tenon")]
    Start(BenchStart),
    /// A tool call through the hooks of several extensions, beside one round trip to a node process
    #[command(after_help = "Examples:
  tenon bench hooks
  tenon bench hooks --extensions-count 10 --json")]
    Hooks(BenchHooks),
    /// A stream of session events to many extensions: what is lost, how late, what it costs
    #[command(after_help = "Examples:
  tenon bench events
  tenon bench events --rate 1000 --seconds 2 --json")]
    Events(BenchEvents),
}

/// `tenon bench hooks`.
#[derive(Debug, clap::Args)]
pub struct BenchHooks {
    /// How many extensions have hooks before and after the call
    #[arg(long = "extensions-count", default_value_t = 5)]
    pub extensions: usize,
    /// How many calls of each kind
    #[arg(long, default_value_t = 5000)]
    pub calls: usize,
    /// A folder with node_modules/@github/copilot-sdk for the node process [default: installed
    /// with npm into the home folder]
    #[arg(long, value_name = "DIR")]
    pub sdk: Option<PathBuf>,
    /// Leave out the node process
    #[arg(long)]
    pub no_node: bool,
}

/// `tenon bench events`.
#[derive(Debug, clap::Args)]
pub struct BenchEvents {
    /// How many extensions subscribe
    #[arg(long = "extensions-count", default_value_t = 50)]
    pub extensions: usize,
    /// Events per second
    #[arg(long, default_value_t = 10_000)]
    pub rate: u64,
    /// For how many seconds, once without and once with a subscriber that sleeps
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
}

/// `tenon bench start`.
#[derive(Debug, clap::Args)]
pub struct BenchStart {
    /// How many extensions
    #[arg(long, default_value_t = 50)]
    pub count: usize,
    /// Another build of tenon to measure in the same run (repeatable)
    #[arg(long = "other", value_name = "PROGRAM")]
    pub others: Vec<PathBuf>,
    /// A folder with node_modules/@github/copilot-sdk for the node processes [default: installed
    /// with npm into the home folder]
    #[arg(long, value_name = "DIR")]
    pub sdk: Option<PathBuf>,
    /// Leave out the node processes
    #[arg(long)]
    pub no_node: bool,
    /// Measure one case in this process and print it; used by the benchmark itself
    #[arg(long, hide = true, value_name = "CASE")]
    pub single: Option<String>,
}
