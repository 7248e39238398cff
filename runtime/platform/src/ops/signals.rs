//! Signals as an extension sees them: those its host sends it.
//!
//! A handler for `SIGTERM` in one extension must neither see the process's own signals nor keep
//! Ctrl-C from ending the program, so nothing here touches the operating system's handlers.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use deno_core::AsyncRefCell;
use deno_core::OpState;
use deno_core::RcRef;
use deno_core::Resource;
use deno_core::ResourceId;
use deno_core::error::ResourceError;
use deno_core::op2;
use deno_core::v8;
use deno_runtime::deno_permissions::PermissionCheckError;
use deno_runtime::deno_permissions::PermissionsContainer;
use tokio::sync::watch;

use super::exit;

/// The handlers one extension has bound; lives in the isolate's `OpState`.
#[derive(Debug, Default)]
pub struct Signals {
    bound: HashMap<i32, Vec<watch::Sender<()>>>,
}

impl Signals {
    /// Wakes the handlers of a signal. False if there is none.
    pub fn deliver(&mut self, signal: i32) -> bool {
        let Some(handlers) = self.bound.get_mut(&signal) else {
            return false;
        };
        handlers.retain(|handler| handler.send(()).is_ok());
        !handlers.is_empty()
    }
}

struct BoundSignal(AsyncRefCell<watch::Receiver<()>>);

impl Resource for BoundSignal {
    fn name(&self) -> Cow<'_, str> {
        "signal".into()
    }
}

/// A name that is no signal's.
#[derive(Debug, thiserror::Error, deno_error::JsError)]
#[class(type)]
#[error(transparent)]
pub struct UnknownSignal(#[from] deno_signals::InvalidSignalStrError);

/// Binds a handler.
#[op2(fast)]
#[smi]
pub fn op_tenon_signal_bind(
    state: &mut OpState,
    #[string] signal: &str,
) -> Result<ResourceId, UnknownSignal> {
    let signal = deno_signals::signal_str_to_int(signal)?;
    let (sender, receiver) = watch::channel(());
    state.borrow_mut::<Signals>().bound.entry(signal).or_default().push(sender);
    Ok(state.resource_table.add(BoundSignal(AsyncRefCell::new(receiver))))
}

/// Waits for the next delivery; true when there will be none.
#[op2]
pub async fn op_tenon_signal_poll(
    state: Rc<RefCell<OpState>>,
    #[smi] rid: ResourceId,
) -> Result<bool, ResourceError> {
    let bound = state.borrow().resource_table.get::<BoundSignal>(rid)?;
    let mut receiver = RcRef::map(&bound, |bound| &bound.0).borrow_mut().await;
    Ok(receiver.changed().await.is_err())
}

/// Removes a handler.
#[op2(fast)]
pub fn op_tenon_signal_unbind(
    state: &mut OpState,
    #[smi] rid: ResourceId,
) -> Result<(), ResourceError> {
    state.resource_table.take::<BoundSignal>(rid)?;
    Ok(())
}

/// Whether the host would get a signal sent to `pid`: it is the host or one of its threads, the host's
/// group, or everyone.
fn reaches_host(pid: i32, own: i32) -> bool {
    // SAFETY: getpgrp has no arguments and cannot fail.
    let group = unsafe { libc::getpgrp() };
    pid == own
        || pid == 0
        || pid == -1
        || pid == -group
        || (pid > 0 && std::path::Path::new("/proc/self/task").join(pid.to_string()).exists())
}

/// `process.kill`. Aimed at the own process it reaches the extension alone: its handlers, or, as a
/// process would without one, its end.
#[op2(nofast, reentrant, stack_trace)]
#[smi]
pub fn op_tenon_kill(
    state: &mut OpState,
    scope: &mut v8::PinScope<'_, '_>,
    #[smi] pid: i32,
    #[smi] signal: i32,
) -> Result<i32, PermissionCheckError> {
    let own = std::process::id().cast_signed();
    if reaches_host(pid, own) {
        if signal != 0 && !state.borrow_mut::<Signals>().deliver(signal) {
            exit::end(state, scope, 128 + signal);
        }
        return Ok(0);
    }
    if signal != 0 {
        state.borrow_mut::<PermissionsContainer>().check_run_all("process.kill")?;
    }
    // SAFETY: kill takes two integers and touches no memory of ours.
    let result = unsafe { libc::kill(pid, signal) };
    if result == 0 {
        Ok(0)
    } else {
        Ok(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }
}
