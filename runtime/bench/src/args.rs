//! The command line of `tenon-bench`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Parser;
use clap::Subcommand;

/// Measures what extensions cost in Tenon, compared with one Node process for each and with the least possible cost.
#[derive(Debug, Parser)]
#[command(
    name = "tenon-bench",
    version,
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  tenon-bench                             everything, in a few minutes; needs node and npm to compare
  tenon-bench --save results              the same, with results/bench.html to look at
  tenon-bench --only call,events --json   some chapters
  tenon-bench --only growth --most 200    up to 200 extensions at once
  tenon-bench reload --soak 1000          one question in depth

From the sources: make bench, make bench ARGS='reload --soak 1000'"
)]
pub struct Args {
    /// The program to measure [default: the one beside this one]
    #[arg(long, global = true, value_name = "PROGRAM")]
    pub tenon: Option<PathBuf>,
    /// Also measure extensions that are threads, and the engine alone, with the program tenon-in-process beside tenon
    #[arg(long, global = true)]
    pub in_process: bool,
    /// Tenon's own folder, for the SDK of the node processes [default: $TENON_HOME, else ~/.tenon]
    #[arg(long, global = true, value_name = "DIR")]
    pub home: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// One question in depth, instead of everything
    #[command(subcommand)]
    pub command: Option<BenchCommand>,
    /// Everything
    #[command(flatten)]
    pub suite: BenchSuite,
}

/// One question in depth.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// What it costs to have extensions ready and idle, beside one node process for each
    #[command(after_help = "Examples:
  tenon-bench start
  tenon-bench start --count 50 --json
  tenon-bench start --other target/quickjs/tenon    also measure another build of tenon")]
    Start(BenchStart),
    /// A stream of session events to many extensions: what is lost, how late, what it costs
    #[command(after_help = "Examples:
  tenon-bench events
  tenon-bench events --rate 1000 --seconds 2 --json")]
    Events(BenchEvents),
    /// From a saved file to the new tool; and what reloads and crashes leave behind
    Reload(BenchReload),
    /// What a well-behaved extension notices of one that misbehaves
    Hostile(BenchHostile),
    /// Calls, events, reloads, agents and faults for a long time: what is lost, and what is left
    Soak(BenchSoak),
    /// What `tenon acp` adds to every update of an agent
    #[command(after_help = "Examples:
  tenon-bench acp
  tenon-bench acp --updates 5000 --json")]
    Acp(BenchAcp),
}

/// `tenon-bench acp`.
#[derive(Debug, clap::Args)]
pub struct BenchAcp {
    /// How many updates, one at a time
    #[arg(long, default_value_t = 2000)]
    pub updates: usize,
    /// How many updates, as fast as they can come
    #[arg(long, default_value_t = 50_000)]
    pub flood: usize,
}

/// `tenon-bench events`.
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

/// `tenon-bench start`.
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

/// `tenon-bench hostile`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon-bench hostile
  tenon-bench hostile --only loop --rounds 10 --json")]
pub struct BenchHostile {
    /// How often each attack is made
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Only the attacks with this in their name
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
}

/// `tenon-bench reload`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon-bench reload
  tenon-bench reload --extensions-count 1,100 --saves 50 --json
  tenon-bench reload --soak 1000    many reloads under load: calls lost, memory, threads, files
  tenon-bench reload --kill 100     the zygote is killed in the middle of calls

--soak and --kill exit with 1 if something was lost or is left.")]
pub struct BenchReload {
    /// How many extensions there are, one of which changes (several, with commas)
    #[arg(
        long = "extensions-count",
        value_name = "N",
        value_delimiter = ',',
        default_values_t = [1_usize, 10, 50]
    )]
    pub extensions: Vec<usize>,
    /// How often the file is saved, for each number of extensions
    #[arg(long, default_value_t = 20)]
    pub saves: usize,
    /// Instead: so many reloads of one extension among 50, under constant calls
    #[arg(long, value_name = "RELOADS")]
    pub soak: Option<usize>,
    /// Instead: kill the zygote so many times, in the middle of calls
    #[arg(long, value_name = "KILLS", conflicts_with = "soak")]
    pub kill: Option<usize>,
}

