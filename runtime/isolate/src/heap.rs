//! The heap's limit.

use deno_core::JsRuntime;

use crate::children;
use crate::limits;
use crate::limits::HEAP_UNWIND_BYTES;
use crate::memory::Allotment;
use crate::terminator::HEAP_LIMIT;
use crate::terminator::Terminator;

/// Terminates the isolate when its heap is full, instead of the process.
///
/// The engine calls back in the middle of a garbage collection, where nothing can be asked of it; so the
/// isolate is interrupted where it next runs JavaScript. Until then it has room. Native code that fills the
/// room too, without ever running JavaScript, makes V8 abort the process. QuickJS makes such code fail.
pub fn limit(runtime: &mut JsRuntime, bytes: usize, buffers: Allotment, terminator: &Terminator) {
    let terminator = terminator.clone();
    let mut has_room = false;
    runtime.add_near_heap_limit_callback(move |current, _initial| {
        if buffers.is_refused() {
            terminator.breach_buffers();
        } else {
            let allowed = format!("its heap reached the limit of {} MB", bytes / (1024 * 1024));
            terminator.breach_on(children::current_thread(), limits::breach(HEAP_LIMIT, allowed));
        }
        if std::mem::replace(&mut has_room, true) { current } else { current + HEAP_UNWIND_BYTES }
    });
}
