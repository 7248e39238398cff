//! The heap's limit.

use deno_core::JsRuntime;

use crate::limits::HEAP_UNWIND_BYTES;
use crate::message::EndReason;
use crate::thread::Terminator;

/// Terminates the isolate when its heap is full, instead of the process.
pub fn limit(runtime: &mut JsRuntime, bytes: usize, terminator: &Terminator) {
    let terminator = terminator.clone();
    runtime.add_near_heap_limit_callback(move |current, _initial| {
        let megabytes = bytes / (1024 * 1024);
        let limit = format!("its heap reached the limit of {megabytes} MB");
        terminator.terminate(EndReason::Terminated { limit });
        current + HEAP_UNWIND_BYTES
    });
}
