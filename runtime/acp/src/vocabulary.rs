//! The agent's own tools in the words that extensions know: Copilot's names and argument shapes. A guard that
//! was written for `bash {command}` guards every agent's shell.

use serde_json::Map;
use serde_json::Value;
use serde_json::json;
use tenon_host::session::AgentTool;
use tenon_host::session::McpTool;

use crate::endpoint::SERVER_NAME;

/// Where the first title of a call is kept beside the last.
pub const FIRST_TITLE: &str = "firstTitle";

/// What a tool call of an agent is about.
#[derive(Debug, Clone)]
pub enum Recognised {
    /// A tool of an extension: it comes to us by MCP.
    Ours {
        /// Its name.
        tool: String,
        /// Its arguments, if they are known.
        args: Option<Value>,
    },
    /// A tool of the agent; several where one call does several things, such as a patch of two files.
    Foreign(Vec<AgentTool>),
}

/// Says what an ACP tool call is about. `call` is what is known of it so far; `ours` knows our tools.
pub fn recognise(call: &Value, ours: &dyn Fn(&str) -> bool) -> Recognised {
    let id = call["toolCallId"].as_str().unwrap_or_default();
    let raw = &call["rawInput"];
    let native = native_name(call);
    if let Some((server, tool)) = mcp_tool(call, ours) {
        let nested = raw.get("arguments").filter(|_| raw["server"].is_string());
        let args = nested.or(Some(raw)).filter(|args| is_filled(args)).cloned();
        let args = args.or_else(|| shown_args(call));
        if server == SERVER_NAME {
            return Recognised::Ours { tool, args };
        }
        return Recognised::Foreign(vec![AgentTool {
            id: id.to_owned(),
            name: format!("{server}-{tool}"),
            args: args.unwrap_or_else(|| json!({})),
            native: native.map(|name| (name, raw.clone())),
            mcp: Some(McpTool { server, tool, meta: None }),
            ..AgentTool::default()
        }]);
    }
    let kind = kind_of(call).to_owned();
    let translated = translate(call, native.as_deref().unwrap_or(&kind));
    // An agent that does not name its tool gets the name that we have for it.
    let known_as = translated.first().map(|(name, _)| name.clone());
    let native = native.or(known_as).unwrap_or(kind);
    let tools = translated.into_iter().enumerate().map(|(number, (name, args))| AgentTool {
        id: if number == 0 { id.to_owned() } else { format!("{id}#{}", number + 1) },
        name,
        args,
        native: Some((native.clone(), raw.clone())),
        ..AgentTool::default()
    });
    Recognised::Foreign(tools.collect())
}

/// Whether a permission request, as the public contract describes it, is about reading only.
pub fn is_read(request: &Value) -> bool {
    request["kind"] == "read"
}

/// A question about a tool of the agent as the public contract's `PermissionRequest`.
pub fn permission_request(tool: &AgentTool, title: Option<&str>) -> Value {
    let args = &tool.args;
    let text = |name: &str| args[name].as_str().unwrap_or_default();
    let intention = args["description"].as_str().or(title).unwrap_or_default();
    let mut request = match (&*tool.name, &tool.mcp) {
        (_, Some(mcp)) => json!({
            "kind": "mcp",
            "serverName": mcp.server,
            "toolName": mcp.tool,
            "toolTitle": title.unwrap_or(&mcp.tool),
            "readOnly": false,
            "args": args,
        }),
        ("bash", _) => json!({
            "kind": "shell",
            "fullCommandText": text("command"),
            "intention": intention,
            "possiblePaths": [],
            "hasWriteFileRedirection": text("command").contains('>'),
        }),
        ("create" | "edit", _) => json!({
            "kind": "write",
            "fileName": text("path"),
            "intention": intention,
            "diff": diff(args),
            "newFileContents": args.get("file_text"),
        }),
        ("view" | "grep" | "glob", _) => {
            let path = args["path"].as_str().or(args["pattern"].as_str()).unwrap_or_default();
            json!({ "kind": "read", "path": path, "intention": intention })
        }
        ("web_fetch", _) => json!({ "kind": "url", "url": text("url"), "intention": intention }),
        (name, _) => json!({
            "kind": "custom-tool",
            "toolName": name,
            "toolDescription": intention,
            "args": args,
        }),
    };
    request["toolCallId"] = tool.id.as_str().into();
    request
}