/// `tenon-bench soak`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon-bench soak
  tenon-bench soak --seconds 60 --extensions-count 10 --json

Exits with 1 if a call was lost, or something grows or is left: memory, threads, files, processes, zombies.")]
pub struct BenchSoak {
    /// For how long
    #[arg(long, default_value_t = 600)]
    pub seconds: u64,
    /// How many extensions there are
    #[arg(long = "extensions-count", value_name = "N", default_value_t = 50)]
    pub extensions: usize,
}

/// What `tenon-bench` measures, without a command.
#[derive(Debug, clap::Args)]
pub struct BenchSuite {
    /// How often each side has its turn
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub repetitions: usize,
    /// Only these chapters (several, with commas)
    #[arg(long, value_delimiter = ',', value_name = "CHAPTER")]
    pub only: Vec<Chapter>,
    /// How many extensions there are at once in the end, when it is measured how costs grow
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub most: usize,
    /// Write bench.json, bench.html, bench.svg and bench.md into this folder
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// A folder with node_modules/@github/copilot-sdk for the node processes [default: installed
    /// with npm into the home folder]
    #[arg(long, value_name = "DIR")]
    pub sdk: Option<PathBuf>,
    /// Leave out the node processes
    #[arg(long)]
    pub no_node: bool,
    /// Measure one point of growth in this process and print it; used by the benchmark itself
    #[arg(long, hide = true, value_name = "SIZE")]
    pub point: Option<Size>,
    /// Answer on standard input, a socket, with so many bytes; used by the benchmark itself
    #[arg(long, hide = true, value_name = "LENGTHS")]
    pub pong: Option<Lengths>,
}

/// A part of the suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Chapter {
    /// CPU and time until an extension is ready, and its memory
    Start,
    /// A tool call, and one through hooks
    #[value(alias = "hooks")]
    Call,
    /// Events to ten extensions
    Events,
    /// A changed extension among ten
    Reload,
    /// A long turn
    Turn,
    /// A script that only computes
    Compute,
    /// 20 sessions that share a zygote
    Sessions,
    /// Many extensions at once, many sessions
    Growth,
}

/// A number of sessions with a number of extensions each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// How many sessions.
    pub sessions: usize,
    /// How many extensions each has.
    pub extensions: usize,
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('x').and_then(|(sessions, extensions)| {
            Some((sessions.parse().ok()?, extensions.parse().ok()?))
        });
        let (sessions, extensions) = parsed.ok_or("it is SESSIONSxEXTENSIONS, such as 10x10")?;
        Ok(Self { sessions, extensions })
    }
}

/// How many bytes go to and fro.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    /// Of what is asked.
    pub request: usize,
    /// Of the answer.
    pub reply: usize,
}

impl FromStr for Lengths {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text
            .split_once(',')
            .and_then(|(request, reply)| Some((request.parse().ok()?, reply.parse().ok()?)));
        let (request, reply) = parsed.ok_or("it is REQUEST,REPLY in bytes, such as 200,30")?;
        Ok(Self { request, reply })
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_size_is_two_numbers() {
        assert_eq!("10x20".parse(), Ok(Size { sessions: 10, extensions: 20 }));
        for wrong in ["", "10", "x", "10x", "ax1", "1x2x3"] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn lengths_are_two_numbers() {
        assert_eq!("200,30".parse(), Ok(Lengths { request: 200, reply: 30 }));
        for wrong in ["", "1", "1,", ",1", "a,b", "1,2,3"] {
            assert!(wrong.parse::<Lengths>().is_err(), "{wrong}");
        }
    }
}
