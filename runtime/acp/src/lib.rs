//! ACP agents: which there are, and how each is started.
//!
//! For now this crate knows the agents; running one as a subprocess builds on it.

pub mod profiles;
