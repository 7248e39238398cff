//! `tenon ext reload`.

use std::process::ExitCode;

use serde_json::Value;
use tenon_host::LoadError;
use tenon_host::control::Request;
use tenon_protocol::message::ScriptError;

use super::report::print_error;
use super::tell::Told;
use super::tell::tell;
use crate::args::Args;
use crate::error::CliError;
use crate::output;
use crate::output::BOLD;
use crate::output::DIM;
use crate::output::GREEN;
use crate::output::Progress;
use crate::output::RED;
use crate::output::YELLOW;
use crate::workspace::Workspace;

pub async fn run(args: &Args, name: Option<&str>) -> Result<ExitCode, CliError> {
    let workspace = Workspace::of(args)?;
    let sessions = workspace.live().await;
    if sessions.is_empty() {
        return Err(CliError::new(format!("no session is live in {}", workspace.root().display()))
            .hint("a session is live while an agent, or tenon ext top, runs in this repository")
            .hint("the next one loads what is on disk then; tenon ext check loads it now"));
    }
    let told = {
        let _progress = Progress::start("reloading ...");
        tell(sessions, &Request::Reload).await
    };
    let fine = told.iter().all(|one| is_fine(one, name));
    if args.json {
        output::json(&told)?;
    } else {
        told.iter().for_each(|one| print(one, name));
    }
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether the session did it, and what is asked about loads and does not wait for an approval.
fn is_fine(told: &Told, name: Option<&str>) -> bool {
    let Some(report) = &told.answer else { return false };
    let known = name.is_none() || extensions(report).any(|info| is_meant(info, name));
    let waits = name.is_some() && !ids(report, "waiting", name).is_empty();
    known && !waits && ids(report, "failed", name).is_empty()
}

fn extensions(report: &Value) -> impl Iterator<Item = &Value> {
    report["extensions"].as_array().into_iter().flatten()
}

fn is_meant(info: &Value, name: Option<&str>) -> bool {
    name.is_none_or(|name| info["id"] == name || info["name"] == name)
}

/// The ids in one list of the report, of what is asked about.
fn ids<'a>(report: &'a Value, list: &str, name: Option<&str>) -> Vec<&'a str> {
    let ids = report[list].as_array().into_iter().flatten().filter_map(Value::as_str);
    let is_meant = |id: &&str| {
        name.is_none_or(|name| {
            *id == name || id.split_once(':').is_some_and(|(_, rest)| rest == name)
        })
    };
    ids.filter(is_meant).collect()
}

fn print(told: &Told, name: Option<&str>) {
    output::line(told.heading());
    let Some(report) = &told.answer else {
        let error = told.error.as_deref().unwrap_or("it did not answer");
        output::line(format_args!("  {RED}{error}{RED:#}"));
        return;
    };
    let lists = [
        ("reloaded", GREEN),
        ("added", GREEN),
        ("removed", YELLOW),
        ("waiting", YELLOW),
        ("failed", RED),
    ];
    let mut nothing = true;
    for (list, style) in lists {
        let ids = ids(report, list, name);
        if !ids.is_empty() {
            nothing = false;
            output::line(format_args!("  {style}{list:<8}{style:#}  {}", ids.join(", ")));
        }
    }
    if nothing {
        let about = name.unwrap_or("extensions");
        output::line(format_args!("  {DIM}nothing was loaded: {about}{DIM:#}"));
    }
    for info in extensions(report).filter(|info| is_meant(info, name)) {
        if let Some(error) = error_of(info) {
            output::line(format_args!(
                "  {BOLD}{}{BOLD:#} {}",
                info["id"].as_str().unwrap_or_default(),
                info["status"].as_str().unwrap_or_default()
            ));
            print_error(&error, "    ");
        }
    }
}

/// Why an extension does not run, or not what is on disk now.
fn error_of(info: &Value) -> Option<LoadError> {
    let error = info.get("error").filter(|error| error.is_object())?;
    let what: ScriptError = serde_json::from_value(error.clone()).ok()?;
    Some(LoadError { what, hint: error["hint"].as_str().map(str::to_owned) })
}
