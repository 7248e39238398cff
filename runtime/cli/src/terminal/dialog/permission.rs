//! What is asked when something needs a permission: what is to be done, on whose behalf, and why it is asked.

use serde_json::Value;
use tenon_protocol::permission::AgentAction;
use tenon_protocol::permission::AgentRequest;
use tenon_protocol::permission::PermissionRequest;
use tenon_protocol::permission::Subject;

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

/// A request, for a person.
pub fn describe(request: &PermissionRequest) -> Shown {
    let (title, body, because) = match request {
        PermissionRequest::CustomTool { tool_name, args, .. } => {
            (wants_to_use(tool_name), pretty(args.value()), Vec::new())
        }
        PermissionRequest::Hook { tool_name, tool_args, hook_message, extension_name, .. } => {
            let because = vec![asked_because(extension_name, hook_message.as_deref())];
            (wants_to_use(tool_name), pretty(tool_args.value()), because)
        }
        PermissionRequest::ExtensionManagement { operation, extension_name, .. } => {
            let what = operation.as_str();
            let name = one_line(extension_name.as_deref().unwrap_or_default(), 80);
            (format!("The agent wants to {what} the extension {name}"), String::new(), Vec::new())
        }
        PermissionRequest::ExtensionEnvAccess { extension_name, environment_variables } => {
            let name = one_line(extension_name, 80);
            let title = format!("The extension {name} wants to have");
            (title, environment_variables.join("\n"), Vec::new())
        }
        PermissionRequest::ExtensionReview { intention, extension_name, path, .. } => {
            let name = one_line(extension_name, 80);
            let title = format!("The extension {name} waits for your approval");
            (title, path.clone(), vec![one_line(intention, 300)])
        }
        PermissionRequest::Agent(request) => {
            let (title, body) = action(request);
            (title, body, because(request))
        }
        PermissionRequest::Other(request) => {
            let kind = one_line(request["kind"].as_str().unwrap_or_default(), 80);
            (format!("Permission is needed: {kind}"), pretty(request), Vec::new())
        }
    };
    Shown { title, details: lines(&body), because }
}

/// What the agent wants to do.
fn action(request: &AgentRequest) -> (String, String) {
    // The file it is about, or all of them.
    let files = |one: &str| match request.file_names.as_deref() {
        None | Some([]) => one.to_owned(),
        Some(several) => several.join("\n"),
    };
    match &request.action {
        AgentAction::Shell { full_command_text, .. } => {
            ("The agent wants to run a command".to_owned(), full_command_text.clone())
        }
        AgentAction::Write { file_name, diff, .. } => {
            let body = [files(file_name).as_str(), diff].join("\n");
            ("The agent wants to change a file".to_owned(), body)
        }
        AgentAction::Read { path, .. } => ("The agent wants to read".to_owned(), files(path)),
        AgentAction::Url { url, .. } => ("The agent wants to fetch".to_owned(), url.clone()),
        AgentAction::Mcp { server_name, tool_name, args, .. } => {
            let title = format!("{} of {}", wants_to_use(tool_name), one_line(server_name, 80));
            (title, pretty(args.value()))
        }
        AgentAction::CustomTool { tool_name, args, .. } => {
            (wants_to_use(tool_name), pretty(args.value()))
        }
    }
}

