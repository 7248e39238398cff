//! Calls as agents tell them, and what is made of them.

use super::*;

fn ours(name: &str) -> bool {
    name == "echo"
}

fn foreign(call: Value) -> Vec<(String, Value)> {
    match recognise(&call, &ours) {
        Recognised::Foreign(tools) => tools.into_iter().map(|it| (it.name, it.args)).collect(),
        Recognised::Ours { tool, .. } => panic!("{tool} is taken for ours"),
    }
}

fn is_ours(call: Value) -> Option<Value> {
    match recognise(&call, &ours) {
        Recognised::Ours { tool, args } => {
            assert_eq!(tool, "echo");
            args
        }
        Recognised::Foreign(tools) => panic!("{tools:?} is taken for the agent's"),
    }
}

#[test]
fn our_tools_are_recognised_however_the_agent_names_them() {
    let args = json!({ "text": "x" });
    for name in ["mcp__tenon__echo", "tenon_echo", "mcp_tenon_echo", "tenon-echo", "mcp.tenon.echo"]
    {
        assert_eq!(
            is_ours(json!({ "title": name, "rawInput": args })),
            Some(args.clone()),
            "{name}"
        );
    }
    assert_eq!(
        is_ours(json!({ "title": "Echo", "name": "mcp__tenon__echo", "rawInput": {} })),
        None
    );
    assert_eq!(is_ours(json!({ "title": "echo (tenon MCP Server)" })), None);
    let gemini = json!({
        "toolCallId": "mcp_tenon_echo__mcp_tenon_echo_17_0",
        "title": "echo (tenon MCP Server)",
        "kind": "other",
        "content": [{ "type": "content", "content": { "type": "text", "text": "{\"text\":\"x\"}" } }],
    });
    assert_eq!(is_ours(gemini.clone()), Some(args.clone()));
    // It shows an argument as the title if that is called `command`.
    let mut command = gemini;
    command["title"] = "ls".into();
    assert_eq!(is_ours(command.clone()), Some(args.clone()));
    command["toolCallId"] = "mcp_tenon_echo__17".into();
    command["title"] = "echo (tenon MCP Server)".into();
    assert_eq!(is_ours(command), Some(args.clone()));
    let qwen = json!({ "title": "{\"text\":\"x\"}", "rawInput": args, "_meta": { "toolName": "mcp__tenon__echo" } });
    assert_eq!(is_ours(qwen), Some(args.clone()));
    let copilot = json!({ "firstTitle": "tenon-echo", "title": "echo", "rawInput": args });
    assert_eq!(is_ours(copilot), Some(args.clone()));
    let codex = json!({ "server": "tenon", "tool": "echo", "arguments": args });
    let codex = json!({
        "firstTitle": "mcp.tenon.echo",
        "title": "mcp.tenon.echo",
        "kind": "execute",
        "rawInput": codex,
        "_meta": { "is_mcp_tool_call": true },
    });
    assert_eq!(is_ours(codex), Some(args));
}

#[test]
fn what_a_model_writes_makes_nothing_ours() {
    let shells = [
        json!({ "kind": "execute", "title": "mcp__tenon__echo", "rawInput": { "command": "mcp__tenon__echo" } }),
        json!({ "kind": "execute", "title": "tenon_echo" }),
        json!({ "kind": "execute", "title": "echo (tenon MCP Server)", "name": "Bash" }),
        json!({ "title": "tenon-echo", "rawInput": { "command": "rm -rf /" } }),
        json!({ "kind": "execute", "title": "ls", "rawInput": { "server": "tenon", "tool": "echo", "command": "ls" } }),
        json!({ "name": "files_call", "title": "mcp__tenon__echo" }),
        json!({ "kind": "other", "firstTitle": "write", "title": "tenon_echo" }),
        json!({ "name": "mcp__tenon-docs__echo" }),
        json!({ "name": "mcp_tenon_docs_echo" }),
        json!({ "toolCallId": "tenon_echo__tenon_echo.bash:0", "kind": "execute", "title": "bash", "rawInput": { "command": "ls" } }),
        json!({ "toolCallId": "tenon_echo__tenon_echo:0", "kind": "execute", "title": "ls" }),
        json!({ "toolCallId": "tenon_echo__tenon_echo:0", "kind": "other", "title": "write", "rawInput": {} }),
        json!({ "toolCallId": "mcp_x_run__mcp_x_run_17_0", "kind": "other", "title": "echo (tenon MCP Server)" }),
        json!({ "toolCallId": "mcp_x_run__17", "kind": "other", "title": "echo (tenon MCP Server)" }),
    ];
    for call in shells {
        let recognised = recognise(&call, &ours);
        assert!(matches!(recognised, Recognised::Foreign(_)), "{call} is taken for ours");
    }
}

