//! The `tenon` binary, as its users meet it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod bad_input;
mod bench;
mod command_line;
#[cfg(target_os = "linux")]
mod constrained;
mod containment;
mod examples;
mod modules;
mod people;
#[cfg(target_os = "linux")]
mod privacy;
mod results;
mod snapshot;
#[cfg(target_os = "linux")]
mod zygotes;
