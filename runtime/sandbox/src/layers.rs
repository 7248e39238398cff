//! The kernel's mechanisms, and which of them are in force.

use std::fmt;

use serde::Serialize;

/// One mechanism of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// No program that is started gains privileges by its set-user-ID bit or file capabilities.
    NoNewPrivileges,
    /// A mount namespace in a user namespace: closes paths inside allowed folders.
    MountNamespace,
    /// Rules on files, TCP ports, signals and abstract sockets.
    Landlock,
    /// A filter on system calls.
    SystemCalls,
}

impl Layer {
    pub(crate) fn hint(self) -> &'static str {
        match self {
            Self::NoNewPrivileges => "Linux 3.5 or later is needed",
            Self::MountNamespace => {
                "allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, \
                 kernel.apparmor_restrict_unprivileged_userns; in a container, its seccomp profile), or deny \
                 nothing inside an allowed folder"
            }
            Self::Landlock => {
                "Linux 6.12 or later is needed, with landlock among the modules of the lsm= boot parameter"
            }
            Self::SystemCalls => "a kernel with CONFIG_SECCOMP_FILTER is needed",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoNewPrivileges => "no_new_privs",
            Self::MountNamespace => "mount namespace",
            Self::Landlock => "Landlock",
            Self::SystemCalls => "seccomp",
        })
    }
}
