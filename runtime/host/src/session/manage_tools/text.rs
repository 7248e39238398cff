//! What an agent reads about extensions as they are. Nothing here asks or changes anything.

use std::fmt::Display;
use std::fmt::Write;

use tenon_protocol::message::LogLevel;
use tenon_protocol::message::ScriptError;

use crate::discovery::Places;
use crate::extension::ExtensionInfo;
use crate::extension::LoadError;
use crate::extension::Status;
use crate::logs::LogLine;

/// The order in which extensions are counted.
const STATUSES: [Status; 7] = [
    Status::Running,
    Status::Starting,
    Status::Failed,
    Status::Disabled,
    Status::Untrusted,
    Status::Shadowed,
    Status::Draining,
];

/// Text that grows line by line.
#[derive(Default)]
pub(super) struct Lines(String);

impl Lines {
    pub fn add(&mut self, line: impl Display) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{line}");
    }

    /// A heading and what is below it, if there is something.
    pub fn section(&mut self, heading: &str, items: impl IntoIterator<Item = String>) {
        let mut items = items.into_iter().peekable();
        if items.peek().is_some() {
            self.add(format_args!("\n{heading}"));
            items.for_each(|item| self.add(format_args!("- {item}")));
        }
    }

    pub fn done(mut self) -> String {
        self.0.truncate(self.0.trim_end().len());
        self.0
    }
}

/// All extensions.
pub fn list(extensions: &[ExtensionInfo], places: &Places) -> String {
    let mut lines = Lines::default();
    lines.add(heading(extensions, places));
    for info in extensions {
        lines.add("");
        lines.add(format_args!("{} — {}", info.name, info.status));
        lines.add(format_args!("  id: {}", info.id));
        lines.add(format_args!("  path: {}", info.path.display()));
        if !info.tools.is_empty() {
            lines.add(format_args!("  tools: {}", tool_names(info)));
        }
        if let Some(error) = &info.error {
            lines.add(format_args!("  error: {}", brief(error)));
        }
    }
    lines.done()
}

/// How many there are, and how they are; or where was looked.
pub(super) fn heading(extensions: &[ExtensionInfo], places: &Places) -> String {
    if extensions.is_empty() {
        let roots = places.roots.iter().map(|(_, root)| format!("\n- {}", root.display()));
        return format!("There are no extensions. Looked in:{}", roots.collect::<String>());
    }
    let counted = STATUSES.iter().filter_map(|status| {
        let count = extensions.iter().filter(|info| info.status == *status).count();
        (count > 0).then(|| format!("{count} {status}"))
    });
    format!("Extensions: {} ({})", extensions.len(), counted.collect::<Vec<_>>().join(", "))
}

