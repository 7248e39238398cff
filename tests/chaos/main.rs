//! Extensions that misbehave, files that change and processes that die while a session goes on.
//!
//! Isolates are where the `tenon` program has them: in a process of their own. This one has no engine.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod approval;
mod case;
mod control_groups;
mod floods;
mod forks;
mod handover;
mod hostile;
mod killing;
mod leftovers;
mod native_memory;
mod reload;
mod results;
mod starts;
mod stopping;
mod storm;
mod supervision;
mod without_memory;
mod world;

use std::io::Write;
use std::process::ExitCode;

use libtest_mimic::Arguments;

/// The secret that extensions look for.
pub const SECRET: (&str, &str) = ("CHAOS_TEST_TOKEN", "hunter2-of-chaos");

fn main() -> ExitCode {
    if let Some(tenon) = std::env::var_os(without_memory::VARIABLE) {
        let error = without_memory::become_tenon(&tenon);
        let _ = writeln!(std::io::stderr(), "{}: {error}", tenon.display());
        return ExitCode::FAILURE;
    }
    // SAFETY: this is the first statement of the program; there is one thread.
    unsafe { std::env::set_var(SECRET.0, SECRET.1) };
    // The test runner sets it. An extension that may start a few programs only must not start them with it.
    // SAFETY: as above.
    unsafe { std::env::remove_var("LD_LIBRARY_PATH") };
    let trials = [
        hostile::trials(),
        approval::trials(),
        reload::trials(),
        results::trials(),
        storm::trials(),
        handover::trials(),
        control_groups::trials(),
        forks::trials(),
        killing::trials(),
        leftovers::trials(),
        stopping::trials(),
        native_memory::trials(),
        starts::trials(),
        floods::trials(),
        supervision::trials(),
    ];
    let trials = trials.into_iter().flatten().collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