fn diff(args: &Value) -> String {
    let lines = |sign: char, text: &Value| {
        let text = text.as_str().unwrap_or_default();
        text.lines().map(|line| format!("{sign}{line}\n")).collect::<String>()
    };
    let new = args.get("file_text").unwrap_or(&args["new_str"]);
    format!("{}{}", lines('-', &args["old_str"]), lines('+', new))
}

fn kind_of(call: &Value) -> &str {
    call["kind"].as_str().unwrap_or("other")
}

fn is_filled(args: &Value) -> bool {
    args.as_object().is_some_and(|args| !args.is_empty())
}

/// Arguments that the agent shows instead of telling them.
fn shown_args(call: &Value) -> Option<Value> {
    let text = call["content"][0]["content"]["text"].as_str()?;
    serde_json::from_str(text).ok().filter(Value::is_object)
}

/// The titles that a call has had: the first names the tool more often than the last.
fn titles(call: &Value) -> impl Iterator<Item = &str> {
    [FIRST_TITLE, "title"].into_iter().filter_map(|name| call[name].as_str())
}

/// What the agent says that the tool is called, in a place that no model writes to.
fn given_name(call: &Value) -> Option<&str> {
    let meta = &call["_meta"];
    let named = call["name"].as_str().or(meta["claudeCode"]["toolName"].as_str());
    named.or(meta["toolName"].as_str()).or_else(|| {
        // `glob__glob_1794839940091_0`
        let (name, rest) = call["toolCallId"].as_str()?.split_once("__")?;
        (!name.is_empty() && rest.starts_with(name)).then_some(name)
    })
}

/// What the agent itself calls the tool, as far as can be told.
fn native_name(call: &Value) -> Option<String> {
    let is_name = |title: &&str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        title.len() <= 128
            && title.starts_with(|c: char| c.is_ascii_alphabetic())
            && title.chars().all(plain)
    };
    // A title that is a single word is the tool; others say what it does.
    given_name(call).or_else(|| titles(call).find(is_name)).map(str::to_owned)
}

/// The MCP server and tool of a call, in the ways in which agents say it. A call that is taken for one of our
/// tools is permitted when the agent asks, so nothing that a model can choose may decide it: commands, paths
/// and descriptions are titles too.
fn mcp_tool(call: &Value, ours: &dyn Fn(&str) -> bool) -> Option<(String, String)> {
    let raw = &call["rawInput"];
    if let (Some(server), Some(tool)) = (raw["server"].as_str(), raw["tool"].as_str())
        && call["_meta"]["is_mcp_tool_call"] == true
        && call[FIRST_TITLE] == format!("mcp.{server}.{tool}")
    {
        return Some((server.to_owned(), tool.to_owned()));
    }
    if let Some(name) = given_name(call) {
        // Also a tool that has gone in the meantime; calling it says so.
        let certain = name.starts_with(&format!("mcp__{SERVER_NAME}__"));
        return mcp_name(name, &|tool| certain || ours(tool));
    }
    if kind_of(call) != "other" || raw.get("command").is_some() {
        return None;
    }
    titles(call).next().and_then(|title| mcp_name(title, ours))
}