fn wants_to_use(tool: &str) -> String {
    format!("The agent wants to use {}", one_line(tool, 80))
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

/// What the agent says about it, and who wants it to be asked and why.
fn because(request: &AgentRequest) -> Vec<String> {
    let intention = match &request.action {
        AgentAction::Shell { intention, .. }
        | AgentAction::Write { intention, .. }
        | AgentAction::Read { intention, .. }
        | AgentAction::Url { intention, .. } => one_line(intention, 300),
        AgentAction::Mcp { .. } | AgentAction::CustomTool { .. } => String::new(),
    };
    let mut lines = Vec::new();
    if !intention.is_empty() {
        lines.push(format!("it says: {intention}"));
    }
    if let Some(by) = &request.asked_by {
        lines.push(asked_because(&by.extension_name, by.hook_message.as_deref()));
    }
    lines
}

fn asked_because(extension: &str, why: Option<&str>) -> String {
    let why = why.map(|why| one_line(why, 300)).filter(|why| !why.is_empty());
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    format!("asked because of {}{why}", one_line(extension, 300))
}

/// What can be allowed once and for all in a session.
pub fn in_words(subject: &Subject) -> String {
    let name = |name: &str| one_line(name, 80);
    match subject {
        Subject::Commands => "running commands".to_owned(),
        Subject::Changes => "changing files".to_owned(),
        Subject::Reading => "reading".to_owned(),
        Subject::Fetching => "fetching".to_owned(),
        Subject::Tool(tool) => name(tool),
        Subject::McpTool { server, tool } => format!("{} of {}", name(tool), name(server)),
        Subject::Guarded { tool, extension } => {
            format!("{}, whatever {} says,", name(tool), name(extension))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tenon_protocol::permission::AskedBy;

    use super::*;

    fn of_agent(action: AgentAction) -> Shown {
        describe(&PermissionRequest::Agent(AgentRequest::new(action, "c1")))
    }

    fn shell(command: &str) -> AgentAction {
        AgentAction::Shell {
            full_command_text: command.to_owned(),
            intention: String::new(),
            possible_paths: Vec::new(),
            has_write_file_redirection: false,
        }
    }

    #[test]
    fn a_command_is_shown_with_who_asks_and_why() {
        let action = AgentAction::Shell {
            full_command_text: "rm -rf build\nmake".to_owned(),
            intention: "clean up".to_owned(),
            possible_paths: Vec::new(),
            has_write_file_redirection: false,
        };
        let asked_by = Some(AskedBy {
            hook_message: Some("it deletes".to_owned()),
            extension_name: "project:guard".to_owned(),
        });
        let request = AgentRequest { asked_by, ..AgentRequest::new(action, "c1") };
        let shown = describe(&PermissionRequest::Agent(request));
        assert_eq!(shown.title, "The agent wants to run a command");
        assert_eq!(shown.details, ["rm -rf build", "make"]);
        assert_eq!(
            shown.because,
            ["it says: clean up", "asked because of project:guard: it deletes"]
        );
    }

    #[test]
    fn arguments_are_shown_readably_and_nothing_hides_in_them() {
        let shown = describe(&PermissionRequest::CustomTool {
            tool_call_id: "c1".to_owned(),
            tool_name: "deploy".to_owned(),
            tool_description: String::new(),
            args: json!({ "to": "live\x1b[2K\r" }).into(),
        });
        assert_eq!(shown.title, "The agent wants to use deploy");
        assert_eq!(shown.details, ["{", r#"  "to": "live\u001b[2K\r""#, "}"]);
        let shown = of_agent(shell("ls\r\x1b[1Aecho"));
        assert_eq!(shown.details, [r"ls\u{d}\u{1b}[1Aecho"]);
    }

    #[test]
    fn what_is_long_is_cut_and_says_so() {
        let shown = of_agent(shell(&"x\n".repeat(MAX_LINES + 5)));
        assert_eq!(shown.details.len(), MAX_LINES + 1);
        assert_eq!(shown.details[MAX_LINES], "... 5 more lines");
        let shown = of_agent(shell(&"x".repeat(MAX_LINE + 1)));
        assert!(shown.details[0].ends_with("... (401 characters)"), "{:?}", shown.details);
    }

    #[test]
    fn a_changed_file_is_shown_with_what_changes() {
        let write = |diff: &str| AgentAction::Write {
            file_name: "/a".to_owned(),
            intention: String::new(),
            diff: diff.to_owned(),
            new_file_contents: None,
        };
        assert_eq!(of_agent(write("-x\n+y")).details, ["/a", "-x", "+y"]);
        let file_names = Some(vec!["/a".to_owned(), "/b".to_owned()]);
        let several = AgentRequest { file_names, ..AgentRequest::new(write(""), "c1") };
        assert_eq!(describe(&PermissionRequest::Agent(several)).details, ["/a", "/b"]);
    }

    #[test]
    fn what_an_extension_wants_is_shown_with_its_name() {
        let shown = describe(&PermissionRequest::ExtensionEnvAccess {
            extension_name: "user:x".to_owned(),
            environment_variables: vec!["TOKEN".to_owned(), "KEY".to_owned()],
        });
        assert_eq!(shown.title, "The extension user:x wants to have");
        assert_eq!(shown.details, ["TOKEN", "KEY"]);
        let shown = describe(&PermissionRequest::ExtensionReview {
            intention: "it has changed".to_owned(),
            extension_name: "project:x".to_owned(),
            path: "/w/x".to_owned(),
            hash: "abc".to_owned(),
        });
        assert_eq!(shown.title, "The extension project:x waits for your approval");
        assert_eq!(
            (shown.details, shown.because),
            (vec!["/w/x".to_owned()], vec!["it has changed".to_owned()])
        );
    }

    #[test]
    fn an_unknown_request_is_shown_as_it_is() {
        let shown = describe(&PermissionRequest::Other(json!({ "kind": "new-thing", "what": 1 })));
        assert_eq!(shown.title, "Permission is needed: new-thing");
        assert!(shown.details.iter().any(|line| line.contains("\"what\": 1")), "{shown:?}");
    }
}
