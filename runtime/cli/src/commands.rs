//! One file for each command.

pub mod acp;
pub mod agents;
pub mod call;
pub mod chat;
pub mod demo;
pub mod demo_agent;
pub mod doctor;
pub mod engine_info;
pub mod ext;
pub mod mcp;
pub mod mcp_shim;
pub mod run;
pub mod sessions;
pub mod trust;
