//! The command line of `tenon`, without the JavaScript engine: the binary brings that along ([`Engine`]), so that the
//! tests of this crate link none.

mod agent_choice;
mod args;
mod catalogue;
mod commands;
mod engine;
mod terminal;
mod trace;
mod workspace;

use std::process::ExitCode;

use clap::Parser;
#[cfg(target_os = "linux")]
use rustix::process::DumpableBehavior;
use tenon_console::error;
use tenon_console::output;
use tenon_console::preflight;
use tenon_console::sanitise;

use crate::args::Args;
use crate::args::Command;
pub use crate::engine::Engine;
use crate::error::CliError;

/// The program.
///
/// # Safety
///
/// It must be called first thing in `main`, while there is one thread: it changes the environment.
pub unsafe fn main(engine: Engine) -> ExitCode {
    // SAFETY: as demanded above.
    unsafe { tenon_host::environment::seal() };
    preflight::survive_file_limit();
    if let Some(code) = (engine.serve_if_asked)() {
        return code;
    }
    // The session's memory has what extensions and agents must not see: tokens, prompts of others.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    engine::set(engine);
    if let Some(code) = tenon_acp::guard::serve_if_asked() {
        return code;
    }
    let args = Args::parse();
    if let Some(Command::DemoAgent(demo)) = &args.command {
        // SAFETY: there is still one thread.
        return unsafe { commands::demo_agent::run(demo) };
    }
    let outcome = preflight::prepare(args.starts_an_agent())
        .and_then(|runtime| trace::start(&args).map(|()| runtime))
        .and_then(|runtime| runtime.block_on(run(args)));
    trace::finish();
    outcome.unwrap_or_else(|error| {
        error.print();
        ExitCode::FAILURE
    })
}

async fn run(args: Args) -> Result<ExitCode, CliError> {
    if args.engine_info {
        return commands::engine_info::run(args.json);
    }
    match &args.command {
        Some(Command::Ext(command)) => commands::ext::run(&args, command).await,
        Some(Command::Call(call)) => commands::call::run(&args, call).await,
        Some(Command::Run(run)) => commands::run::run(&args, run).await,
        Some(Command::Chat(chat)) => commands::chat::run(&args, chat).await,
        Some(Command::Acp(acp)) => commands::acp::run(&args, acp).await,
        Some(Command::Mcp(mcp)) => commands::mcp::run(&args, mcp).await,
        Some(Command::McpShim(shim)) => commands::mcp_shim::run(&args, shim).await,
        Some(Command::Sessions(command)) => commands::sessions::run(&args, command).await,
        Some(Command::Agents) => commands::agents::run(&args).await,
        Some(Command::Demo) => commands::demo::run(&args).await,
        Some(Command::Trust(trust)) => commands::trust::run(&args, trust).await,
        Some(Command::Doctor) => commands::doctor::run(&args).await,
        Some(Command::DemoAgent(_)) => {
            Err(CliError::new("the demo agent is started before anything else"))
        }
        Some(Command::Zygote { .. }) => Err(CliError::new("the zygote is started by tenon itself")),
        None => Err(CliError::new("no command was given").hint("tenon --help lists them")),
    }
}
