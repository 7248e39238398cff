//! Errors of the engine as plain data: message, place, source line, stack.

use deno_core::error::CoreError;
use deno_core::error::CoreErrorKind;
use deno_core::error::JsError;
use deno_core::error::NoAnsiColors;
use deno_core::error::format_frame;
use tenon_protocol::place::file_path;
use tenon_protocol::place::parse_frame;
use tenon_protocol::place::source_line;

use crate::message::ScriptError;

/// Describes any error that comes out of the engine.
pub fn from_core_error(error: &CoreError) -> ScriptError {
    match error.as_kind() {
        CoreErrorKind::Js(js) => from_js_error(js),
        other => with_place_in_message(ScriptError::message(other.to_string())),
    }
}

/// The module loader writes the place of an error as a last line of its message.
fn with_place_in_message(mut error: ScriptError) -> ScriptError {
    let Some(start) = error.message.find("\n    at ") else { return error };
    let place = error.message.split_off(start);
    if let Some((file, line, column)) = place.lines().find_map(parse_frame) {
        error.source_line = source_line(&file, line);
        error.file = Some(file);
        error.line = Some(line);
        error.column = Some(column);
    }
    error
}

/// Describes a JavaScript error. Its place is the first frame in a file, not in the engine's own code.
pub fn from_js_error(error: &JsError) -> ScriptError {
    let place = error.frames.iter().find_map(|frame| {
        let file = file_path(frame.file_name.as_deref()?)?;
        Some((file, to_u32(frame.line_number), to_u32(frame.column_number)))
    });
    let stack: Vec<String> = error
        .frames
        .iter()
        .filter(|frame| {
            let file = frame.file_name.as_deref().unwrap_or_default();
            !file.starts_with("ext:") && !file.starts_with("node:")
        })
        .map(|frame| format!("at {}", format_frame::<NoAnsiColors>(frame, None)))
        .collect();
    let mut described = ScriptError {
        message: message_of(error),
        stack: (!stack.is_empty()).then(|| stack.join("\n")),
        ..ScriptError::default()
    };
    if let Some((file, line, column)) = place {
        described.source_line = line.and_then(|line| source_line(&file, line));
        described.file = Some(file);
        described.line = line;
        described.column = column;
    }
    with_place_in_message(described)
}

fn message_of(error: &JsError) -> String {
    let text = error.exception_message.as_str();
    let text = text.strip_prefix("Uncaught ").unwrap_or(text);
    let text = text.strip_prefix("(in promise) ").unwrap_or(text);
    match &error.cause {
        Some(cause) => format!("{text}\nCaused by: {}", message_of(cause)),
        None => text.to_owned(),
    }
}

fn to_u32(number: Option<i64>) -> Option<u32> {
    number.and_then(|number| u32::try_from(number).ok())
}
