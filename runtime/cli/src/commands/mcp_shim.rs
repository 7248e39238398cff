//! `tenon mcp-shim`: standard input and output of an agent's MCP server, which is in another process of ours.

use std::process::ExitCode;

use crate::args::Args;
use crate::args::fronts::McpShimArgs;
use crate::error::CliError;
use crate::output;

pub async fn run(_args: &Args, shim: &McpShimArgs) -> Result<ExitCode, CliError> {
    let stdout = output::protocol_stdout()?;
    tenon_acp::shim::run(&shim.socket, stdout).await.map_err(|error| {
        CliError::new(format!("the tools at {} cannot be reached: {error}", shim.socket.display()))
            .hint("the session that offered them has probably ended")
    })?;
    Ok(ExitCode::SUCCESS)
}