#[test]
fn what_a_model_writes_names_no_tool() {
    let fetch = json!({ "toolCallId": "search__search:0", "kind": "fetch", "title": "webfetch", "rawInput": { "url": "https://x.y/" } });
    assert_eq!(foreign(fetch), [("web_fetch".to_owned(), json!({ "url": "https://x.y/" }))]);
    let gemini = json!({ "toolCallId": "glob__glob_17_0", "kind": "search", "title": "'*.rs'" });
    assert_eq!(foreign(gemini), [("glob".to_owned(), json!({ "pattern": "'*.rs'" }))]);
}

#[test]
fn only_the_kinds_of_the_protocol_say_that_something_reads() {
    for kind in ["view", "grep", "glob", "other", "think"] {
        let call = json!({ "kind": kind, "name": "view", "rawInput": { "path": "/a" } });
        let unnamed = json!({ "kind": kind, "rawInput": { "path": "/a" } });
        for call in [call, unnamed] {
            let name = foreign(call)[0].0.clone();
            assert!(["other", "think"].contains(&&*name), "{kind}: {name}");
        }
    }
}

#[test]
fn the_tool_of_another_server_is_told_with_its_server() {
    let call = json!({ "toolCallId": "1", "title": "mcp__files__read", "rawInput": { "a": 1 } });
    let Recognised::Foreign(tools) = recognise(&call, &ours) else { panic!("not ours") };
    assert_eq!(tools[0].name, "files-read");
    assert_eq!(tools[0].mcp.as_ref().unwrap().server, "files");
}

#[test]
fn every_shell_is_bash() {
    let bash = |command: &str| vec![("bash".to_owned(), json!({ "command": command }))];
    let call =
        |title: &str, raw: Value| json!({ "title": title, "kind": "execute", "rawInput": raw });
    assert_eq!(foreign(call("ls", json!({ "command": "ls", "cwd": "/x" }))), bash("ls"));
    assert_eq!(foreign(call("Terminal", json!({ "cmd": "ls -l" }))), bash("ls -l"));
    assert_eq!(foreign(call("x", json!({ "command": ["echo", "a b"] }))), bash("echo 'a b'"));
    assert_eq!(foreign(call("rm -rf x", Value::Null)), bash("rm -rf x"));
    let mut copilot = call("say hi", json!({ "command": "echo hi", "commands": ["echo hi"] }));
    copilot["firstTitle"] = "say hi".into();
    assert_eq!(foreign(copilot), bash("echo hi"));
}

#[test]
fn writes_and_edits_have_the_shapes_of_create_and_edit() {
    let write = json!({ "kind": "edit", "rawInput": { "file_path": "/a", "content": "x" } });
    assert_eq!(foreign(write), [("create".to_owned(), json!({ "path": "/a", "file_text": "x" }))]);
    let edit = json!({ "kind": "edit", "rawInput": { "filePath": "/a", "oldString": "x", "newString": "y" } });
    let edited = ("edit".to_owned(), json!({ "path": "/a", "old_str": "x", "new_str": "y" }));
    assert_eq!(foreign(edit), [edited]);
}

#[test]
fn a_patch_of_two_files_is_two_edits() {
    let call = json!({ "toolCallId": "p", "kind": "edit", "title": "Editing files", "content": [
        { "type": "diff", "path": "/a", "oldText": "1", "newText": "2" },
        { "type": "diff", "path": "/b", "oldText": null, "newText": "3" },
    ]});
    let Recognised::Foreign(tools) = recognise(&call, &ours) else { panic!("not ours") };
    let told: Vec<_> =
        tools.iter().map(|it| (&*it.id, &*it.name, it.args["path"].as_str())).collect();
    assert_eq!(told, [("p", "edit", Some("/a")), ("p#2", "create", Some("/b"))]);
}

#[test]
fn reads_searches_and_fetches_are_told_alike() {
    let read = json!({ "kind": "read", "rawInput": { "absolute_path": "/a" } });
    assert_eq!(foreign(read), [("view".to_owned(), json!({ "path": "/a" }))]);
    let place = json!({ "kind": "read", "title": "Read /b", "locations": [{ "path": "/b" }] });
    assert_eq!(foreign(place), [("view".to_owned(), json!({ "path": "/b" }))]);
    let glob = json!({ "kind": "search", "title": "glob", "rawInput": { "pattern": "*.rs" } });
    assert_eq!(foreign(glob), [("glob".to_owned(), json!({ "pattern": "*.rs" }))]);
    let fetch = json!({ "kind": "fetch", "title": "Fetch https://x.y/", "rawInput": {} });
    assert_eq!(foreign(fetch), [("web_fetch".to_owned(), json!({ "url": "https://x.y/" }))]);
}

