//! What is asked when something needs a permission: what is to be done, on whose behalf, and why it is asked.

use serde_json::Value;

use crate::sanitise::cut;
use crate::sanitise::one_line;
use crate::sanitise::visible;

/// The most lines that are shown of what is to be done. How many more there are is said.
const MAX_LINES: usize = 20;

/// The longest of these lines, in characters. That it was cut is said.
const MAX_LINE: usize = 400;

/// What the person is shown.
#[derive(Debug, PartialEq, Eq)]
pub struct Shown {
    /// What it is about.
    pub title: String,
    /// What is to be done.
    pub details: Vec<String>,
    /// Who wants it to be asked, and other remarks.
    pub because: Vec<String>,
}

/// A request of the public contract, for a person.
pub fn describe(request: &Value) -> Shown {
    let text = |field: &str| request[field].as_str().unwrap_or_default();
    let tool = one_line(text("toolName"), 80);
    let (title, body) = match text("kind") {
        "shell" => {
            ("The agent wants to run a command".to_owned(), text("fullCommandText").to_owned())
        }
        "write" => {
            let files = files(request, "fileName");
            let body = [files, text("diff").to_owned()].join("\n");
            ("The agent wants to change a file".to_owned(), body)
        }
        "read" => ("The agent wants to read".to_owned(), files(request, "path")),
        "url" => ("The agent wants to fetch".to_owned(), text("url").to_owned()),
        "memory" => ("The agent wants to remember".to_owned(), text("fact").to_owned()),
        "mcp" => {
            let server = one_line(text("serverName"), 80);
            (format!("The agent wants to use {tool} of {server}"), pretty(&request["args"]))
        }
        "custom-tool" => (format!("The agent wants to use {tool}"), pretty(&request["args"])),
        "hook" => (format!("The agent wants to use {tool}"), pretty(&request["toolArgs"])),
        "extension-management" => {
            let what = one_line(text("operation"), 80);
            let name = one_line(text("extensionName"), 80);
            (format!("The agent wants to {what} the extension {name}"), String::new())
        }
        "extension-env-access" | "extension-permission-access" => {
            let name = one_line(text("extensionName"), 80);
            (format!("The extension {name} wants to have"), wanted(request))
        }
        kind => (format!("Permission is needed: {}", one_line(kind, 80)), pretty(request)),
    };
    Shown { title, details: lines(&body), because: because(request) }
}

