//! `tenon bench`.
use crate::args::Args;
use crate::args::BenchCommand;
use crate::error::CliError;
use std::process::ExitCode;
pub async fn run(_args: &Args, _command: &BenchCommand) -> Result<ExitCode, CliError> {
    Ok(ExitCode::SUCCESS)
}
