//! The layers, one after the other.

use std::fs;
use std::path::Path;

use tenon_protocol::layers::COMPLETE_LANDLOCK;

use crate::Layers;
use crate::Mode;
use crate::Request;
use crate::capabilities;
use crate::error::SandboxError;
use crate::landlock_rules;
use crate::layers::Layer;
use crate::mounts;
use crate::plan::Network;
use crate::plan::Plan;
use crate::probe;
use crate::programs_network;
use crate::system_calls;
use crate::system_calls::Policy;

/// Applies all layers that the request needs, of those that may be used.
pub fn apply(request: &Request<'_>, usable: &Layers) -> Result<Layers, SandboxError> {
    let threads = probe::threads();
    if threads != 1 {
        return Err(SandboxError::NotAlone { threads });
    }
    let mut plan = Plan::of(request)?;
    let mut applied = Applied {
        mode: request.mode,
        layers: Layers { notes: std::mem::take(&mut plan.notes), ..Layers::default() },
    };
    // First of all: the other layers need it, and root could undo its loss of capabilities without it.
    let done = usable_or(usable.no_new_privs, Layer::NoNewPrivileges).and_then(|()| no_new_privs());
    applied.layers.no_new_privs = applied.settle(done)?.is_some();
    let done = forbid_core_dumps();
    applied.settle(done)?;

    if plan.needs_mounts() {
        let done = usable_or(usable.mount_namespace, Layer::MountNamespace)
            .and_then(|()| no_open_folders(request.mode, &mut applied.layers.notes))
            .and_then(|()| mounts::apply(&plan));
        let loose = applied.settle(done)?;
        applied.layers.mount_namespace = loose.is_some();
        for (link, error) in loose.into_iter().flatten() {
            let action = format!("hold {} in its place", link.display());
            let held = Err(SandboxError::failed(Layer::MountNamespace, action, error));
            applied.settle::<()>(held)?;
        }
    }
    let done = capabilities::drop_all()
        .map_err(|error| SandboxError::failed(Layer::NoNewPrivileges, "drop capabilities", error));
    applied.settle(done)?;

    let done = landlock_version(usable.landlock_abi, request.mode)
        .and_then(|version| landlock_rules::apply(&plan, version).map(|()| version));
    applied.layers.landlock_abi = applied.settle(done)?;

    // Last, because it refuses what the other layers are made with.
    let policy = Policy { run: plan.run, write: plan.writes, network: plan.network };
    let done =
        usable_or(usable.seccomp, Layer::SystemCalls).and_then(|()| system_calls::apply(&policy));
    applied.layers.seccomp = applied.settle(done)?.is_some();
    if applied.layers.seccomp && plan.run && plan.network == Network::SomeHosts {
        let done = programs_network::forbid();
        applied.settle(done)?;
    }
    Ok(applied.layers)
}

/// What is in force so far.
struct Applied {
    mode: Mode,
    layers: Layers,
}

impl Applied {
    /// Returns an error as it is if all layers are required, and otherwise notes it.
    fn settle<T>(&mut self, done: Result<T, SandboxError>) -> Result<Option<T>, SandboxError> {
        match (done, self.mode) {
            (Ok(value), _) => Ok(Some(value)),
            (Err(error), Mode::Required) => Err(error),
            (Err(error), Mode::BestEffort) => {
                self.layers.notes.push(format!("left out: {error}"));
                Ok(None)
            }
        }
    }
}

fn usable_or(usable: bool, layer: Layer) -> Result<(), SandboxError> {
    if usable {
        return Ok(());
    }
    Err(SandboxError::Missing { layer, reason: "this system has none".to_owned() })
}

/// The version of Landlock to use: with any, most is enforced; only with a complete one, all.
fn landlock_version(usable: Option<u8>, mode: Mode) -> Result<u8, SandboxError> {
    let layer = Layer::Landlock;
    let Some((here, usable)) = landlock_rules::abi().zip(usable) else {
        return Err(SandboxError::Missing { layer, reason: "this system has none".to_owned() });
    };
    let version = here.min(usable);
    if mode == Mode::Required && version < COMPLETE_LANDLOCK {
        let needed = COMPLETE_LANDLOCK;
        let reason = format!("version {version} of it is here, version {needed} is needed");
        return Err(SandboxError::Missing { layer, reason });
    }
    Ok(version)
}

fn no_new_privs() -> Result<(), SandboxError> {
    // SAFETY: takes numbers only.
    match unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(SandboxError::last(Layer::NoNewPrivileges, "set it")),
    }
}

/// A dump would contain what the session sent, in a place that the grant does not name.
fn forbid_core_dumps() -> Result<(), SandboxError> {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel reads one pair of numbers.
    match unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) } {
        0 => Ok(()),
        _ => Err(SandboxError::last(Layer::NoNewPrivileges, "forbid core dumps")),
    }
}

/// A folder that is open already leads to what the mounts are to cover.
fn no_open_folders(mode: Mode, notes: &mut Vec<String>) -> Result<(), SandboxError> {
    let here = fs::read_dir("/proc/self/fd")
        .map_err(|error| SandboxError::failed(Layer::MountNamespace, "list open files", error))?;
    for entry in here.filter_map(Result::ok) {
        // Not the folder that is being listed here, nor others of processes.
        let Ok(target) = fs::read_link(entry.path()) else { continue };
        if target.starts_with("/proc") || !target.has_root() || !is_folder(&entry.path()) {
            continue;
        }
        let reason = format!("{} is open in this process", target.display());
        if mode == Mode::Required {
            return Err(SandboxError::Missing { layer: Layer::MountNamespace, reason });
        }
        notes.push(format!("what is denied below can be reached: {reason}"));
    }
    Ok(())
}

fn is_folder(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_dir())
}
