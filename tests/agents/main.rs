//! Agents as subprocesses, and the fronts before them: the `tenon` program with its demo agent, from outside.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod bad_agents;
mod chat;
mod client;
mod command_line;
mod cycles;
mod guarding;
mod mcp;
mod proxy;
mod pty;
mod spawning;
mod story;
mod terminal;
mod waiting;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let trials = [
        story::trials(),
        spawning::trials(),
        bad_agents::trials(),
        proxy::trials(),
        cycles::trials(),
        chat::trials(),
        guarding::trials(),
        mcp::trials(),
        command_line::trials(),
        terminal::trials(),
    ];
    let trials = trials.into_iter().flatten().collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