pub(super) fn tool_names(info: &ExtensionInfo) -> String {
    info.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// An error in one line, with its place.
pub(super) fn brief(error: &LoadError) -> String {
    let message = error.what.message.lines().next().unwrap_or_default();
    let place = place(&error.what).map(|place| format!(" at {place}")).unwrap_or_default();
    let hint = error.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{message}{place}{hint}")
}

/// `file:line:column`, as far as it is known.
fn place(error: &ScriptError) -> Option<String> {
    let mut place = error.file.clone()?;
    for number in [error.line, error.column].into_iter().map_while(|number| number) {
        // Writing to a string cannot fail.
        let _ = write!(place, ":{number}");
    }
    Some(place)
}

/// The line an error points at, with a mark below the column.
pub(super) fn source_line(error: &ScriptError) -> Option<String> {
    let (line, column, text) = (error.line?, error.column?, error.source_line.as_ref()?);
    let blank = |c: char| if c == '\t' { '\t' } else { ' ' };
    let before: String = text.chars().take(column.saturating_sub(1) as usize).map(blank).collect();
    let gutter = " ".repeat(line.to_string().len());
    Some(format!("  {line} | {text}\n  {gutter} | {before}^"))
}

/// An error with everything that is known.
pub(super) fn whole(lines: &mut Lines, error: &LoadError) {
    let what = &error.what;
    match place(what) {
        Some(place) => lines.add(format_args!("{place}: {}", what.message)),
        None => lines.add(&what.message),
    }
    if let Some(source) = source_line(what) {
        lines.add(source);
    }
    if let Some(hint) = &error.hint {
        lines.add(format_args!("Hint: {hint}"));
    }
    if let Some(stack) = &what.stack {
        lines.add("Stack:");
        stack.lines().for_each(|frame| lines.add(format_args!("  {}", frame.trim())));
    }
}

/// Everything about one extension.
pub fn inspect(info: &ExtensionInfo, log: &[LogLine], tail: usize) -> String {
    let mut lines = Lines::default();
    lines.add(format_args!("{} — {}", info.name, info.status));
    lines.add(format_args!("id: {}", info.id));
    lines.add(format_args!("source: {}", info.source));
    lines.add(format_args!("path: {}", info.path.display()));
    lines.add(format_args!("generation: {}", info.generation));
    if let Some(pid) = info.pid {
        lines.add(format_args!("pid: {pid}"));
    }
    if let Some(hash) = &info.hash {
        lines.add(format_args!("hash: {hash}"));
    }
    lines.section("Tools:", info.tools.iter().map(|tool| with_text(&tool.name, &tool.description)));
    let hook = |hook: &crate::extension::HookDeclaration| {
        format!("{}{}", hook.name, if hook.fail_closed { " (failClosed)" } else { "" })
    };
    lines.section("Hooks:", info.hooks.iter().map(hook));
    let command = |command: &crate::extension::CommandDeclaration| {
        with_text(&format!("/{}", command.name), &command.description)
    };
    lines.section("Commands:", info.commands.iter().map(command));
    let canvases = info.canvases.iter().map(|canvas| with_text(&canvas.id, &canvas.description));
    lines.section("Canvases:", canvases);
    let limits = info.limits.rows().into_iter().map(|(name, value)| format!("{name}: {value}"));
    lines.section("Limits:", limits);
    match (&info.error, &info.last_error) {
        (Some(error), _) => {
            lines.add("\nError:");
            whole(&mut lines, error);
            if info.status == Status::Running {
                lines.add("This is about what is on disk now; an earlier version goes on running.");
            }
        }
        (None, Some(error)) => {
            lines.add("\nLast error, before it ran again:");
            whole(&mut lines, error);
        }
        (None, None) => {}
    }
    lines.add("");
    add_log(&mut lines, info, log, tail);
    lines.done()
}

pub(super) fn with_text(name: &str, description: &str) -> String {
    match description.lines().next() {
        Some(text) if !text.is_empty() => format!("{name}: {text}"),
        _ => name.to_owned(),
    }
}

/// The newest lines of a log.
pub fn logs(info: &ExtensionInfo, log: &[LogLine], count: usize) -> String {
    let mut lines = Lines::default();
    add_log(&mut lines, info, log, count);
    lines.done()
}

fn add_log(lines: &mut Lines, info: &ExtensionInfo, log: &[LogLine], count: usize) {
    if let Some(file) = &info.log_file {
        lines.add(format_args!("Log file: {}", file.display()));
    }
    let shown = &log[log.len().saturating_sub(count)..];
    if shown.is_empty() {
        return lines.add(format_args!("The log of {} is empty.", info.id));
    }
    lines.add(format_args!("Log of {} (newest {} of {}):", info.id, shown.len(), log.len()));
    let text: Vec<String> = shown.iter().map(log_line).collect();
    lines.add(fenced(&text.join("\n")));
}

fn log_line(line: &LogLine) -> String {
    let time = chrono::DateTime::from_timestamp_millis(line.timestamp as i64).unwrap_or_default();
    let level = match line.level {
        LogLevel::Info => "",
        LogLevel::Warning => "warning: ",
        LogLevel::Error => "error: ",
    };
    format!("{} {level}{}", time.format("%H:%M:%S%.3f"), line.text)
}

/// A text in a fence that it cannot close.
pub(super) fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{text}\n{fence}")
}

/// The one extension that was meant, or why it is not clear. Those that are not used do not count if there
/// is one that is.
pub fn only(
    found: Vec<ExtensionInfo>,
    name: &str,
    all: &[ExtensionInfo],
) -> Result<ExtensionInfo, String> {
    let many = found.len() > 1;
    let is_used = |info: &ExtensionInfo| info.status != Status::Shadowed;
    let any_used = found.iter().any(is_used);
    let mut meant = found.into_iter().filter(|info| !many || !any_used || is_used(info));
    match (meant.next(), meant.next()) {
        (Some(info), None) => Ok(info),
        (Some(first), Some(second)) => {
            let ids = [first, second].into_iter().chain(meant).map(|info| info.id);
            Err(several(name, ids))
        }
        (None, _) => Err(unknown(name, all)),
    }
}

/// There is no such extension.
pub fn unknown(name: &str, all: &[ExtensionInfo]) -> String {
    let ids: Vec<&str> = all.iter().map(|info| info.id.as_str()).collect();
    match ids.as_slice() {
        [] => format!("There is no extension \"{name}\", and no other."),
        ids => format!("There is no extension \"{name}\". There are: {}.", ids.join(", ")),
    }
}

/// The name alone does not tell.
pub fn several(name: &str, ids: impl Iterator<Item = String>) -> String {
    let ids = ids.collect::<Vec<_>>().join(", ");
    format!("Several extensions are called \"{name}\". Use the id: {ids}.")
}

/// The person has not allowed it.
pub fn untrusted(id: &str) -> String {
    format!(
        "{id} may not run: its workspace is not trusted, or what is in it now was not approved. Only the \
         person can change that (`tenon trust`, `tenon trust --review`)."
    )
}

/// Extensions to write about.
#[cfg(test)]
pub(super) mod fixtures {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;
    use crate::discovery::Found;
    use crate::discovery::Scope;

    pub fn places() -> Places {
        Places { roots: vec![(Scope::Project, PathBuf::from("/w/.github/extensions"))] }
    }

