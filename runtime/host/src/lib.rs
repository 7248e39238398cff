//! Extensions and the session they join, without any agent.
//!
//! [`Session`] is the entry: it finds extensions, starts each in an isolate, and puts every prompt, tool
//! call, command and event through them. What answers prompts ([`session::Agent`]) and where the person is
//! ([`front::Front`]) is given to it.

pub mod approvals;
pub mod beneath;
pub mod config;
pub mod control;
pub mod discovery;
pub mod environment;
pub mod events;
mod extension;
mod extensions;
pub mod front;
pub mod grants;
mod hooks;
mod ids;
pub mod install;
pub mod isolates;
pub mod layout;
mod lifecycle;
pub mod limits;
pub mod log_files;
mod logs;
pub mod manage;
mod picked_up;
pub mod private_socket;
pub mod scaffold;
mod schema;
pub mod session;
mod staging;
pub mod store;
pub mod supervision;
pub mod switches;
pub mod tool;
pub mod trust;
pub mod watch;

pub use extension::CommandDeclaration;
pub use extension::ExtensionInfo;
pub use extension::HookDeclaration;
pub use extension::LoadError;
pub use extension::Status;
pub use hooks::tool_use::Decided;
pub use hooks::tool_use::Permission;
pub use isolates::Isolates;
pub use logs::LogLine;
pub use session::Session;
pub use session::SessionOptions;
pub use supervision::Timing;
pub use tenon_protocol as protocol;

/// What the fuzz targets call and nobody else outside of this crate.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::hooks::Chain;
    pub use crate::hooks::Output;
    pub use crate::hooks::lifecycle;
    pub use crate::hooks::prompt;
    pub use crate::hooks::tool_use;
}
