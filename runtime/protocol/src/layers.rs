//! Which of the kernel's mechanisms confine an extension.

use serde::Deserialize;
use serde::Serialize;

/// Which layers a system has, or which of them are in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layers {
    /// The version of Landlock's interface; `None`: no Landlock.
    pub landlock_abi: Option<u8>,
    /// A mount namespace of its own. As a result of confining: false as well where none was needed.
    pub mount_namespace: bool,
    /// A filter on system calls.
    pub seccomp: bool,
    /// Programs gain no privileges.
    pub no_new_privs: bool,
    /// The grant restricts nothing, so nothing was applied.
    pub unrestricted: bool,
    /// What was left out, and why, one sentence each.
    pub notes: Vec<String>,
}

impl Layers {
    /// Every layer there is, in any version.
    pub fn every() -> Self {
        Self {
            landlock_abi: Some(u8::MAX),
            mount_namespace: true,
            seccomp: true,
            no_new_privs: true,
            unrestricted: false,
            notes: Vec::new(),
        }
    }
}