/// Names and paths of what is told.
fn told(call: Value) -> Vec<(String, String)> {
    let text = |args: Value| args["path"].as_str().unwrap_or("none").to_owned();
    foreign(call).into_iter().map(|(name, args)| (name, text(args))).collect()
}

fn each_of(name: &str, paths: &[&str]) -> Vec<(String, String)> {
    paths.iter().map(|path| (name.to_owned(), (*path).to_owned())).collect()
}

#[test]
fn no_argument_hides_the_file_that_is_read() {
    let read = |raw: Value| told(json!({ "kind": "read", "title": "Read", "rawInput": raw }));
    let both = read(json!({ "file_path": "/etc/passwd", "path": "README.md" }));
    assert_eq!(both, each_of("view", &["README.md", "/etc/passwd"]));
    let none = read(json!({ "file_path": "/etc/passwd", "path": null }));
    assert_eq!(none, each_of("view", &["/etc/passwd"]));
    let pattern = read(json!({ "file_path": "/etc/passwd", "pattern": "x" }));
    assert_eq!(pattern, each_of("view", &["/etc/passwd"]));
    let search = read(json!({ "path": "src", "pattern": "x" }));
    assert_eq!(search, each_of("grep", &["src"]));
    let search = json!({ "path": "src", "file_path": "/etc", "dir_path": "/x", "query": "x" });
    let search = json!({ "kind": "search", "rawInput": search });
    assert_eq!(told(search), each_of("grep", &["src", "/etc", "/x"]));
}

#[test]
fn no_argument_hides_the_file_that_is_changed() {
    let change = |kind: &str, raw: Value| foreign(json!({ "kind": kind, "rawInput": raw }));
    let raw = json!({ "path": "a", "file_path": ".env", "old_string": "x", "new_string": "y" });
    let args = |path: &str| json!({ "path": path, "old_str": "x", "new_str": "y" });
    let edit = |path: &str| ("edit".to_owned(), args(path));
    assert_eq!(change("edit", raw), [edit("a"), edit(".env")]);
    let raw = json!({ "path": "a", "file_path": ".env" });
    let delete = |path: &str| ("delete".to_owned(), json!({ "path": path, "file_path": ".env" }));
    assert_eq!(change("delete", raw), [delete("a"), delete(".env")]);
    let moved = json!({
        "kind": "edit",
        "rawInput": { "patchText": "*** Begin Patch", "filepath": "a, .env" },
        "content": [
            { "type": "diff", "path": "/w/a", "oldText": "1", "newText": "2" },
            { "type": "diff", "path": "/w/b", "oldText": "1", "newText": "2" },
        ],
        "locations": [{ "path": "/w/a" }, { "path": "/w/.env" }, { "path": "/w/b" }],
    });
    assert_eq!(told(moved), each_of("edit", &["/w/a", "/w/b", "/w/.env"]));
}

#[test]
fn a_question_about_several_files_is_about_all() {
    let ask = |call: Value| {
        let Recognised::Foreign(tools) = recognise(&call, &ours) else { panic!("not ours") };
        let mut request = permission_request(&tools[0], None);
        ask_about_all(&mut request, tools.iter());
        serde_json::to_value(request).unwrap()
    };
    let raw = json!({ "file_path": "/etc/passwd", "path": "README.md" });
    let read = ask(json!({ "kind": "read", "rawInput": raw }));
    assert_eq!(read["path"], "");
    assert_eq!(read["fileNames"], json!(["README.md", "/etc/passwd"]));
    let write = ask(json!({ "kind": "edit", "rawInput": raw }));
    assert_eq!(write["fileName"], "README.md");
    assert_eq!(write["fileNames"], json!(["README.md", "/etc/passwd"]));
}

#[test]
fn the_native_name_and_input_travel_along() {
    let call = json!({ "name": "Bash", "title": "ls", "kind": "execute", "rawInput": { "command": "ls" } });
    let Recognised::Foreign(tools) = recognise(&call, &ours) else { panic!("not ours") };
    assert_eq!(tools[0].native, Some(("Bash".to_owned(), json!({ "command": "ls" }))));
}
