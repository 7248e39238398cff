//! The contract with extensions, as folders below `specs`: see `specs/README.md`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod agent;
mod case;
mod contract;
mod front;
mod perform;
mod script;
mod stage;
mod text;

use std::process::ExitCode;

use libtest_mimic::Arguments;
use libtest_mimic::Failed;
use libtest_mimic::Trial;

use crate::case::Case;

fn main() -> ExitCode {
    let cases = Case::all();
    let mut trials: Vec<Trial> =
        cases.iter().map(|case| trial(case, tenon_tests::ENGINE)).collect();
    trials.push(check("every_member_has_a_spec", cases.clone(), contract::every_member_has_a_spec));
    trials.push(check("every_event_has_a_spec", cases, contract::every_event_has_a_spec));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// One case. It is ignored on the engines that its header leaves out.
fn trial(case: &Case, engine: &'static str) -> Trial {
    let ignored = case.header.as_ref().is_ok_and(|header| !header.runs_on(engine));
    let name = case.name();
    let case = case.clone();
    Trial::test(name, move || case.check(engine).map_err(Failed::from)).with_ignored_flag(ignored)
}

/// A check of all cases together.
fn check(name: &str, cases: Vec<Case>, body: fn(&[Case]) -> Result<(), String>) -> Trial {
    Trial::test(format!("contract::{name}"), move || body(&cases).map_err(Failed::from))
}

/// Whether what is expected is written instead of compared.
fn updating() -> bool {
    std::env::var_os("UPDATE_SPECS").is_some_and(|value| !value.is_empty() && value != "0")
}
