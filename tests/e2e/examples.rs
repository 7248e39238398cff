//! The extensions in `examples` and `extensions` load and do what they say.

use std::io::BufRead;
use std::io::BufReader;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use serde_json::json;
use tenon_tests::Workspace;
use tenon_tests::folder;

const EXAMPLES: &str = "../examples/sample-repo/.github/extensions";
const SHIPPED: &str = "../extensions";

/// Calls a tool of one of our extensions in a fresh workspace.
fn call(workspace: &Workspace, root: &str, extension: &str, tool: &str, args: &Value) -> Value {
    let folder = folder(root).join(extension);
    // One alone loads faster than all of them.
    let parent = workspace.cwd().join("only");
    std::fs::create_dir_all(&parent).unwrap();
    let link = parent.join(extension);
    if !link.exists() {
        std::os::unix::fs::symlink(folder, &link).unwrap();
    }
    let parent = parent.to_string_lossy().into_owned();
    let args = args.to_string();
    workspace.run(&["call", tool, "--json", "--args", &args, "--extensions", &parent]).json()
}

fn text(result: &Value) -> &str {
    result["textResultForLlm"].as_str().unwrap()
}

#[test]
fn all_of_them_load() {
    let workspace = Workspace::new();
    // So many at once take a while on a busy machine.
    workspace.home_file("config.toml", "[extensions.\"*\"]\nstart-deadline-s = 600\n");
    let roots = [folder(EXAMPLES), folder(SHIPPED)].map(|root| root.to_string_lossy().into_owned());
    let run = workspace.run(&[
        "ext",
        "list",
        "--json",
        "--extensions",
        &roots[0],
        "--extensions",
        &roots[1],
    ]);
    let list = run.json();
    let list = list.as_array().unwrap();
    assert_eq!(list.len(), 17);
    for extension in list {
        assert_eq!(extension["status"], "running", "{extension:#}");
    }
    let named = |name: &str| list.iter().find(|e| e["name"] == name).unwrap().clone();
    let hooks = |name: &str| {
        let hooks = named(name)["hooks"].as_array().unwrap().clone();
        hooks.iter().map(|hook| hook["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(hooks("guard"), ["onUserPromptSubmitted", "onPreToolUse"]);
    assert_eq!(named("guard")["commands"][0]["name"], "guard");
    assert_eq!(named("status-canvas")["canvases"][0]["id"], "status-board");
    assert_eq!(hooks("lint-after-edit"), ["onPostToolUse"]);
}

#[test]
fn hello_tool_greets() {
    let result =
        call(&Workspace::new(), EXAMPLES, "hello-tool", "say_hello", &json!({ "name": "Ada" }));
    assert_eq!(text(&result), "Hello, Ada!");
}

#[test]
fn run_command_gives_output_and_exit_code() {
    let workspace = Workspace::new();
    let run = |command: &str| {
        call(&workspace, EXAMPLES, "run-command", "run_command", &json!({ "command": command }))
    };
    assert_eq!(text(&run("echo hi")), "exit code: 0\nhi");
    let failed = run("echo no; exit 3");
    assert_eq!((text(&failed), &failed["resultType"]), ("exit code: 3\nno", &json!("failure")));
}

#[test]
fn fetch_page_reads_a_page() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
        let page = "<html><title>T</title><p>Some text</p></html>";
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n",
            page.len()
        );
        std::io::Write::write_all(&mut stream, (head + page).as_bytes()).unwrap();
    });
    let result =
        call(&Workspace::new(), EXAMPLES, "fetch-page", "fetch_page", &json!({ "url": url }));
    server.join().unwrap();
    assert!(
        text(&result).contains("Title: T") && text(&result).contains("Some text"),
        "{result:#}"
    );
}

#[test]
fn file_watcher_reports_a_change() {
    let workspace = Workspace::new();
    let folder = folder(EXAMPLES).join("file-watcher");
    let workspace = workspace.linked_extension("file-watcher", &folder);
    let target = workspace.cwd().join("touched.txt");
    let args = json!({ "wait_seconds": 60 }).to_string();
    let mut command = workspace.command(&["call", "recent_changes", "--args", &args]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    // The watcher sees only what happens after it started, so the file is written until it did.
    let mut number = 0;
    while child.try_wait().unwrap().is_none() {
        number += 1;
        std::fs::write(&target, number.to_string()).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("touched.txt"), "{text}");
}

#[test]
fn lint_after_edit_finds_a_syntax_error() {
    let workspace = Workspace::new();
    workspace.file("bad.mjs", "const a = ;");
    workspace.file("good.mjs", "export const a = 1;");
    let lint = |path: &str| {
        call(&workspace, EXAMPLES, "lint-after-edit", "lint_file", &json!({ "path": path }))
    };
    assert!(text(&lint("bad.mjs")).starts_with("bad.mjs: syntax error"));
    assert_eq!(text(&lint("good.mjs")), "good.mjs: no syntax errors");
}

#[test]
fn status_canvas_serves_its_board() {
    let result = call(
        &Workspace::new(),
        EXAMPLES,
        "status-canvas",
        "set_status",
        &json!({ "text": "hello", "level": "busy" }),
    );
    assert!(
        text(&result).starts_with("Status set to [busy] hello\nBoard: http://127.0.0.1:"),
        "{result:#}"
    );
}

#[test]
fn notes_are_kept_between_runs() {
    let workspace = Workspace::new();
    let store = workspace.cwd().join("notes.db").to_string_lossy().into_owned();
    let workspace = workspace.env("NOTES_DB", &store);
    let note = json!({ "text": "remember", "tag": "x" });
    assert_eq!(text(&call(&workspace, EXAMPLES, "notes", "add_note", &note)), "Saved note 1.");
    let listed = call(&workspace, EXAMPLES, "notes", "list_notes", &json!({}));
    assert!(text(&listed).contains("[x] remember"), "{listed:#}");
}

#[test]
fn typed_tool_compares_versions() {
    let args = json!({ "left": "1.10.0", "right": "1.9.2" });
    let result = call(&Workspace::new(), EXAMPLES, "typed-tool", "compare_versions", &args);
    assert_eq!(text(&result), "1.10.0 is newer than 1.9.2");
}

#[test]
fn shipped_extensions_answer() {
    let workspace = Workspace::new();
    workspace.file("a.txt", "one two\nthree  four\nfive");
    workspace.file("a.json", r#"{ "a": { "b": [1, { "c": "x" }] } }"#);
    let shipped = |extension, tool, args: Value| {
        text(&call(&workspace, SHIPPED, extension, tool, &args)).to_owned()
    };
    assert_eq!(
        shipped("word-count", "word_count", json!({ "path": "a.txt" })),
        "a.txt: 2 lines, 5 words, 24 bytes"
    );
    assert_eq!(
        shipped("json-query", "json_query", json!({ "file": "a.json", "path": "a.b[1].c" })),
        "\"x\""
    );
    assert!(shipped("http-echo", "http_echo", json!({ "path": "/p" })).starts_with("status: 200"));
    let outside = shipped("word-count", "word_count", json!({ "path": "/etc/passwd" }));
    assert!(outside.contains("it is outside the workspace"), "{outside}");
}