/// The file it is about, or all of them.
fn files(request: &Value, field: &str) -> String {
    let several: Vec<_> =
        request["fileNames"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match several.is_empty() {
        true => request[field].as_str().unwrap_or_default().to_owned(),
        false => several.join("\n"),
    }
}

/// What an extension wants: the names in whatever list the request has.
fn wanted(request: &Value) -> String {
    let fields = request.as_object().into_iter().flatten();
    let lists = fields.filter_map(|(_, value)| value.as_array());
    lists.flatten().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

/// Arguments for a person; nothing for none.
fn pretty(arguments: &Value) -> String {
    match arguments {
        Value::Null => String::new(),
        Value::Object(fields) if fields.is_empty() => String::new(),
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}

/// Lines that can be looked over. What is not harmless is written out, and what is left out is said.
fn lines(text: &str) -> Vec<String> {
    let text = visible(text);
    let all: Vec<_> = text.trim_end().lines().collect();
    let mut shown: Vec<_> = all
        .iter()
        .take(MAX_LINES)
        .map(|line| {
            let length = line.chars().count();
            let more =
                if length > MAX_LINE { format!(" ({length} characters)") } else { String::new() };
            cut(line, MAX_LINE) + more.as_str()
        })
        .skip_while(|line| line.trim().is_empty())
        .collect();
    if all.len() > MAX_LINES {
        shown.push(format!("... {} more lines", all.len() - MAX_LINES));
    }
    shown
}

/// Who wants it to be asked and why, and what the agent says about it.
fn because(request: &Value) -> Vec<String> {
    let text = |field: &str| {
        request[field].as_str().map(|text| one_line(text, 300)).filter(|text| !text.is_empty())
    };
    let mut lines = Vec::new();
    lines.extend(text("intention").map(|intention| format!("it says: {intention}")));
    lines.extend(text("warning").map(|warning| format!("careful: {warning}")));
    let hook = text("hookMessage");
    if request["kind"] == "hook" || hook.is_some() {
        let by = text("extensionName").unwrap_or_else(|| "an extension".to_owned());
        let why = hook.map(|why| format!(": {why}")).unwrap_or_default();
        lines.push(format!("asked because of {by}{why}"));
    }
    lines
}

/// What can be allowed once and for all in a session, in words; none if it has to be asked each time.
pub fn subject(request: &Value) -> Option<String> {
    let text = |field: &str| request[field].as_str().map(|text| one_line(text, 80));
    // An extension wants this very call to be asked about.
    if request["kind"] != "hook" && request.get("hookMessage").is_some() {
        return None;
    }
    Some(match request["kind"].as_str()? {
        "shell" => "running commands".to_owned(),
        "write" => "changing files".to_owned(),
        "read" => "reading".to_owned(),
        "url" => "fetching".to_owned(),
        "mcp" => format!("{} of {}", text("toolName")?, text("serverName")?),
        "custom-tool" => text("toolName")?,
        "hook" => format!("{}, whatever {} says,", text("toolName")?, text("extensionName")?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_command_is_shown_with_who_asks_and_why() {
        let shown = describe(&json!({
            "kind": "shell",
            "fullCommandText": "rm -rf build\nmake",
            "intention": "clean up",
            "extensionName": "project:guard",
            "hookMessage": "it deletes",
        }));
        assert_eq!(shown.title, "The agent wants to run a command");
        assert_eq!(shown.details, ["rm -rf build", "make"]);
        assert_eq!(
            shown.because,
            ["it says: clean up", "asked because of project:guard: it deletes"]
        );
    }

    #[test]
    fn arguments_are_shown_readably_and_nothing_hides_in_them() {
        let shown = describe(&json!({
            "kind": "custom-tool", "toolName": "deploy", "args": { "to": "live\x1b[2K\r" },
        }));
        assert_eq!(shown.title, "The agent wants to use deploy");
        assert_eq!(shown.details, ["{", r#"  "to": "live\u001b[2K\r""#, "}"]);
        let shown = describe(&json!({ "kind": "shell", "fullCommandText": "ls\r\x1b[1Aecho" }));
        assert_eq!(shown.details, [r"ls\u{d}\u{1b}[1Aecho"]);
    }

    #[test]
    fn what_is_long_is_cut_and_says_so() {
        let long = "x\n".repeat(MAX_LINES + 5);
        let shown = describe(&json!({ "kind": "shell", "fullCommandText": long }));
        assert_eq!(shown.details.len(), MAX_LINES + 1);
        assert_eq!(shown.details[MAX_LINES], "... 5 more lines");
        let wide = "x".repeat(MAX_LINE + 1);
        let shown = describe(&json!({ "kind": "shell", "fullCommandText": wide }));
        assert!(shown.details[0].ends_with("... (401 characters)"), "{:?}", shown.details);
    }

    #[test]
    fn a_changed_file_is_shown_with_what_changes() {
        let one = json!({ "kind": "write", "fileName": "/a", "diff": "-x\n+y" });
        assert_eq!(describe(&one).details, ["/a", "-x", "+y"]);
        let several = json!({ "kind": "write", "fileNames": ["/a", "/b"] });
        assert_eq!(describe(&several).details, ["/a", "/b"]);
    }

    #[test]
    fn an_unknown_request_is_shown_as_it_is() {
        let shown = describe(&json!({ "kind": "new-thing", "what": 1 }));
        assert_eq!(shown.title, "Permission is needed: new-thing");
        assert!(shown.details.iter().any(|line| line.contains("\"what\": 1")), "{shown:?}");
    }

    #[test]
    fn only_what_is_alike_can_be_allowed_for_the_session() {
        let subject = |request: Value| subject(&request);
        assert_eq!(subject(json!({ "kind": "shell" })).as_deref(), Some("running commands"));
        let tool = json!({ "kind": "custom-tool", "toolName": "deploy" });
        assert_eq!(subject(tool).as_deref(), Some("deploy"));
        for kind in ["extension-management", "extension-env-access", "new-thing"] {
            assert_eq!(subject(json!({ "kind": kind })), None, "{kind}");
        }
        let asked = json!({ "kind": "shell", "hookMessage": "careful", "extensionName": "user:x" });
        assert_eq!(subject(asked), None);
    }
}
