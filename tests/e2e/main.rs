//! The `tenon` binary, as its users meet it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod bad_input;
mod containment;
mod modules;
mod results;
mod snapshot;
