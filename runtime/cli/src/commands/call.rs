//! `tenon call`.

use std::io::Read;
use std::process::ExitCode;

use serde_json::Value;
use tenon_host::LogLine;
use tenon_host::Session;
use tenon_host::Status;
use tenon_host::session::CallError;
use tenon_host::session::EndReason;
use tenon_host::session::ToolCall;
use tenon_host::tool::ResultType;
use tenon_host::tool::ToolResult;

use crate::args::Args;
use crate::args::CallArgs;
use crate::error::CliError;
use crate::output;
use crate::output::DIM;
use crate::output::RED;
use crate::sanitise::clean;
use crate::workspace;

pub async fn run(args: &Args, call: &CallArgs) -> Result<ExitCode, CliError> {
    let arguments = read_arguments(&call.args)?;
    let session = workspace::load(args).await?;
    let outcome = tokio::select! {
        called = session.call_tool(ToolCall::new(&call.tool, arguments)) => {
            called.map(|outcome| outcome.result).map_err(|error| explain(error, &session))
        }
        () = workspace::interruption() => Ok(ToolResult::failure("interrupted")),
    };
    let owner =
        session.list().into_iter().find(|info| info.tools.iter().any(|t| t.name == call.tool));
    session.end(EndReason::Complete).await;
    let result = outcome?;
    if call.verbose
        && let Some(owner) = owner
    {
        print_log(&session.log(&owner));
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

fn explain(error: CallError, session: &Session) -> CliError {
    let CallError::UnknownTool { available, .. } = &error;
    if session.list().is_empty() {
        return workspace::nothing_found(session);
    }
    let mut described = CliError::new(error.to_string());
    if !available.is_empty() {
        described = described.hint(format!("there are: {}", available.join(", ")));
    }
    let idle = workspace::missing(session, &[Status::Failed, Status::Untrusted, Status::Disabled]);
    if !idle.is_empty() {
        described = described
            .hint(format!("not loaded: {}; run `tenon ext list` for details", idle.join(", ")));
    }
    described
}

fn print_log(log: &[LogLine]) {
    for line in log {
        output::note(format_args!("{DIM}{}{DIM:#}", clean(&line.text)));
    }
}

fn print(result: &ToolResult) {
    if result.result_type == ResultType::Success {
        let text = &result.text_result_for_llm;
        // A program that reads the result gets it as it is.
        if output::is_terminal() {
            output::line(clean(text))
        } else {
            output::line(text)
        }
        return;
    }
    output::note(format_args!("{RED}{}{RED:#}", clean(&result.text_result_for_llm)));
    if let Some(place) = &result.location {
        let file = clean(&place.file);
        output::note(format_args!("{DIM}-->{DIM:#} {file}:{}:{}", place.line, place.column));
    }
}
