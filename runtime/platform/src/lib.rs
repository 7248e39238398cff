//! The JavaScript platform that one extension sees, without the thread that runs it.
//!
//! This crate lists Deno's extensions in the one order that snapshot and run time share
//! ([`extensions`]) and replaces the ops that would reach across isolates ([`ops`]). It is a crate of
//! its own because two programs need exactly the same ops: the build script that makes the startup
//! snapshot, and the isolate that starts from it.

pub mod extensions;
pub mod ops;
pub mod sources;
