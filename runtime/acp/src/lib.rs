//! Agents that speak ACP, as subprocesses, with the tools of extensions in their turns; and any ACP client in
//! front of them.
//!
//! [`conversation::Conversation`] is the entry: a session of extensions with an agent behind it. [`proxy`]
//! serves conversations to an editor, [`endpoint`] offers the tools of a session by MCP.

pub mod agent;
pub mod bridge;
pub mod client_services;
pub mod command_line;
pub mod config;
mod content;
pub mod conversation;
pub mod definition;
pub mod endpoint;
pub mod environment;
pub mod guard;
pub mod launch;
mod permission_options;
pub mod policy;
pub mod process;
pub mod profiles;
pub mod proxy;
pub mod record;
pub mod rpc;
pub mod shim;
mod stderr_log;
pub mod stdio;
pub mod vocabulary;
