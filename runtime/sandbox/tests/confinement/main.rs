//! Each case is tried in a process of its own: confined, and for comparison not; as root and as another
//! user, if this is root. The process that is confined has a parent of the same user, as an extension's
//! has, and one thread: so this program starts itself again before it has a second one.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[cfg(target_os = "linux")]
mod asked;
#[cfg(target_os = "linux")]
mod attempts;
#[cfg(target_os = "linux")]
mod cases;
#[cfg(target_os = "linux")]
mod cost;
#[cfg(target_os = "linux")]
mod harness;
#[cfg(target_os = "linux")]
mod world;

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    return harness::main();
    #[cfg(not(target_os = "linux"))]
    return ExitCode::SUCCESS;
}
