//! Extensions and the session they join, without any agent.
//!
//! [`Session`] is the entry: it finds extensions, starts each in an isolate, and puts every prompt, tool
//! call, command and event through them. What answers prompts ([`front::Agent`]) and where the person is
//! ([`front::Front`]) is given to it.

pub mod config;
pub mod discovery;
pub mod environment;
pub mod events;
mod extension;
mod extensions;
pub mod front;
pub mod grants;
mod hooks;
mod ids;
mod logs;
mod registry;
pub mod session;
pub mod tool;

pub use extension::CommandDeclaration;
pub use extension::ExtensionInfo;
pub use extension::HookDeclaration;
pub use extension::LoadError;
pub use extension::Status;
pub use hooks::HOOK_DEADLINE;
pub use hooks::tool_use::Decided;
pub use hooks::tool_use::Permission;
pub use logs::LogLine;
pub use session::Session;
pub use session::SessionOptions;
pub use tenon_isolate as isolate;
