//! Tool calls, a line when one begins and a line when it ends.

use std::collections::HashMap;

use serde_json::Value;

use super::figures;
use super::look::Look;
use crate::sanitise::cut;
use crate::sanitise::one_line;

/// The most calls whose beginning is remembered. Agents that never say how a call ended must not grow us.
const MAX_OPEN_CALLS: usize = 1_000;

/// The least room for what a call is about, in characters, however narrow the terminal is.
const MIN_SUMMARY: usize = 20;

/// The longest text of an error, in characters. It may go over several lines of the terminal.
const MAX_ERROR: usize = 300;

/// Arguments that say what a call is about, the best first.
const TELLING: [&str; 12] = [
    "command",
    "path",
    "file_path",
    "filePath",
    "url",
    "query",
    "pattern",
    "prompt",
    "operation",
    "name",
    "description",
    "text",
];

/// The calls that run.
pub struct ToolLines {
    look: Look,
    width: usize,
    open: HashMap<String, Open>,
}

/// A call that runs.
struct Open {
    label: String,
    /// Milliseconds since 1970.
    since: Option<i64>,
}

impl ToolLines {
    /// No calls, for a terminal so many characters wide.
    pub fn new(look: Look, width: usize) -> Self {
        Self { look, width, open: HashMap::new() }
    }

    /// The terminal has another width.
    pub fn resize(&mut self, width: usize) {
        self.width = width;
    }

    /// The line for `tool.execution_start`; `owner` is the extension whose tool it is.
    pub fn start(&mut self, data: &Value, owner: Option<&str>, timestamp: &str) -> String {
        let look = self.look;
        let name = name_of(data);
        let owned = owner.map(|owner| format!(" {} {}", look.between, one_line(owner, 80)));
        let owned = owned.unwrap_or_default();
        let used = look.begins.chars().count() + name.chars().count() + owned.chars().count() + 3;
        let room = self.width.saturating_sub(used).max(MIN_SUMMARY);
        let about = summary(&data["arguments"], room);
        let gap = if about.is_empty() { "" } else { "  " };
        let (bold, faint, sign) = (look.name, look.faint, look.pointed);
        let label = format!("{bold}{name}{bold:#}{faint}{owned}{faint:#}");
        let line = format!("{sign}{}{sign:#} {label}{gap}{about}\n", look.begins);
        if let Some(id) = data["toolCallId"].as_str()
            && self.open.len() < MAX_OPEN_CALLS
        {
            let since = figures::milliseconds(timestamp);
            self.open.insert(id.to_owned(), Open { label, since });
        }
        line
    }

    /// The line for `tool.execution_complete`; empty if an extension wants it not to be shown.
    pub fn complete(&mut self, data: &Value, timestamp: &str) -> String {
        let look = self.look;
        let open = data["toolCallId"].as_str().and_then(|id| self.open.remove(id));
        if data["suppressOutput"] == true {
            return String::new();
        }
        let since = open.as_ref().and_then(|open| open.since);
        let label = open.map_or_else(
            || format!("{}{}{:#}", look.name, name_of(data), look.name),
            |open| open.label,
        );
        let took = figures::milliseconds(timestamp).zip(since).map(|(now, since)| now - since);
        let faint = look.faint;
        let took = took
            .map(|took| format!(" {faint}{}{faint:#}", figures::duration(took)))
            .unwrap_or_default();
        if data["success"] == true {
            let style = look.good;
            return format!("{style}{}{style:#} {label}{took}\n", look.done);
        }
        let why = data["error"]["message"].as_str().unwrap_or_default();
        let why = one_line(why, MAX_ERROR);
        let denied = matches!(data["error"]["code"].as_str(), Some("denied" | "rejected"));
        let (sign, style) =
            if denied { (look.denied, look.doubtful) } else { (look.failed, look.bad) };
        let why = if denied { plainly(&why) } else { why };
        let gap = if why.is_empty() { "" } else { "  " };
        format!("{style}{sign}{style:#} {label}{took}{gap}{style}{why}{style:#}\n")
    }
}

/// The tool, by the name that extensions know; an MCP server's with its server.
fn name_of(data: &Value) -> String {
    let text = |field: &str| data[field].as_str().unwrap_or_default();
    match data["mcpServerName"].as_str() {
        Some(server) => one_line(&format!("{server}/{}", text("mcpToolName")), 80),
        None => one_line(text("toolName"), 80),
    }
}

/// A denial begins with what it is; the sign says that already.
fn plainly(why: &str) -> String {
    match why.strip_prefix("Denied by ") {
        Some(rest) => format!("by {rest}"),
        None => why.strip_prefix("Denied: ").unwrap_or(why).to_owned(),
    }
}

