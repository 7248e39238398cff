//! `process.exit` and `process.abort` end the extension that called them, not the process.

use deno_core::OpState;
use deno_core::op2;
use deno_core::v8;
use deno_runtime::deno_os::ExitCode;

/// Set in the isolate's `OpState` when the extension asked to end.
#[derive(Debug, Clone, Copy)]
pub struct ExitRequested {
    /// The exit code it gave.
    pub code: i32,
}

/// What a process killed by `SIGABRT` reports.
const ABORT_EXIT_CODE: i32 = 134;

/// Ends the isolate with the exit code that was set before.
#[op2(nofast, reentrant)]
pub fn op_tenon_exit(state: &mut OpState, scope: &mut v8::PinScope<'_, '_>) {
    let code = state.try_borrow::<ExitCode>().map(ExitCode::get).unwrap_or_default();
    end(state, scope, code);
}

/// Ends the isolate as `abort` would end a process.
#[op2(nofast, reentrant)]
pub fn op_tenon_abort(state: &mut OpState, scope: &mut v8::PinScope<'_, '_>) {
    end(state, scope, ABORT_EXIT_CODE);
}

pub(crate) fn end(state: &mut OpState, scope: &mut v8::PinScope<'_, '_>, code: i32) {
    state.put(ExitRequested { code });
    scope.terminate_execution();
    // Termination takes effect where the engine next looks for it. Looking now, in a loop that
    // nothing else can end, means that no statement after `process.exit()` ever runs.
    if let Some(source) = v8::String::new(scope, "for (;;) {}")
        && let Some(script) = v8::Script::compile(scope, source, None)
    {
        let _ = script.run(scope);
    }
}
