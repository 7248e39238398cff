//! `tenon --engine-info`.

use std::process::ExitCode;

use crate::error::CliError;
use crate::output;

/// Prints which engine is built in.
pub fn run(json: bool) -> Result<ExitCode, CliError> {
    let engine = crate::engine::info();
    if json {
        output::json(&engine)?;
    } else {
        output::line(format_args!("engine    {} {}", engine.name, engine.version));
        output::line(format_args!("snapshot  {}", if engine.snapshot { "yes" } else { "no" }));
        output::line(format_args!("node      compatible with {}", engine.node));
    }
    Ok(ExitCode::SUCCESS)
}
