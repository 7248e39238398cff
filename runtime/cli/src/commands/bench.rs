//! `tenon bench`: what things cost, each beside what it is compared with, in one run.

mod acp;
mod events;
mod hooks;
pub mod hostile;
mod node;
mod process;
pub mod reload;
mod single;
mod stage;
mod start;
mod workspace;

use std::process::ExitCode;

use crate::args::Args;
use crate::args::BenchCommand;
use crate::error::CliError;

pub async fn run(args: &Args, command: &BenchCommand) -> Result<ExitCode, CliError> {
    match command {
        BenchCommand::Start(bench) => start::run(args, bench).await,
        BenchCommand::Hooks(bench) => hooks::run(args, bench).await,
        BenchCommand::Events(bench) => events::run(args, bench).await,
        BenchCommand::Reload(bench) => reload::run(args, bench).await,
        BenchCommand::Hostile(bench) => hostile::run(args, bench).await,
        BenchCommand::Acp(bench) => acp::run(args, bench).await,
    }
}
