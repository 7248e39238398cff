//! Looking into an isolate that runs, from its own thread: where it stands, and what memory it has.

use std::ffi::c_void;
use std::fmt::Write;
use std::rc::Rc;

use deno_core::ModuleLoader;
use deno_core::SourceMapApplication;
use deno_core::SourceMapper;
use deno_core::v8;

use crate::limits::STACK_FRAMES;

/// What is to be done on the isolate's thread.
type Job = Box<dyn FnOnce(&mut v8::Isolate) + Send>;

/// Does something on the thread of an isolate, in the middle of the JavaScript it runs, or when it next
/// runs some. It must not run JavaScript itself. An isolate that never does leaks the job.
pub fn request(handle: &v8::IsolateHandle, job: impl FnOnce(&mut v8::Isolate) + Send + 'static) {
    let job: Box<Job> = Box::new(Box::new(job));
    let data = Box::into_raw(job);
    if !handle.request_interrupt(run, data.cast()) {
        // SAFETY: the isolate is gone and has not taken the pointer, which came out of a box above.
        drop(unsafe { Box::from_raw(data) });
    }
}

unsafe extern "C" fn run(isolate: v8::UnsafeRawIsolatePtr, data: *mut c_void) {
    // SAFETY: `request` made the pointer of a box, and the engine calls back once for each request.
    let job = unsafe { Box::from_raw(data.cast::<Job>()) };
    if isolate.is_null() {
        return;
    }
    // SAFETY: the engine gives us the isolate that is running on this thread. Ours is another name for
    // it that is forgotten before we return.
    let mut isolate = unsafe { v8::Isolate::from_raw_isolate_ptr(isolate) };
    job(&mut isolate);
}

/// Memory of an isolate, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Memory {
    pub heap: usize,
    /// What its array buffers and Wasm memories have outside the heap.
    pub external: usize,
}

/// Measures the memory of an isolate. What is above the limit may be garbage that was not collected yet; so
/// it is, before it counts. Must be called on the isolate's thread.
pub fn memory(isolate: &mut v8::Isolate, external_limit: usize) -> Memory {
    let memory = measure(isolate);
    if memory.external <= external_limit {
        return memory;
    }
    isolate.low_memory_notification();
    measure(isolate)
}

fn measure(isolate: &mut v8::Isolate) -> Memory {
    let heap = isolate.get_heap_statistics().used_heap_size();
    // The statistics have array buffers only. The sum that makes the engine collect garbage, which is told
    // to whoever changes it, has Wasm memories, too.
    let external = isolate.adjust_amount_of_external_allocated_memory(0);
    Memory { heap, external: usize::try_from(external).unwrap_or_default() }
}

/// More frames than are kept, because those of the platform are left out.
const CAPTURED_FRAMES: usize = 5 * STACK_FRAMES;

/// The stack of the JavaScript that is running, one frame a line, without the platform's own. To be called
/// from a job.
pub fn stack(isolate: &mut v8::Isolate) -> String {
    v8::scope!(let scope, isolate);
    let scope: *mut v8::PinScope<'_, '_, ()> = scope;
    // SAFETY: a scope with a context differs from one without by a phantom type only; the context is
    // looked up when it is asked for. JavaScript is running, so there is one.
    let scope: &mut v8::PinScope<'_, '_> = unsafe { &mut *scope.cast() };
    let Some(trace) = v8::StackTrace::current_stack_trace(scope, CAPTURED_FRAMES) else {
        return String::new();
    };
    let frames = (0..trace.get_frame_count())
        .filter_map(|index| describe_frame(scope, trace.get_frame(scope, index)?))
        .take(STACK_FRAMES);
    frames.collect::<Vec<_>>().join("\n")
}

/// `at name (file:///x.mjs:1:2)`, or nothing for a frame of the platform.
fn describe_frame(
    scope: &mut v8::PinScope<'_, '_>,
    frame: v8::Local<'_, v8::StackFrame>,
) -> Option<String> {
    let text = |text: v8::Local<'_, v8::String>| text.to_rust_string_lossy(scope);
    let file = frame.get_script_name_or_source_url(scope).map(text).unwrap_or_default();
    if file.starts_with("ext:") || file.starts_with("node:") || file.starts_with("tenon:") {
        return None;
    }
    // QuickJS does not know where a function stands that has called nothing yet, nor any function's name.
    if cfg!(feature = "quickjs") && frame.get_line_number() == 0 {
        return None;
    }
    let file = match file.as_str() {
        "" => "<anonymous>",
        // The text of a worker has the name of the place in deno_runtime that runs it.
        name if name.starts_with("[ext:") => "[worker eval]",
        name => name,
    };
    let place = format!("{file}:{}:{}", frame.get_line_number(), frame.get_column());
    let name = frame.get_function_name(scope).map(text).unwrap_or_default();
    Some(match (name.as_str(), frame.is_constructor()) {
        ("", false) => format!("at {place}"),
        ("", true) => format!("at new <anonymous> ({place})"),
        (name, false) => format!("at {name} ({place})"),
        (name, true) => format!("at new {name} ({place})"),
    })
}

/// Leads the frames of a stack back to where they were written, for files that were transpiled.
pub fn map_to_sources(stack: &str, loader: Rc<dyn ModuleLoader>) -> String {
    let mut mapper = SourceMapper::new(loader);
    let mut mapped = String::with_capacity(stack.len());
    for frame in stack.lines() {
        if !mapped.is_empty() {
            mapped.push('\n');
        }
        match map_frame(frame, &mut mapper) {
            Some(frame) => mapped.push_str(&frame),
            None => mapped.push_str(frame),
        }
    }
    mapped
}

/// The frame with the place it comes from, if that is another than it says.
fn map_frame(frame: &str, mapper: &mut SourceMapper) -> Option<String> {
    let start = frame.find("file://")?;
    let place = frame[start..].trim_end_matches(')');
    let rest = &frame[start + place.len()..];
    let (file, line, column) = split_place(place)?;
    let (file, line, column) = match mapper.apply_source_map(file, line, column) {
        SourceMapApplication::Unchanged => return None,
        SourceMapApplication::LineAndColumn { line_number, column_number } => {
            (file.to_owned(), line_number, column_number)
        }
        SourceMapApplication::LineAndColumnAndFileName {
            file_name,
            line_number,
            column_number,
        } => (file_name, line_number, column_number),
    };
    let mut mapped = frame[..start].to_owned();
    write!(mapped, "{file}:{line}:{column}{rest}").ok()?;
    Some(mapped)
}

/// The parts of `file:///x.mjs:1:2`; both numbers count from one.
fn split_place(place: &str) -> Option<(&str, u32, u32)> {
    let (rest, column) = place.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    let (line, column) = (line.parse().ok()?, column.parse().ok()?);
    (line > 0 && column > 0).then_some((file, line, column))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_split_into_file_line_and_column() {
        assert_eq!(split_place("file:///x:1.mjs:2:3"), Some(("file:///x:1.mjs", 2, 3)));
        assert_eq!(split_place("file:///x.mjs:0:3"), None);
        assert_eq!(split_place("file:///x.mjs"), None);
    }
}
