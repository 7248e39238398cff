//! `tenon bench`: what things cost, each beside what it is compared with, in one run.

mod acp;
mod events;
pub mod hostile;
mod load;
mod node_host;
mod process;
pub mod reload;
mod single;
pub mod soak;
mod stage;
mod start;
pub mod suite;
mod workspace;

use std::process::ExitCode;

use crate::args::Args;
use crate::args::bench::BenchArgs;
use crate::args::bench::BenchCommand;
use crate::error::CliError;

pub async fn run(args: &Args, bench: &BenchArgs) -> Result<ExitCode, CliError> {
    let Some(command) = &bench.command else {
        return suite::run(args, &bench.suite).await;
    };
    match command {
        BenchCommand::Start(bench) => start::run(args, bench).await,
        BenchCommand::Events(bench) => events::run(args, bench).await,
        BenchCommand::Reload(bench) => reload::run(args, bench).await,
        BenchCommand::Hostile(bench) => hostile::run(args, bench).await,
        BenchCommand::Soak(bench) => soak::run(args, bench).await,
        BenchCommand::Acp(bench) => acp::run(args, bench).await,
    }
}
