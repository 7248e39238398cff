//! Extensions from discovery to the tool call, without any agent.
//!
//! [`Host`] is the entry: it finds extensions, starts each in an isolate, keeps the registry of their
//! tools and passes calls.

pub mod config;
pub mod discovery;
pub mod environment;
mod extension;
pub mod grants;
mod host;
mod logs;
mod registry;
pub mod tool;

pub use extension::ExtensionInfo;
pub use extension::LoadError;
pub use extension::Status;
pub use host::CallError;
pub use host::Host;
pub use host::HostOptions;
pub use logs::LogLine;
pub use tenon_isolate as isolate;
