//! `tenon call`.

use std::io::Read;
use std::process::ExitCode;

use serde_json::Value;
use tenon_host::CallError;
use tenon_host::Host;
use tenon_host::LogLine;
use tenon_host::Status;
use tenon_host::tool::ResultType;
use tenon_host::tool::ToolResult;

use crate::args::Args;
use crate::args::CallArgs;
use crate::error::CliError;
use crate::output;
use crate::output::DIM;
use crate::output::RED;
use crate::workspace;

pub async fn run(args: &Args, call: &CallArgs) -> Result<ExitCode, CliError> {
    let arguments = read_arguments(&call.args)?;
    let host = workspace::load(args).await?;
    let outcome = tokio::select! {
        result = host.call_tool(&call.tool, arguments) => result.map_err(|error| explain(error, &host)),
        () = workspace::interruption() => Ok(ToolResult::failure("interrupted")),
    };
    let owner = host.list().into_iter().find(|info| info.tools.iter().any(|t| t.name == call.tool));
    host.stop().await;
    let result = outcome?;
    if call.verbose
        && let Some(owner) = owner
    {
        print_log(&host.log(&owner));
    }
    if args.json {
        output::json(&result)?;
    } else {
        print(&result);
    }
    Ok(match result.result_type {
        ResultType::Success => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

fn read_arguments(text: &str) -> Result<Value, CliError> {
    let text = if text == "-" {
        let mut read = String::new();
        std::io::stdin().read_to_string(&mut read)?;
        read
    } else {
        text.to_owned()
    };
    let value: Value = serde_json::from_str(&text).map_err(|error| {
        CliError::new(format!("--args is not valid JSON: {error}"))
            .hint("for example --args '{\"path\":\"README.md\"}'")
    })?;
    if !value.is_object() {
        return Err(CliError::new("--args must be a JSON object")
            .hint("for example --args '{\"path\":\"README.md\"}'"));
    }
    Ok(value)
}

fn explain(error: CallError, host: &Host) -> CliError {
    let CallError::UnknownTool { available, .. } = &error;
    let extensions = host.list();
    if extensions.is_empty() {
        return workspace::nothing_found(host);
    }
    let mut described = CliError::new(error.to_string());
    if !available.is_empty() {
        described = described.hint(format!("there are: {}", available.join(", ")));
    }
    let idle: Vec<_> = extensions
        .iter()
        .filter(|info| matches!(info.status, Status::Failed | Status::Untrusted))
        .map(|info| format!("{} ({})", info.id, info.status))
        .collect();
    if !idle.is_empty() {
        described =
            described.hint(format!("not loaded: {}; tenon ext list says why", idle.join(", ")));
    }
    described
}

fn print_log(log: &[LogLine]) {
    for line in log {
        anstream::eprintln!("{DIM}{}{DIM:#}", line.text);
    }
}

fn print(result: &ToolResult) {
    if result.result_type == ResultType::Success {
        output::line(&result.text_result_for_llm);
        return;
    }
    anstream::eprintln!("{RED}{}{RED:#}", result.text_result_for_llm);
    if let Some(place) = &result.location {
        anstream::eprintln!("{DIM}-->{DIM:#} {}:{}:{}", place.file, place.line, place.column);
    }
}
