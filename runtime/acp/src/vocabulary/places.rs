//! The files and folders that a call is about. Which of its arguments a tool uses is not known, and a model may
//! give it more than it uses: so all of them count.

use std::collections::HashSet;
use std::path::Path;

use serde_json::Value;
use tenon_host::session::AgentTool;

use super::is_filled;

/// What agents call the argument that is a file.
const FILE_NAMES: [&str; 8] = [
    "path",
    "file_path",
    "filePath",
    "filepath",
    "absolute_path",
    "fileName",
    "notebook_path",
    "paths",
];

/// What they call the folder in which they search, beside these.
const FOLDER_NAMES: [&str; 3] = ["dir_path", "directory", "target_directory"];

/// What they call that which they search.
pub(super) const PATTERN_NAMES: [&str; 4] = ["pattern", "query", "regex", "glob"];

/// The files of a call: those that it is given and those that the agent shows, each once.
pub(super) fn files_of(call: &Value) -> Vec<Value> {
    let shown = shown(call);
    let mut files = files_in(&call["rawInput"]);
    files.extend(shown.iter().cloned());
    files.retain(|file| !is_part(file, &shown));
    distinct(files)
}

/// The files that a tool is given.
pub(super) fn files_in(raw: &Value) -> Vec<Value> {
    given(raw, &FILE_NAMES)
}

/// The folders that it is given as such.
pub(super) fn folders_in(raw: &Value) -> Vec<Value> {
    given(raw, &FOLDER_NAMES)
}

/// Whether the files that a tool is given are all in `path`: for searching, that is the place.
pub(super) fn has_only_path(raw: &Value) -> bool {
    let path = given(raw, &["path"]);
    !path.is_empty() && path == files_in(raw)
}

/// Each of the values once.
pub(super) fn distinct(mut values: Vec<Value>) -> Vec<Value> {
    let mut seen = HashSet::new();
    values.retain(|value| seen.insert(value.to_string()));
    values
}

/// What is shown as changed.
pub(super) fn diffs(call: &Value) -> Vec<&Value> {
    list(call, "content").iter().filter(|it| it["type"] == "diff").collect()
}

/// Where a tool of the agent reads or writes; empty if that is not known.
pub fn place(tool: &AgentTool) -> String {
    let path = &tool.args["path"];
    if !["grep", "glob"].contains(&&*tool.name) {
        return path.as_str().unwrap_or_default().to_owned();
    }
    let raw = tool.native.as_ref().map(|(_, raw)| raw).filter(|raw| is_filled(raw));
    let folder = match (path, raw) {
        (Value::String(folder), _) if !folder.is_empty() => Some(folder.as_str()),
        // What is told without a place is searched here. What is not told could be anywhere.
        (Value::Null, Some(_)) => None,
        _ => return String::new(),
    };
    let patterns = match (&*tool.name, raw) {
        ("glob", Some(raw)) => given(raw, &PATTERN_NAMES),
        _ => Vec::new(),
    };
    match &*patterns {
        [] => folder.unwrap_or(".").to_owned(),
        [Value::String(pattern)] if pattern.starts_with('~') => pattern.clone(),
        [Value::String(pattern)] if says_where(pattern) => {
            let place = Path::new(folder.unwrap_or_default()).join(pattern);
            place.to_string_lossy().into_owned()
        }
        _ => String::new(),
    }
}

/// Whether a pattern leads where its words do; `{/etc,src}/*` and `[.][.]/*` do not.
fn says_where(pattern: &str) -> bool {
    pattern.find(['{', '(', '[', '\\']).is_none_or(|at| !pattern[at..].contains('/'))
}

/// The values under these names; those of lists one by one.
fn given(raw: &Value, names: &[&str]) -> Vec<Value> {
    let values = names.iter().filter_map(|name| raw.get(name)).flat_map(|value| match value {
        Value::Array(values) => values.as_slice(),
        value => std::slice::from_ref(value),
    });
    values.filter(|value| !value.is_null()).cloned().collect()
}

