//! What decides about an extension's programs beside Deno's check of their names, and what tells the kernel's refusals apart.

use std::path::Path;
use std::sync::Arc;
use std::sync::OnceLock;

use deno_error::JsErrorBox;
use tenon_platform::ops::programs::Supervision;
use tenon_platform::ops::programs::Supervisor;

use crate::message::Access;
use crate::message::Grant;
use crate::terminator::Terminator;

/// Decides for an extension and all of its workers. Clones share what is known.
#[derive(Clone)]
pub struct Programs(Arc<Inner>);

struct Inner {
    terminator: Terminator,
    /// Set once, when the isolate takes on its extension.
    known: OnceLock<Known>,
}

/// What the grant says.
struct Known {
    denied: Vec<FileIdentity>,
    limits_programs: bool,
    limits_network: bool,
    /// The network is the extension's own, as far as it has one, and not its programs'.
    keeps_network: bool,
}

/// The device and number of a file, which all of its names have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileIdentity(u64, u64);

impl Programs {
    pub fn new(terminator: Terminator) -> Self {
        Self(Arc::new(Inner { terminator, known: OnceLock::new() }))
    }

    /// From now on this grant counts; `path` is where programs are looked for by name.
    pub fn guard(&self, grant: &Grant, path: Option<&str>) {
        let denied = tenon_sandbox::programs_named(&grant.run.deny, path);
        let known = Known {
            denied: denied.iter().filter_map(|program| identity(program)).collect(),
            limits_programs: *grant != Grant::default(),
            limits_network: grant.net != Access::all(),
            keeps_network: ![Access::all(), Access::none()].contains(&grant.net),
        };
        let _ = self.0.known.set(known);
    }

    /// For the state of an engine instance's ops.
    pub fn supervision(&self) -> Supervision {
        Supervision(self.0.clone())
    }
}

impl Supervisor for Inner {
    fn may_start_another(&self) -> Result<(), JsErrorBox> {
        let Some(limits) = self.terminator.limits() else { return Ok(()) };
        let most = limits.children;
        let is_room = || {
            let count = self.terminator.find_children(most).count();
            count.running + count.ended < most
        };
        if is_room() {
            return Ok(());
        }
        // What its children have left behind and has ended does not keep it from starting others.
        self.terminator.reap_adopted();
        if is_room() {
            return Ok(());
        }
        Err(JsErrorBox::range_error(format!(
            "an extension can have {most} child processes at a time (limit children); wait for one to end before you \
             start another"
        )))
    }

    fn must_fork(&self) -> bool {
        cfg!(target_os = "linux") && self.known.get().is_some_and(|known| known.keeps_network)
    }

    fn is_denied(&self, program: &Path) -> bool {
        let Some(known) = self.known.get() else { return false };
        !known.denied.is_empty() && identity(program).is_some_and(|it| known.denied.contains(&it))
    }

    #[cfg(target_os = "linux")]
    fn refused_program(&self, program: &Path) -> bool {
        use crate::permissions::Attempt;
        use crate::permissions::would_be_permitted;
        let is_limited = self.known.get().is_some_and(|known| known.limits_programs);
        is_limited && would_be_permitted(program, Attempt::Start)
    }

    #[cfg(target_os = "linux")]
    fn refused_socket(&self, address: &str, port: u16) -> bool {
        use crate::permissions::Attempt;
        use crate::permissions::would_be_permitted;
        /// The first port that needs no privilege.
        const UNPRIVILEGED: u16 = 1024;
        let is_limited = self.known.get().is_some_and(|known| known.limits_network);
        let is_open = if address.starts_with('/') {
            would_be_permitted(Path::new(address), Attempt::Write)
        } else {
            port == 0 || port >= UNPRIVILEGED
        };
        is_limited && is_open
    }

    #[cfg(not(target_os = "linux"))]
    fn refused_program(&self, _program: &Path) -> bool {
        false
    }

    #[cfg(not(target_os = "linux"))]
    fn refused_socket(&self, _address: &str, _port: u16) -> bool {
        false
    }
}

#[cfg(unix)]
fn identity(program: &Path) -> Option<FileIdentity> {
    use std::os::unix::fs::MetadataExt;
    let metadata = program.metadata().ok()?;
    Some(FileIdentity(metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(_program: &Path) -> Option<FileIdentity> {
    None
}
