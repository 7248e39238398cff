//! What is asked around the start of a program, and where the kernel has refused something.
//!
//! Deno checks the name of a program. Here the file is checked that the name leads to, and how many programs run already.
//! Where Deno's checks permit something and the kernel does not, the error is the one of a denied permission.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use deno_core::OpState;
use deno_core::op2;
use deno_error::JsErrorBox;

/// What is known where an extension's limits and permissions are.
pub trait Supervisor: Send + Sync {
    /// Whether one more program may be started.
    fn may_start_another(&self) -> Result<(), JsErrorBox>;

    /// Whether programs have to be started by a fork, in which the sandbox takes the network from them.
    fn must_fork(&self) -> bool;

    /// Whether a program's file is one that is denied.
    fn is_denied(&self, program: &Path) -> bool;

    /// Whether it was the sandbox that refused to start a program.
    fn refused_program(&self, program: &Path) -> bool;

    /// Whether it was the sandbox that refused a socket: a path, or a host with its port.
    fn refused_socket(&self, address: &str, port: u16) -> bool;
}

/// The supervisor of an extension, in the state of its ops.
#[derive(Clone)]
pub struct Supervision(pub Arc<dyn Supervisor>);

/// Asked before a program is started. Returns the user to start it as, which is the one of this process: for somebody who is named
/// the standard library forks, and for others it may not. Negative if it may start it as it likes.
#[op2(fast)]
pub fn op_tenon_start(
    state: &mut OpState,
    #[string] command: &str,
    #[string] folder: &str,
    #[string] path: &str,
) -> Result<f64, JsErrorBox> {
    if let Some(Supervision(supervisor)) = state.try_borrow::<Supervision>() {
        supervisor.may_start_another()?;
    }
    permit(state, "run", command, |supervisor| {
        find(command, folder, path).is_some_and(|program| supervisor.is_denied(&program))
    })?;
    let supervision = state.try_borrow::<Supervision>();
    let must_fork = supervision.is_some_and(|Supervision(supervisor)| supervisor.must_fork());
    Ok(if must_fork { own_user() } else { NOBODY_IN_PARTICULAR })
}

/// No user's number.
const NOBODY_IN_PARTICULAR: f64 = -1.0;

#[cfg(unix)]
fn own_user() -> f64 {
    // SAFETY: it has no arguments and cannot fail.
    f64::from(unsafe { libc::geteuid() })
}

#[cfg(not(unix))]
fn own_user() -> f64 {
    NOBODY_IN_PARTICULAR
}

/// Asked when the system did not let a program be started: throws if the sandbox was the reason.
#[op2(fast)]
pub fn op_tenon_not_started(
    state: &mut OpState,
    #[string] command: &str,
    #[string] folder: &str,
    #[string] path: &str,
) -> Result<(), JsErrorBox> {
    permit(state, "run", command, |supervisor| {
        find(command, folder, path).is_some_and(|program| supervisor.refused_program(&program))
    })
}

/// Asked when the system refused a socket: throws if the sandbox was the reason.
#[op2(fast)]
pub fn op_tenon_not_connected(
    state: &mut OpState,
    #[string] address: &str,
    #[smi] port: u32,
) -> Result<(), JsErrorBox> {
    let port = u16::try_from(port).unwrap_or_default();
    let target = if port == 0 { address.to_owned() } else { format!("{address}:{port}") };
    permit(state, "net", &target, |supervisor| supervisor.refused_socket(address, port))
}

/// Throws if the supervisor refuses. The error is as Deno's own, so that it is explained in the same words.
fn permit(
    state: &OpState,
    permission: &str,
    target: &str,
    is_refused: impl FnOnce(&dyn Supervisor) -> bool,
) -> Result<(), JsErrorBox> {
    match state.try_borrow::<Supervision>() {
        Some(Supervision(supervisor)) if is_refused(&**supervisor) => Err(JsErrorBox::new(
            "NotCapable",
            format!("Requires {permission} access to \"{target}\""),
        )),
        _ => Ok(()),
    }
}

/// The file that a command is, looked for as the system does.
fn find(command: &str, folder: &str, path: &str) -> Option<PathBuf> {
    let folder = std::path::absolute(folder).or_else(|_| std::env::current_dir()).ok()?;
    if command.contains('/') {
        return Some(folder.join(command));
    }
    let found =
        |place: PathBuf| Some(folder.join(place).join(command)).filter(|file| file.is_file());
    std::env::split_paths(path).find_map(found)
}
