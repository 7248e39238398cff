//! One file for each command.

pub mod agents;
pub mod bench;
pub mod call;
pub mod demo;
pub mod doctor;
pub mod engine_info;
pub mod ext;
pub mod trust;
