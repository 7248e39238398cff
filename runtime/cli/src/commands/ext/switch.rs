//! `tenon ext enable` and `tenon ext disable`. Nothing is loaded for it; sessions that are live are told.

use std::process::ExitCode;

use serde_json::json;
use tenon_host::control::Request;
use tenon_host::discovery::Found;
use tenon_host::store::StoreError;
use tenon_host::switches::Switches;

use super::tell::Told;
use super::tell::tell;
use crate::args::Args;
use crate::error::CliError;
use crate::output;
use crate::output::BOLD;
use crate::output::DIM;
use crate::output::GREEN;
use crate::output::YELLOW;
use crate::workspace::Workspace;

/// The reason where none is given.
const USUAL_REASON: &str = "switched off by tenon ext disable";

pub async fn enable(args: &Args, name: &str) -> Result<ExitCode, CliError> {
    let workspace = Workspace::of(args)?;
    let found = workspace.pick(name)?;
    let changed = Switches::of(&workspace.home).switch_on(&found.folder).map_err(explain)?;
    let request = Request::Enable { name: found.id() };
    let told = tell(workspace.live_with(found.scope).await, &request).await;
    let state = if changed { "enabled" } else { "was not disabled" };
    show(args, &found, ("enabled", state), None, &told)
}

pub async fn disable(args: &Args, name: &str, why: Option<&str>) -> Result<ExitCode, CliError> {
    let workspace = Workspace::of(args)?;
    let found = workspace.pick(name)?;
    let why = why.unwrap_or(USUAL_REASON);
    Switches::of(&workspace.home).switch_off(&found.folder, why).map_err(explain)?;
    let request = Request::Disable { name: found.id(), why: why.to_owned() };
    let told = tell(workspace.live_with(found.scope).await, &request).await;
    show(args, &found, ("disabled", "disabled"), Some(why), &told)
}

fn explain(error: StoreError) -> CliError {
    CliError::new(error.to_string())
}

fn show(
    args: &Args,
    found: &Found,
    (status, said): (&str, &str),
    why: Option<&str>,
    told: &[Told],
) -> Result<ExitCode, CliError> {
    if args.json {
        output::json(&json!({
            "id": found.id(),
            "folder": found.folder,
            "status": status,
            "why": why,
            "sessions": told,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let style = if status == "enabled" { GREEN } else { YELLOW };
    output::line(format_args!("{BOLD}{}{BOLD:#} {style}{said}{style:#}", found.id()));
    if let Some(other) = &found.shadowed_by {
        output::line(format_args!("  {DIM}{other} is used instead, if it runs{DIM:#}"));
    }
    for one in told {
        output::line(format_args!("  {}", one.heading()));
        if let Some(error) = &one.error {
            output::line(format_args!("    {YELLOW}{error}{YELLOW:#}"));
        }
        if let Some(now) = one.answer.as_ref().and_then(|info| info["status"].as_str()) {
            output::line(format_args!("    {now}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}