/// The files that the agent shows, in places that no model writes to.
fn shown(call: &Value) -> Vec<Value> {
    let paths = diffs(call).into_iter().chain(list(call, "locations")).map(|it| &it["path"]);
    paths.filter(|path| path.as_str().is_some_and(|path| !path.is_empty())).cloned().collect()
}

fn list<'a>(call: &'a Value, name: &str) -> &'a [Value] {
    call[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Whether the agent shows the same in full; also for several in one, `a.rs, b.rs`. What a model adds in full
/// makes nothing a part of it.
fn is_part(file: &Value, shown: &[Value]) -> bool {
    let Some(file) = file.as_str() else { return false };
    let in_full = |part: &str| {
        let length = Path::new(part).components().count();
        shown.iter().filter_map(Value::as_str).map(Path::new).any(|full| {
            full.is_absolute() && full.ends_with(part) && full.components().count() > length
        })
    };
    in_full(file) || file.split(", ").all(in_full)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_is_hidden_by_no_other() {
        let call = json!({
            "rawInput": { "path": "b", "file_path": "/x/b", "paths": ["c", null], "filePath": null },
            "content": [{ "type": "diff", "path": "/x/d" }, { "type": "diff", "path": "" }],
            "locations": [{ "path": "/x/d" }, { "path": "/x/e" }],
        });
        assert_eq!(files_of(&call), ["b", "/x/b", "c", "/x/d", "/x/e"]);
    }

    #[test]
    fn what_the_agent_shows_in_full_is_one_file() {
        let call = json!({
            "rawInput": { "filePath": "src/a.rs", "filepath": "a.rs, b.rs" },
            "locations": [{ "path": "/w/src/a.rs" }, { "path": "/w/b.rs" }, { "path": "/w/b.rs/" }],
        });
        assert_eq!(files_of(&call), ["/w/src/a.rs", "/w/b.rs", "/w/b.rs/"]);
    }

    fn search(name: &str, args: Value, raw: Value) -> String {
        let native = Some((name.to_owned(), raw));
        place(&AgentTool { name: name.to_owned(), args, native, ..AgentTool::default() })
    }

    #[test]
    fn a_search_is_where_its_folder_is() {
        let grep = |raw: Value| search("grep", raw.clone(), raw);
        assert_eq!(grep(json!({ "pattern": "/etc", "path": "src" })), "src");
        assert_eq!(grep(json!({ "pattern": "README.md" })), ".");
        assert_eq!(grep(json!({ "pattern": "x", "path": "" })), "");
        assert_eq!(grep(json!({ "pattern": "x", "path": 1 })), "");
        assert_eq!(search("grep", json!({ "pattern": "TODO in /etc" }), Value::Null), "");
        assert_eq!(search("glob", json!({ "pattern": "*.rs" }), json!({})), "");
    }

    #[test]
    fn a_pattern_for_files_leads_on_from_the_folder() {
        let glob = |raw: Value| search("glob", raw.clone(), raw);
        assert_eq!(glob(json!({ "pattern": "*.rs" })), "*.rs");
        assert_eq!(glob(json!({ "pattern": "**/*.{js,ts}", "path": "src" })), "src/**/*.{js,ts}");
        assert_eq!(glob(json!({ "pattern": "/etc/*", "path": "." })), "/etc/*");
        assert_eq!(glob(json!({ "pattern": "~/.ssh/*", "path": "." })), "~/.ssh/*");
        assert_eq!(glob(json!({ "path": "src" })), "src");
        for unclear in ["{/etc,src}/*", "[.][.]/*", "@(..|x)/*", "\\.\\./*"] {
            assert_eq!(glob(json!({ "pattern": unclear })), "", "{unclear}");
        }
        assert_eq!(glob(json!({ "pattern": "*.rs", "glob": "/etc/*" })), "");
        // The title of a list is no pattern.
        let list =
            search("glob", json!({ "path": "/etc", "pattern": "/w" }), json!({ "path": "/etc" }));
        assert_eq!(list, "/etc");
    }
}
