//! What the programs that a person runs have in common: how they start, where they keep things, what they print, and how they
//! say what went wrong.

pub mod error;
pub mod home;
pub mod output;
pub mod preflight;
pub mod sanitise;
