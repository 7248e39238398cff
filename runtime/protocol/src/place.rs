//! The place of an error, from the text of its stack.

use std::path::Path;

use url::Url;

use crate::message::ScriptError;

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
pub fn parse_frame(frame: &str) -> Option<(String, u32, u32)> {
    let start = frame.find("file://")?;
    let place = frame[start..].trim_end_matches(')');
    let (rest, column) = place.rsplit_once(':')?;
    let (url, line) = rest.rsplit_once(':')?;
    Some((file_path(url)?, line.parse().ok()?, column.parse().ok()?))
}

/// The path of a `file:` URL.
pub fn file_path(name: &str) -> Option<String> {
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
