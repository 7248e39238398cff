//! Text without what differs from run to run, and the difference between two texts.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Captures;
use regex::Regex;
use serde::Serialize;
use serde_json::Value;

/// Compact JSON with the keys as they came.
pub fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| error.to_string())
}

/// Whether a name fits a glob, in which `*` stands for anything.
pub fn matches(glob: &str, name: &str) -> bool {
    let mut parts = glob.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(position) = rest.find(part) else { return false };
        rest = &rest[position + part.len()..];
    }
    rest.ends_with(last)
}

macro_rules! pattern {
    ($name:ident = $pattern:literal) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($pattern).expect("a pattern"));
    };
}

pattern!(FRAME = r"^\s+at .*");
pattern!(UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}");
pattern!(ISO_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)");
pattern!(MILLISECONDS = r"\b1\d{12}\b");
pattern!(PORT = r"\b(127\.0\.0\.1|localhost):\d+");
pattern!(DURATION = r#"(\\?"\w*[dD]uration\w*\\?"):\d+(\.\d+)?"#);
pattern!(DATA_FOLDER = r"/extension-data/project/[0-9a-f]{16}\b");
pattern!(CONTENT_HASH = r#""hash":"[0-9a-f]{64}""#);
// Engines count columns differently.
pattern!(POSITION = r#"(?:file://)?(\[(?:CWD|HOME|ROOT)\][^\s:"'()]*):(\d+):\d+"#);
pattern!(PLACE_IN_FRAME = r"(?:file://)?(/[^\s:()]+):(\d+)(?::\d+)?\)?$");

/// A text without the stack in it, except for the places in files of extensions.
pub fn without_stack(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        if !FRAME.is_match(line) {
            lines.push(line.to_owned());
        } else if line.contains("/extensions/")
            && let Some(place) = PLACE_IN_FRAME.captures(line)
        {
            lines.push(format!("    at {}:{}", &place[1], &place[2]));
        }
    }
    lines.join("\n")
}

/// The same for every text in a value.
pub fn without_stacks(value: Value) -> Value {
    match value {
        Value::String(text) if text.contains('\n') => Value::String(without_stack(&text)),
        Value::Array(items) => Value::Array(items.into_iter().map(without_stacks).collect()),
        Value::Object(fields) => {
            fields.into_iter().map(|(key, value)| (key, without_stacks(value))).collect()
        }
        other => other,
    }
}

/// A transcript with names for what differs from run to run: first the given ones, in their order, then
/// identifiers, times and ports.
pub fn normalise(text: &str, names: &[(String, &str)]) -> String {
    let mut text = text.to_owned();
    for (what, name) in names {
        text = text.replace(what, name);
    }
    let text = POSITION.replace_all(&text, "$1:$2");
    let mut known = HashMap::new();
    let text = UUID.replace_all(&text, |found: &Captures<'_>| {
        let next = known.len() + 1;
        format!("[uuid-{}]", known.entry(found[0].to_owned()).or_insert(next))
    });
    let text = ISO_TIME.replace_all(&text, "[TIME]");
    let text = DURATION.replace_all(&text, "$1:[MS]");
    let text = MILLISECONDS.replace_all(&text, "[MS]");
    let text = PORT.replace_all(&text, "$1:[PORT]");
    let text = DATA_FOLDER.replace_all(&text, "/extension-data/project/[HASH]");
    let text = CONTENT_HASH.replace_all(&text, "\"hash\":\"[HASH]\"");
    text.into_owned()
}

/// What differs between two texts, line by line; `None` if nothing does.
pub fn difference(expected: &str, actual: &str) -> Option<String> {
    let difference = similar::TextDiff::from_lines(expected, actual);
    (expected != actual)
        .then(|| difference.unified_diff().header("expected", "this run").to_string())
}
