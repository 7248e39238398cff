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
    /// The control group that the extension is in with all that it starts, if it has one; also where nothing is restricted.
    #[serde(default)]
    pub control_group: Option<ControlGroup>,
    /// What was left out, and why, one sentence each.
    pub notes: Vec<String>,
}

/// What a control group limits. Everything in it can be ended at once, whatever it limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlGroup {
    /// All memory of its processes together.
    pub memory: bool,
    /// How many processes and threads there are in it.
    pub tasks: bool,
}

impl std::fmt::Display for ControlGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match (self.memory, self.tasks) {
            (true, true) => "limits memory and processes, ends all of them",
            (true, false) => "limits memory, ends all processes",
            (false, true) => "limits processes, ends all of them",
            (false, false) => "limits nothing, ends all processes",
        })
    }
}

impl std::fmt::Display for Layers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.unrestricted {
            return f.write_str("none: the grant restricts nothing");
        }
        let landlock = self.landlock_abi.map(|version| format!("Landlock {version}"));
        let named = |present: bool, name: &str| present.then(|| name.to_owned());
        let all = [
            landlock,
            named(self.mount_namespace, "mount namespace"),
            named(self.seccomp, "seccomp"),
            named(self.no_new_privs, "no_new_privs"),
        ];
        let names: Vec<String> = all.into_iter().flatten().collect();
        if names.is_empty() { f.write_str("none") } else { f.write_str(&names.join(", ")) }
    }
}

/// The first version of Landlock that enforces all that a grant says: moves between folders came with 2, truncation with
/// 3, devices with 5, signals and abstract sockets with 6.
pub const COMPLETE_LANDLOCK: u8 = 6;

impl Layers {
    /// Whether a system has everything that Tenon uses.
    pub fn is_whole(&self) -> bool {
        let landlock = self.landlock_abi.is_some_and(|version| version >= COMPLETE_LANDLOCK);
        landlock && self.mount_namespace && self.seccomp && self.no_new_privs
    }

    /// Every layer there is, in any version.
    pub fn every() -> Self {
        Self {
            landlock_abi: Some(u8::MAX),
            mount_namespace: true,
            seccomp: true,
            no_new_privs: true,
            unrestricted: false,
            control_group: None,
            notes: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_shown_by_name() {
        assert_eq!(Layers::default().to_string(), "none");
        let some = Layers { landlock_abi: Some(4), seccomp: true, ..Layers::default() };
        assert_eq!(some.to_string(), "Landlock 4, seccomp");
        assert!(!some.is_whole() && Layers::every().is_whole());
    }
}
