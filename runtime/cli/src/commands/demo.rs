//! `tenon demo`.
use crate::args::Args;
use crate::error::CliError;
use std::process::ExitCode;
pub async fn run(_args: &Args) -> Result<ExitCode, CliError> {
    Ok(ExitCode::SUCCESS)
}