    pub fn running(name: &str, tools: &[&str]) -> ExtensionInfo {
        let folder = PathBuf::from("/w/.github/extensions").join(name);
        let found = Found {
            scope: Scope::Project,
            name: name.to_owned(),
            entry: Ok(folder.join("extension.mjs")),
            folder,
            shadowed_by: None,
        };
        let mut info = ExtensionInfo::new(&found);
        info.status = Status::Running;
        info.generation = 3;
        let tool = |name: &&str| {
            serde_json::from_value(json!({ "name": name, "description": "Does it" })).unwrap()
        };
        info.tools = tools.iter().map(tool).collect();
        info
    }

    pub fn error() -> LoadError {
        let what = ScriptError {
            message: "SyntaxError: unexpected token".into(),
            file: Some("/w/a.mjs".into()),
            line: Some(12),
            column: Some(9),
            source_line: Some("const x =;".into()),
            stack: Some("at /w/a.mjs:12:9".into()),
        };
        LoadError { what, hint: Some("remove it".into()) }
    }

    pub fn failed(name: &str) -> ExtensionInfo {
        let mut info = running(name, &[]);
        info.fail(Status::Failed, error());
        info
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::fixtures::error;
    use super::fixtures::failed;
    use super::fixtures::places;
    use super::fixtures::running;
    use super::*;

    fn lines(count: u64) -> Vec<LogLine> {
        let line = |number: u64| LogLine {
            timestamp: number,
            level: LogLevel::Warning,
            text: format!("line {number}"),
        };
        (0..count).map(line).collect()
    }

    #[test]
    fn a_list_counts_truly_and_says_what_is_wrong_and_where() {
        let text =
            list(&[running("a", &["one", "two"]), failed("b"), running("c", &[])], &places());
        assert!(text.starts_with("Extensions: 3 (2 running, 1 failed)\n\na — running\n"), "{text}");
        assert!(text.contains("  id: project:a\n"), "{text}");
        assert!(text.contains("  tools: one, two\n"), "{text}");
        let error = "  error: SyntaxError: unexpected token at /w/a.mjs:12:9 (remove it)";
        assert!(text.contains(error), "{text}");
    }

    #[test]
    fn an_empty_list_says_where_was_looked() {
        let text = list(&[], &places());
        assert_eq!(text, "There are no extensions. Looked in:\n- /w/.github/extensions");
    }

    #[test]
    fn inspect_shows_what_there_is_and_the_end_of_the_log() {
        let mut info = running("a", &["one"]);
        info.pid = Some(77);
        info.hooks = serde_json::from_value(json!([
            { "name": "onPreToolUse", "failClosed": true }, { "name": "onAgentStop" }
        ]))
        .unwrap();
        let text = inspect(&info, &lines(10), 2);
        for part in [
            "a — running\nid: project:a\nsource: project\n",
            "generation: 3\npid: 77\n",
            "\nTools:\n- one: Does it\n",
            "- onPreToolUse (failClosed)\n- onAgentStop\n",
            "\nLimits:\n- heap-mb: 512 MB\n",
            "Log of project:a (newest 2 of 10):\n```\n00:00:00.008 warning: line 8\n",
        ] {
            assert!(text.contains(part), "{part}\n--- is not in\n{text}");
        }
        assert!(!text.contains("rror"), "{text}");
    }

    #[test]
    fn inspect_shows_an_error_with_its_line_and_stack() {
        let text = inspect(&failed("a"), &[], 20);
        let part = "Error:\n/w/a.mjs:12:9: SyntaxError: unexpected token\n  12 | const x =;\n     |         ^\n\
                    Hint: remove it\nStack:\n  at /w/a.mjs:12:9\n";
        assert!(text.contains(part), "{text}");
        assert!(text.ends_with("The log of project:a is empty."), "{text}");
        let mut well = running("a", &[]);
        well.last_error = Some(error());
        assert!(inspect(&well, &[], 20).contains("Last error, before it ran again:"));
    }

    #[test]
    fn a_log_cannot_close_its_fence() {
        assert_eq!(fenced("a"), "```\na\n```");
        assert_eq!(fenced("```js\n````"), "`````\n```js\n````\n`````");
    }

    #[test]
    fn a_name_that_is_not_clear_is_explained() {
        let all = [running("a", &[]), running("b", &[])];
        let error = only(Vec::new(), "x", &all).unwrap_err();
        assert_eq!(error, "There is no extension \"x\". There are: project:a, project:b.");
        assert!(unknown("x", &[]).contains("and no other"));
        let mut user = running("a", &[]);
        user.id = "user:a".into();
        let error = only(vec![user.clone(), running("a", &[])], "a", &all).unwrap_err();
        assert!(error.contains("Use the id: user:a, project:a."), "{error}");
        user.status = Status::Shadowed;
        assert_eq!(only(vec![user.clone(), running("a", &[])], "a", &all).unwrap().id, "project:a");
        assert_eq!(only(vec![user], "a", &all).unwrap().id, "user:a");
    }
}