/// What a call is about, in a line.
fn summary(arguments: &Value, room: usize) -> String {
    let Some(fields) = arguments.as_object() else {
        return match arguments {
            Value::Null => String::new(),
            Value::String(text) => one_line(text, room),
            other => one_line(&other.to_string(), room),
        };
    };
    let telling = TELLING.iter().find_map(|name| fields.get(*name)?.as_str());
    match telling {
        Some(text) => {
            let line = one_line(text, room);
            let more = text.trim().lines().count() > 1 && !line.ends_with("...");
            if more { cut(&format!("{line} ..."), room) } else { line }
        }
        None if fields.is_empty() => String::new(),
        None => one_line(&arguments.to_string(), room),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const START: &str = "2026-01-01T00:00:00.000Z";
    const END: &str = "2026-01-01T00:00:01.240Z";

    fn lines() -> ToolLines {
        ToolLines::new(Look::new(false), 60)
    }

    #[test]
    fn a_call_is_a_line_at_its_beginning_and_a_line_at_its_end() {
        let mut lines = lines();
        let start = json!({ "toolCallId": "1", "toolName": "bash", "arguments": { "command": "npm test" } });
        assert_eq!(lines.start(&start, None, START), "* bash  npm test\n");
        let end = json!({ "toolCallId": "1", "toolName": "bash", "success": true });
        assert_eq!(lines.complete(&end, END), "ok bash 1.2 s\n");
        assert!(lines.open.is_empty());
    }

    #[test]
    fn with_colours_there_are_signs() {
        let mut lines = ToolLines::new(Look::new(true), 60);
        let start =
            json!({ "toolCallId": "1", "toolName": "bash", "arguments": { "command": "ls" } });
        let line = lines.start(&start, None, START);
        assert_eq!(anstream::adapter::strip_str(&line).to_string(), "● bash  ls\n");
        let end = json!({ "toolCallId": "1", "toolName": "bash", "success": true });
        let line = lines.complete(&end, END);
        assert_eq!(anstream::adapter::strip_str(&line).to_string(), "✓ bash 1.2 s\n");
    }

    #[test]
    fn a_tool_of_an_extension_names_it() {
        let mut lines = lines();
        let start = json!({ "toolCallId": "1", "toolName": "word_count", "arguments": { "a": 1 } });
        let line = lines.start(&start, Some("project:words"), START);
        assert_eq!(line, "* word_count - project:words  {\"a\":1}\n");
        let end = json!({ "toolCallId": "1", "toolName": "word_count", "success": true });
        assert_eq!(lines.complete(&end, START), "ok word_count - project:words 0 ms\n");
    }

    #[test]
    fn failures_say_why_and_denials_say_who() {
        let mut lines = lines();
        let failed = json!({
            "toolName": "bash", "success": false,
            "error": { "message": "\nexit code 2\nmore", "code": "failure" },
        });
        assert_eq!(lines.complete(&failed, END), "failed bash  exit code 2\n");
        let denied = json!({
            "toolName": "bash", "success": false,
            "error": { "message": "Denied by project:guard: no force pushes", "code": "denied" },
        });
        let expected = "denied bash  by project:guard: no force pushes\n";
        assert_eq!(lines.complete(&denied, END), expected);
        let nobody = json!({
            "toolName": "bash", "success": false,
            "error": { "message": "Denied: there is nobody to ask", "code": "denied" },
        });
        assert_eq!(lines.complete(&nobody, END), "denied bash  there is nobody to ask\n");
    }

    #[test]
    fn what_a_call_is_about_fits_and_is_harmless() {
        let mut lines = lines();
        let mut about = |arguments: Value| {
            lines.start(&json!({ "toolName": "t", "arguments": arguments }), None, START)
        };
        assert_eq!(about(json!({})), "* t\n");
        assert_eq!(about(Value::Null), "* t\n");
        assert_eq!(about(json!({ "path": "/a", "old": "x" })), "* t  /a\n");
        assert_eq!(about(json!({ "command": "one\ntwo" })), "* t  one ...\n");
        assert_eq!(about(json!({ "command": "\x1b[2Jls\x07" })), "* t  ls\n");
        let long = about(json!({ "command": "x".repeat(100) }));
        assert_eq!(long.trim_end().chars().count(), 60);
        assert!(long.ends_with("...\n"), "{long}");
    }

    #[test]
    fn an_mcp_servers_tool_is_named_with_its_server() {
        let start = json!({
            "toolName": "mcp-fetch", "mcpServerName": "web", "mcpToolName": "fetch",
            "arguments": { "url": "http://a" },
        });
        assert_eq!(lines().start(&start, None, START), "* web/fetch  http://a\n");
    }

    #[test]
    fn what_is_not_to_be_shown_is_not() {
        let end = json!({ "toolName": "t", "success": true, "suppressOutput": true });
        assert_eq!(lines().complete(&end, END), "");
    }

    #[test]
    fn calls_that_never_end_are_not_remembered_for_ever() {
        let mut lines = lines();
        for number in 0..MAX_OPEN_CALLS + 10 {
            let id = number.to_string();
            lines.start(&json!({ "toolCallId": id, "toolName": "t" }), None, START);
        }
        assert_eq!(lines.open.len(), MAX_OPEN_CALLS);
    }
}