/// The server and the tool in an agent's name for the two.
fn mcp_name(text: &str, ours: &dyn Fn(&str) -> bool) -> Option<(String, String)> {
    // What stands before the server stands after it too: `mcp__tenon-docs__find` is of another server.
    let ways: [(&str, &[&str]); 4] = [
        ("mcp__", &["__"]),
        ("mcp.", &["."]),
        ("mcp_", &["_"]),
        ("", &["__", ".", "_", "-", "/", ":"]),
    ];
    for (prefix, separators) in ways {
        let Some(rest) = text.strip_prefix(prefix) else { continue };
        let own = rest.strip_prefix(SERVER_NAME);
        let own = own.and_then(|rest| separators.iter().find_map(|by| rest.strip_prefix(by)));
        if let Some(tool) = own.filter(|tool| ours(tool)) {
            return Some((SERVER_NAME.to_owned(), tool.to_owned()));
        }
    }
    if let Some((server, tool)) = text.strip_prefix("mcp__").and_then(|it| it.split_once("__")) {
        return (server != SERVER_NAME).then(|| (server.to_owned(), tool.to_owned()));
    }
    // "echo (tenon MCP Server)", also with arguments after it.
    let (tool, rest) = text.split_once(" (")?;
    let (server, _) = rest.split_once(" MCP Server)")?;
    (server != SERVER_NAME || ours(tool)).then(|| (server.to_owned(), tool.to_owned()))
}

/// Names and arguments in Copilot's words.
fn translate(call: &Value, native: &str) -> Vec<(String, Value)> {
    let raw = &call["rawInput"];
    let title = call["title"].as_str().unwrap_or_default();
    let lower = native.to_lowercase();
    let word = |name: &str, args: Value| vec![(name.to_owned(), args)];
    match kind_of(call) {
        "execute" => word("bash", shell(raw, title)),
        "edit" => edits(call),
        // Some agents call searching reading.
        "read" if raw["pattern"].is_string() => {
            let glob = lower.contains("glob") || title.starts_with("Finding files");
            word(if glob { "glob" } else { "grep" }, search(raw, title))
        }
        "read" => {
            let mut args = Map::new();
            insert(&mut args, "path", path_of(call));
            if let (Some(from), Some(count)) = (raw["offset"].as_u64(), raw["limit"].as_u64()) {
                args.insert("view_range".into(), json!([from, from + count.saturating_sub(1)]));
            }
            word("view", args.into())
        }
        "search" if lower.contains("glob") || lower.contains("list") => {
            word("glob", search(raw, title))
        }
        "search" => word("grep", search(raw, title)),
        "fetch" if lower.contains("search") => {
            let query = first(raw, &["query", "q"]).unwrap_or_else(|| title.into());
            word("web_search", json!({ "query": query }))
        }
        "fetch" => word("web_fetch", json!({ "url": address(raw, title) })),
        "delete" | "move" => {
            let mut args = raw.as_object().cloned().unwrap_or_default();
            insert(&mut args, "path", path_of(call));
            word(kind_of(call), args.into())
        }
        _ => {
            let args = if raw.is_object() { raw.clone() } else { json!({}) };
            // Reading may be permitted in advance, so only the kind says that something reads.
            let reads = ["view", "grep", "glob"].contains(&native);
            word(if reads { kind_of(call) } else { native }, args)
        }
    }
}

/// `bash {command}`. Without raw input, agents show the command as the title.
fn shell(raw: &Value, title: &str) -> Value {
    let command = match first(raw, &["command", "cmd", "script"]) {
        Some(Value::Array(words)) => {
            let words = words.iter().filter_map(Value::as_str);
            shell_words::join(words).into()
        }
        Some(command) => command,
        None => title.into(),
    };
    let mut args = json!({ "command": command });
    if let Some(description) = raw.get("description") {
        args["description"] = description.clone();
    }
    args
}

