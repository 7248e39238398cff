//! Errors of the engine as plain data: message, place, source line, stack.

use std::path::Path;

use deno_core::error::CoreError;
use deno_core::error::CoreErrorKind;
use deno_core::error::JsError;
use deno_core::error::NoAnsiColors;
use deno_core::error::format_frame;
use deno_core::url::Url;

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

/// Describes what a handler threw, from the text of its stack.
pub fn locate(mut error: ScriptError) -> ScriptError {
    let Some(stack) = error.stack.take() else { return error };
    let frames: Vec<&str> = stack
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("at "))
        .filter(|line| !line.contains("ext:") && !line.contains("(node:"))
        .collect();
    if let Some((file, line, column)) = frames.iter().find_map(|frame| parse_frame(frame)) {
        error.source_line = source_line(&file, line);
        error.file = Some(file);
        error.line = Some(line);
        error.column = Some(column);
    }
    if !frames.is_empty() {
        error.stack = Some(frames.join("\n"));
    }
    error
}

/// `at name (file:///x.mjs:1:2)` or `at file:///x.mjs:1:2`.
fn parse_frame(frame: &str) -> Option<(String, u32, u32)> {
    let start = frame.find("file://")?;
    let place = frame[start..].trim_end_matches(')');
    let (rest, column) = place.rsplit_once(':')?;
    let (url, line) = rest.rsplit_once(':')?;
    Some((file_path(url)?, line.parse().ok()?, column.parse().ok()?))
}

fn file_path(name: &str) -> Option<String> {
    let url = Url::parse(name).ok().filter(|url| url.scheme() == "file")?;
    Some(url.to_file_path().ok()?.to_string_lossy().into_owned())
}

/// The text of one line of a file.
pub fn source_line(file: &str, line: u32) -> Option<String> {
    let text = std::fs::read(Path::new(file)).ok()?;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().nth((line as usize).checked_sub(1)?)?;
    (!line.trim().is_empty()).then(|| line.trim_end().chars().take(200).collect())
}

fn to_u32(number: Option<i64>) -> Option<u32> {
    number.and_then(|number| u32::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handlers_stack_gives_its_first_own_frame() {
        let error = locate(ScriptError {
            message: "Error: boom".into(),
            stack: Some(
                "Error: boom\n    at readFileSync (node:fs:1:2)\n    at run (file:///no/x.mjs:7:9)\n    at ext:tenon/tools.js:1:1"
                    .into(),
            ),
            ..ScriptError::default()
        });
        assert_eq!(error.file.as_deref(), Some("/no/x.mjs"));
        assert_eq!((error.line, error.column), (Some(7), Some(9)));
        assert_eq!(error.stack.as_deref(), Some("at run (file:///no/x.mjs:7:9)"));
    }
}
