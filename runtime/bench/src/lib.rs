//! What extensions cost in Tenon, and whether a session loses or leaks anything in the long run.
//!
//! Sessions are those of `tenon-host`, as the command line has them; their extensions run in processes that the `tenon` program
//! under measurement forks, and agents and proxies are that program. Only what is compared with threads of one process needs an
//! engine, and that is a program of its own ([`threads`]).

mod acp;
mod args;
mod events;
mod hostile;
mod in_process;
mod load;
mod measured;
mod node_host;
mod process;
mod reload;
mod single;
mod soak;
mod start;
mod suite;
mod tenon;
pub mod threads;

use std::process::ExitCode;

use clap::Parser;
use tenon_console::error::CliError;
use tenon_console::preflight;

use crate::args::Args;
use crate::args::BenchCommand;
use crate::tenon::Tenon;

/// The program.
///
/// # Safety
///
/// It must be called first thing in `main`, while there is one thread: it changes the environment.
pub unsafe fn main() -> ExitCode {
    // SAFETY: as demanded above.
    unsafe { tenon_host::environment::seal() };
    preflight::survive_file_limit();
    let args = Args::parse();
    let outcome = preflight::prepare(false).and_then(|runtime| runtime.block_on(run(args)));
    outcome.unwrap_or_else(|error| {
        error.print();
        ExitCode::FAILURE
    })
}

async fn run(args: Args) -> Result<ExitCode, CliError> {
    if let Some(lengths) = args.suite.pong {
        suite::pong(lengths)?;
        return Ok(ExitCode::SUCCESS);
    }
    let tenon = Tenon::find(args.tenon.as_deref())?;
    let Some(command) = &args.command else {
        return suite::run(&args, &tenon, &args.suite).await;
    };
    match command {
        BenchCommand::Start(bench) => start::run(&args, &tenon, bench).await,
        BenchCommand::Events(bench) => events::run(&args, &tenon, bench).await,
        BenchCommand::Reload(bench) => reload::run(&args, &tenon, bench).await,
        BenchCommand::Hostile(bench) => hostile::run(&args, &tenon, bench).await,
        BenchCommand::Soak(bench) => soak::run(&args, &tenon, bench).await,
        BenchCommand::Acp(bench) => acp::run(&args, &tenon, bench).await,
    }
}
