//! Locks the calling process into an extension's grant, by the kernel, for good, with all that it starts.
//!
//! Four layers, in the order in which they are applied:
//!
//! 1. `no_new_privs`, no core dumps.
//! 2. A mount namespace, only if something is denied inside an allowed folder: Landlock adds up what is
//!    allowed and cannot take away. See [`Layers::mount_namespace`]. Capabilities are dropped afterwards.
//! 3. Landlock: files, TCP ports, signals, abstract sockets, and no way into other processes.
//! 4. seccomp: system calls that lead around the rest, sockets, and the start of programs.
//!
//! What this does not do: host names and the names of programs are not checked (a program that may be
//! started at all may be any of the system's), and the kernel lets everybody see that a file exists, its
//! size and its times. The session checks both before it asks the system.
//!
//! The process must have one thread, and hold no folder open from before: a descriptor of a folder leads
//! around the mounts of layer 2.

mod error;
mod layers;
mod programs;

#[cfg(target_os = "linux")]
mod capabilities;
#[cfg(target_os = "linux")]
mod confinement;
#[cfg(target_os = "linux")]
pub mod control_groups;
#[cfg(target_os = "linux")]
mod landlock_rules;
#[cfg(target_os = "linux")]
mod links;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod namespace;
#[cfg(target_os = "linux")]
mod plan;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(target_os = "linux")]
mod programs_network;
#[cfg(target_os = "linux")]
mod system_calls;

use std::path::Path;
use std::path::PathBuf;

use tenon_protocol::message::Grant;

pub use error::SandboxError;
pub use layers::Layer;
pub use programs::named as programs_named;
pub use tenon_protocol::layers::Layers;

/// What a process is locked into, with the places that a grant does not name but the runtime needs.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// What the extension may touch.
    pub grant: &'a Grant,
    /// The extension's own folder, always readable.
    pub folder: &'a Path,
    /// More that the runtime itself must read, whatever the grant says.
    pub readable: &'a [PathBuf],
    /// Never written, even inside an allowed folder: where code is picked up.
    pub protected: &'a [PathBuf],
    /// What happens if not all of it can be enforced.
    pub mode: Mode,
}

impl Request<'_> {
    /// Whether nothing is to be restricted.
    fn is_unrestricted(&self) -> bool {
        self.protected.is_empty() && *self.grant == Grant::default()
    }
}

/// What happens if a restriction cannot be enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is left out, and the layers say so.
    BestEffort,
    /// It is an error.
    Required,
}

/// Which layers this system has. Changes nothing in this process: namespaces are tried in a child.
pub fn available() -> Layers {
    #[cfg(target_os = "linux")]
    return probe::available();
    #[cfg(not(target_os = "linux"))]
    return Layers::default();
}

/// Locks this process, irrevocably, and returns what is in force. After an error some of it may be in
/// force already: end the process.
pub fn confine(request: &Request<'_>) -> Result<Layers, SandboxError> {
    confine_within(request, &Layers::every())
}

/// Locks this process with no more than some layers, as on a system that has no others.
pub fn confine_within(request: &Request<'_>, layers: &Layers) -> Result<Layers, SandboxError> {
    if request.is_unrestricted() {
        return Ok(Layers { unrestricted: true, ..Layers::default() });
    }
    #[cfg(target_os = "linux")]
    return confinement::apply(request, layers);
    #[cfg(not(target_os = "linux"))]
    return nothing_here(request.mode, layers);
}

#[cfg(not(target_os = "linux"))]
fn nothing_here(mode: Mode, _: &Layers) -> Result<Layers, SandboxError> {
    let reason = format!("{} has no such thing", std::env::consts::OS);
    match mode {
        Mode::Required => Err(SandboxError::Missing { layer: Layer::Landlock, reason }),
        Mode::BestEffort => Ok(Layers {
            notes: vec![format!("nothing is enforced: {reason}")],
            ..Layers::default()
        }),
    }
}
