//! One prompt, from its first hook to its last event, as folders below `cases`: see `cases/README.md`.

use std::path::Path;
use std::path::PathBuf;
use std::sync::LazyLock;

use libtest_mimic::Failed;
use libtest_mimic::Trial;
use regex::Regex;
use serde_json::Value;
use tenon_tests::Workspace;

/// What is part of a transcript, by type of event.
const SHOWN: &[&str] = &[
    "user.message",
    "assistant.message",
    "assistant.reasoning",
    "assistant.plan",
    "tool.execution_start",
    "tool.execution_complete",
    "permission.requested",
    "permission.completed",
    "session.info",
    "session.warning",
    "session.error",
    "session.title_changed",
    "session.mode_changed",
    "acp.update",
    "abort",
    "run.result",
];

pub fn trials() -> Vec<Trial> {
    let folder = tenon_tests::folder("agents/cases");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("prompt.txt").is_file())
        .collect();
    cases.sort();
    cases.into_iter().map(trial).collect()
}

fn trial(case: PathBuf) -> Trial {
    let name = case.file_name().unwrap().to_string_lossy().into_owned();
    Trial::test(format!("story::{name}"), move || check(&case).map_err(Failed::from))
}

fn check(case: &Path) -> Result<(), String> {
    let workspace = stage(case);
    let prompt = std::fs::read_to_string(case.join("prompt.txt")).unwrap();
    let more = std::fs::read_to_string(case.join("args.txt")).unwrap_or_default();
    let mut args = vec!["run", "--json", "-a", "demo"];
    args.extend(more.lines().filter(|line| !line.is_empty()));
    if !more.contains("--permissions") {
        args.extend(["--permissions", "approve-all"]);
    }
    args.push(&prompt);
    let more_shown = std::fs::read_to_string(case.join("show.txt")).unwrap_or_default();
    let run = workspace.run(&args);
    let mut transcript = String::new();
    for line in run.stdout.lines() {
        let event: Value = serde_json::from_str(line)
            .map_err(|error| format!("{error} in the line {line:?}\nstderr: {}", run.stderr))?;
        let kind = event["type"].as_str().unwrap_or_default();
        let wanted = SHOWN.contains(&kind) || more_shown.lines().any(|more| more == kind);
        if wanted && !is_greeting(kind, &event["data"]) {
            transcript.push_str(&told(kind, &event["data"]));
        }
    }
    transcript.push_str(&format!("exit code {}\n", run.code));
    let transcript = normalise(&workspace.scrub(&transcript));
    let expected = case.join("expected.txt");
    if std::env::var_os("UPDATE_SPECS").is_some_and(|value| !value.is_empty() && value != "0") {
        std::fs::write(expected, transcript).unwrap();
        return Ok(());
    }
    let wanted = std::fs::read_to_string(expected).unwrap_or_default();
    if wanted == transcript {
        return Ok(());
    }
    let difference = similar::TextDiff::from_lines(&wanted, &transcript);
    let difference = difference.unified_diff().header("expected", "this run").to_string();
    Err(format!("{difference}\nstderr: {}", run.stderr))
}

/// What the agent says whenever it likes after a session was opened.
fn is_greeting(kind: &str, data: &Value) -> bool {
    kind == "agent.commands_changed" && data["commands"][0]["name"] == "shout"
}

/// The configuration of every case. Only the agent reloads extensions: a watcher would load a file that is half
/// written when the machine is busy. The deadlines are too long to be reached.
const SETTINGS: &str = "[reload]\nwatch = \"off\"\n\n\
    [extensions.\"*\"]\nstart-deadline-s = 600\nhook-deadline-ms = 600000\n\n";

/// The workspace of a case: every folder with an entry file is an extension.
fn stage(case: &Path) -> Workspace {
    let mut workspace = Workspace::new();
    workspace.home_file("config.toml", SETTINGS);
    for entry in std::fs::read_dir(case).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if let Some(name) = name.strip_suffix(".mjs") {
            workspace = workspace.extension(name, &std::fs::read_to_string(&path).unwrap());
        } else if name == "config.toml" {
            let text = std::fs::read_to_string(&path).unwrap();
            let text = text.replace("[TENON]", &tenon_tests::tenon().to_string_lossy());
            workspace.home_file("config.toml", format!("{SETTINGS}{text}"));
        }
    }
    workspace
}

/// An event as a line of a transcript; what is long is indented below it.
fn told(kind: &str, data: &Value) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let said = match kind {
        "user.message" => text(&data["transformedContent"]),
        "assistant.message" | "assistant.reasoning" => text(&data["content"]),
        "assistant.plan" => {
            let entries = data["entries"].as_array().cloned().unwrap_or_default();
            let entry =
                |entry: &Value| format!("[{}] {}", text(&entry["status"]), text(&entry["content"]));
            entries.iter().map(entry).collect::<Vec<_>>().join("\n")
        }
        "tool.execution_start" => {
            let native = match data.get("nativeToolName") {
                Some(native) => format!(" (native {})", text(native)),
                None => String::new(),
            };
            format!("{} {}{native}", text(&data["toolName"]), data["arguments"])
        }
        "tool.execution_complete" => {
            let outcome = if data["success"] == true {
                format!("success\n{}", text(&data["result"]["content"]))
            } else {
                format!("{}\n{}", text(&data["error"]["code"]), text(&data["error"]["message"]))
            };
            format!("{} {outcome}", text(&data["toolName"]))
        }
        "permission.requested" => {
            let mut request = data["permissionRequest"].clone();
            if let Some(fields) = request.as_object_mut() {
                fields.remove("acp");
                fields.remove("toolCallId");
            }
            request.to_string()
        }
        "permission.completed" => data["result"].to_string(),
        "session.info" | "session.warning" | "session.error" => {
            let who =
                data["extensionId"].as_str().map(|who| format!("{who}: ")).unwrap_or_default();
            format!("{who}{}", text(&data["message"]))
        }
        "agent.commands_changed" => {
            let commands = data["commands"].as_array().cloned().unwrap_or_default();
            commands.iter().map(|command| text(&command["name"])).collect::<Vec<_>>().join(" ")
        }
        "run.result" => {
            let mut data = data.clone();
            if let Some(fields) = data.as_object_mut() {
                fields.remove("sessionId");
            }
            data.to_string()
        }
        _ => data.to_string(),
    };
    let said = said.trim_end().replace('\n', "\n    ");
    format!("{kind}: {said}\n")
}

/// What differs from run to run gets a name.
fn normalise(text: &str) -> String {
    static CHANGING: LazyLock<[(Regex, &str); 5]> = LazyLock::new(|| {
        let pattern = |pattern| Regex::new(pattern).expect("a pattern");
        [
            (pattern(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "[uuid]"),
            (pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "[TIME]"),
            (pattern(r"\b\d+(\.\d+)? (ms|s)\b"), "[TIME]"),
            (pattern(r"127\.0\.0\.1:\d+"), "127.0.0.1:[PORT]"),
            (pattern(r"(\.mjs:\d+):\d+"), "$1"),
        ]
    });
    let mut text = text.to_owned();
    for (pattern, name) in &*CHANGING {
        text = pattern.replace_all(&text, *name).into_owned();
    }
    text
}
