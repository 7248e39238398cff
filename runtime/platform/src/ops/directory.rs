//! `process.chdir` for an extension that has a working directory of its own.

use std::borrow::Cow;
use std::path::Path;

use deno_core::OpState;
use deno_core::op2;
use deno_runtime::deno_permissions::OpenAccessKind;
use deno_runtime::deno_permissions::PermissionCheckError;
use deno_runtime::deno_permissions::PermissionsContainer;

/// In the `OpState` of an isolate whose thread has a working directory of its own.
#[derive(Debug, Clone, Copy)]
pub struct OwnWorkingDirectory;

/// Why the directory was not changed.
#[derive(Debug, thiserror::Error, deno_error::JsError)]
pub enum ChdirError {
    /// The directory may not be read.
    #[class(inherit)]
    #[error(transparent)]
    Permission(#[from] PermissionCheckError),
    /// The directory cannot be entered.
    #[class(inherit)]
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The directory is shared with the host and other extensions.
    #[class(generic)]
    #[error(
        "process.chdir is not available: on this system all extensions share one working directory"
    )]
    Shared,
}

/// Changes the working directory of this extension alone.
#[op2(fast, stack_trace)]
pub fn op_tenon_chdir(state: &mut OpState, #[string] directory: &str) -> Result<(), ChdirError> {
    let directory = state.borrow_mut::<PermissionsContainer>().check_open(
        Cow::Borrowed(Path::new(directory)),
        OpenAccessKind::ReadNoFollow,
        Some("process.chdir()"),
    )?;
    if !state.has::<OwnWorkingDirectory>() {
        return Err(ChdirError::Shared);
    }
    Ok(std::env::set_current_dir(&*directory)?)
}
