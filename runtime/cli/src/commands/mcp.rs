//! `tenon mcp`: the tools of extensions for any MCP client. There is no agent and no prompt; hooks run around
//! the tools as always.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use tenon_acp::config::ReloadStrategy;
use tenon_acp::endpoint;
use tenon_acp::endpoint::Endpoint;
use tenon_acp::endpoint::EndpointOptions;
use tenon_acp::stdio;
use tenon_host::Session;
use tenon_host::Status;
use tenon_host::environment;
use tenon_host::session::EndReason;
use tenon_host::session::PermissionCheck;

use crate::args::Args;
use crate::args::fronts::McpArgs;
use crate::error::CliError;
use crate::output;
use crate::output::BOLD;
use crate::output::YELLOW;
use crate::workspace;

/// The variable that clients' token is in, if it is not on the command line.
const TOKEN_VARIABLE: &str = "TENON_MCP_TOKEN";

/// How long a client that has closed standard input may take to read what it was answered last.
const LAST_WORDS: Duration = Duration::from_secs(5);

pub async fn run(args: &Args, mcp: &McpArgs) -> Result<ExitCode, CliError> {
    let (session, _guard) = workspace::load_live(args).await?;
    tell_what_is_missing(&session);
    let served = match mcp.http {
        Some(address) => serve_http(args, mcp, &session, address).await,
        None => serve_stdio(&session).await,
    };
    session.end(EndReason::UserExit).await;
    served.map(|()| ExitCode::SUCCESS)
}

/// Serves whoever has started us, until it closes standard input.
async fn serve_stdio(session: &Session) -> Result<(), CliError> {
    let input = stdio::input()?;
    let (sink, written) = stdio::output(output::protocol_stdout()?)?;
    tokio::select! {
        () = endpoint::serve_streams(session, input, sink) => {
            // A client that does not want to read it has left.
            let _ = tokio::time::timeout(LAST_WORDS, written.wait()).await;
        }
        () = workspace::interruption() => {}
    }
    Ok(())
}

/// Serves everybody who has the token, until we are told to end.
async fn serve_http(
    args: &Args,
    mcp: &McpArgs,
    session: &Session,
    address: SocketAddr,
) -> Result<(), CliError> {
    let token = mcp.token.clone().or_else(token_of_environment);
    let is_made_up = token.is_none();
    let options = EndpointOptions {
        reload: ReloadStrategy::ListChanged,
        // Clients ask their person before they call a tool; there is nobody else to ask.
        permission: PermissionCheck::Granted,
        address: Some(address),
        token,
        run_dir: workspace::home(args)?.join("run"),
        turn_bound: false,
        initialize_only: false,
    };
    let endpoint = Endpoint::start(session.downgrade(), options).await.map_err(|error| {
        CliError::new(format!("the tools cannot be offered at {address}: {error}"))
    })?;
    endpoint.follow(session);
    tell_where(args, &endpoint, is_made_up);
    workspace::interruption().await;
    endpoint.close().await;
    Ok(())
}

fn tell_where(args: &Args, endpoint: &Endpoint, is_made_up: bool) {
    if args.json {
        let mut told = json!({ "url": endpoint.url() });
        if is_made_up {
            told["token"] = endpoint.token().into();
        }
        output::line(told);
        return;
    }
    output::note(format_args!("{BOLD}url{BOLD:#}    {}", endpoint.url()));
    if is_made_up {
        output::note(format_args!("{BOLD}token{BOLD:#}  {}", endpoint.token()));
    }
}

/// The program has taken its secrets out of its environment; they are kept.
fn token_of_environment() -> Option<String> {
    let mut all = environment::of_host().into_iter();
    all.find(|(name, value)| name == TOKEN_VARIABLE && !value.is_empty()).map(|(_, value)| value)
}

/// Clients see only what runs; the person should know why something is not there.
fn tell_what_is_missing(session: &Session) {
    let idle = workspace::missing(session, &[Status::Failed, Status::Untrusted]);
    if !idle.is_empty() {
        output::note(format_args!(
            "{YELLOW}warning{YELLOW:#}: not loaded: {}; run `tenon ext list` for details",
            idle.join(", ")
        ));
    }
}