/// `create {path, file_text}` and `edit {path, old_str, new_str}`, one for each file.
fn edits(call: &Value) -> Vec<(String, Value)> {
    let raw = &call["rawInput"];
    let content = call["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let diffs: Vec<&Value> = content.iter().filter(|it| it["type"] == "diff").collect();
    if diffs.len() > 1 {
        return diffs.into_iter().map(of_diff).collect();
    }
    let mut args = Map::new();
    insert(&mut args, "path", path_of(call));
    let old = first(raw, &["old_str", "old_string", "oldString", "oldText", "old"]);
    if let Some(old) = old {
        args.insert("old_str".into(), old);
        let new = first(raw, &["new_str", "new_string", "newString", "newText", "new"]);
        insert(&mut args, "new_str", new);
        return vec![("edit".to_owned(), args.into())];
    }
    if let Some(text) = first(raw, &["file_text", "content", "text"]) {
        args.insert("file_text".into(), text);
        return vec![("create".to_owned(), args.into())];
    }
    match diffs.first() {
        Some(diff) => vec![of_diff(diff)],
        None => vec![("edit".to_owned(), args.into())],
    }
}

fn of_diff(diff: &Value) -> (String, Value) {
    let path = &diff["path"];
    if diff["oldText"].is_string() {
        let args = json!({ "path": path, "old_str": diff["oldText"], "new_str": diff["newText"] });
        ("edit".to_owned(), args)
    } else {
        ("create".to_owned(), json!({ "path": path, "file_text": diff["newText"] }))
    }
}

fn search(raw: &Value, title: &str) -> Value {
    let mut args = raw.as_object().cloned().unwrap_or_default();
    if !args.contains_key("pattern") {
        let pattern = first(raw, &["query", "regex", "glob"]).unwrap_or_else(|| title.into());
        args.insert("pattern".into(), pattern);
    }
    if !args.contains_key("path") {
        insert(&mut args, "path", first(raw, &["dir_path", "directory", "target_directory"]));
    }
    args.into()
}

fn address(raw: &Value, title: &str) -> Value {
    let is_address = |word: &&str| word.starts_with("http://") || word.starts_with("https://");
    let in_text = |text: &str| text.split_whitespace().find(is_address).map(Value::from);
    let given = first(raw, &["url", "uri"]);
    let given = given.or_else(|| in_text(raw["prompt"].as_str().unwrap_or_default()));
    given.or_else(|| in_text(title)).unwrap_or_else(|| title.into())
}

/// The file that a call is about.
fn path_of(call: &Value) -> Option<Value> {
    let names =
        ["path", "file_path", "filePath", "filepath", "absolute_path", "fileName", "notebook_path"];
    let from_content = || {
        let content = call["content"].as_array()?;
        content.iter().find(|it| it["type"] == "diff").map(|diff| diff["path"].clone())
    };
    first(&call["rawInput"], &names)
        .or_else(from_content)
        .or_else(|| call["locations"].get(0).map(|location| location["path"].clone()))
}

fn first(raw: &Value, names: &[&str]) -> Option<Value> {
    names.iter().find_map(|name| raw.get(name)).cloned()
}

fn insert(args: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        args.insert(name.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
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
        for name in
            ["mcp__tenon__echo", "tenon_echo", "mcp_tenon_echo", "tenon-echo", "mcp.tenon.echo"]
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
            "content": [{ "type": "content", "content": { "type": "text", "text": "{\"text\":\"x\"}" } }],
        });
        assert_eq!(is_ours(gemini), Some(args.clone()));
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
        ];
        for call in shells {
            let recognised = recognise(&call, &ours);
            assert!(matches!(recognised, Recognised::Foreign(_)), "{call} is taken for ours");
        }
    }

    #[test]
    fn the_tool_of_another_server_is_told_with_its_server() {
        let call =
            json!({ "toolCallId": "1", "title": "mcp__files__read", "rawInput": { "a": 1 } });
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
        assert_eq!(
            foreign(write),
            [("create".to_owned(), json!({ "path": "/a", "file_text": "x" }))]
        );
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

    #[test]
    fn the_native_name_and_input_travel_along() {
        let call = json!({ "name": "Bash", "title": "ls", "kind": "execute", "rawInput": { "command": "ls" } });
        let Recognised::Foreign(tools) = recognise(&call, &ours) else { panic!("not ours") };
        assert_eq!(tools[0].native, Some(("Bash".to_owned(), json!({ "command": "ls" }))));
    }
}
