//! What agents say about their tool calls, in the words that extensions know.
//!
//! A call always is about some tool; it is taken for one of ours, or for one that only reads, by nothing that a model writes;
//! a command of the shell is told as it is; what a later update leaves out is not forgotten.

#![no_main]

use std::collections::HashSet;

use arbitrary::Result;
use arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use serde_json::json;
use tenon_acp::bridge::fuzzing::learn;
use tenon_acp::bridge::fuzzing::result_of;
use tenon_acp::vocabulary::FIRST_TITLE;
use tenon_acp::vocabulary::Recognised;
use tenon_acp::vocabulary::ask_about_all;
use tenon_acp::vocabulary::is_read;
use tenon_acp::vocabulary::permission_request;
use tenon_acp::vocabulary::place;
use tenon_acp::vocabulary::recognise;
use tenon_host::session::AgentTool;

/// What agents write, as names and as values.
const WORDS: &[&str] = &[
    "toolCallId",
    "kind",
    "title",
    "name",
    "rawInput",
    "rawOutput",
    "content",
    "locations",
    "_meta",
    "status",
    "path",
    "type",
    "text",
    "diff",
    "oldText",
    "newText",
    "old_string",
    "new_string",
    "file_path",
    "filePath",
    "paths",
    "dir_path",
    "pattern",
    "query",
    "command",
    "description",
    "url",
    "prompt",
    "offset",
    "limit",
    "server",
    "tool",
    "arguments",
    "is_mcp_tool_call",
    "claudeCode",
    "toolName",
    "firstTitle",
    "completed",
    "failed",
    "in_progress",
    "execute",
    "edit",
    "read",
    "search",
    "fetch",
    "delete",
    "move",
    "think",
    "other",
    "view",
    "grep",
    "glob",
    "bash",
    "create",
    "tenon",
    "echo",
    "__",
    "_",
    ".",
    "mcp",
    "mcp__tenon__echo",
    "mcp__docs__find",
    "mcp.tenon.echo",
    "tenon-echo",
    "tenon_echo",
    "echo (tenon MCP Server)",
    "mcp_tenon_echo__1",
    "glob__glob_1_0",
    "/w/a.rs",
    "a.rs",
    "a.rs, b.rs",
    "/etc/passwd",
    "../x",
    "~/.ssh/*",
    "{/etc,src}/*",
    "https://example.org/",
    "1",
    "",
    " ",
    "output",
    "stdout",
    "web_search",
];

/// The one tool of ours.
const OURS: &str = "echo";

fuzz_target!(|data: &[u8]| {
    let Some((&kind, rest)) = data.split_first() else { return };
    if kind % 2 == 0 {
        let lines = rest.split(|byte| *byte == b'\n');
        watch(lines.filter_map(|line| serde_json::from_slice(line).ok()));
    } else {
        let u = &mut Unstructured::new(rest);
        let mut updates = Vec::new();
        while !u.is_empty() && updates.len() < 6 {
            let Ok(update) = update(u) else { break };
            updates.push(update);
        }
        watch(updates.into_iter());
    }
});

/// An update that may make sense.
fn update(u: &mut Unstructured<'_>) -> Result<Value> {
    let mut update = tenon_fuzz::object(u, WORDS)?;
    if u.ratio(3, 4)? {
        let kinds = [
            "execute", "edit", "read", "search", "fetch", "delete", "move", "other", "view",
            "think",
        ];
        update.insert("kind".to_owned(), (*u.choose(&kinds)?).into());
    }
    for name in ["rawInput", "_meta"] {
        if u.ratio(1, 2)? {
            update.insert(name.to_owned(), tenon_fuzz::object(u, WORDS)?.into());
        }
    }
    for name in ["title", "toolCallId", "name"] {
        if u.ratio(1, 3)? {
            update.insert(name.to_owned(), tenon_fuzz::text(u, WORDS)?.into());
        }
    }
    if u.ratio(1, 4)? {
        let diff = |u: &mut Unstructured<'_>| -> Result<Value> {
            let (path, old) = (tenon_fuzz::text(u, WORDS)?, u.arbitrary::<Option<&str>>()?);
            Ok(json!({ "type": "diff", "path": path, "oldText": old, "newText": "x" }))
        };
        update.insert("content".to_owned(), json!([diff(u)?, diff(u)?]));
    }
    Ok(update.into())
}

/// One call, as the agent tells of it little by little.
fn watch(updates: impl Iterator<Item = Value>) {
    let mut call = json!({});
    let mut first_title = None;
    for update in updates.take(50) {
        let before = call.clone();
        learn(&mut call, &update);
        if update.is_object() && first_title.is_none() {
            first_title = Some(&update["title"]).filter(|title| !title.is_null()).cloned();
        }
        assert_eq!(call.get(FIRST_TITLE), first_title.as_ref(), "of {update}");
        let (before, after) = (before.as_object().unwrap(), call.as_object().unwrap());
        for (name, known) in before {
            assert!(known.is_null() || !after[name].is_null(), "{name} was forgotten");
        }
        look(&call);
        for failed in [true, false] {
            let result = result_of(&call, &update, failed);
            assert_eq!(result.error.is_some(), failed);
        }
    }
}

/// What is known of a call.
fn look(call: &Value) {
    match recognise(call, &|tool| tool == OURS) {
        Recognised::Ours { tool, args } => {
            assert!(args.is_none_or(|args| args.is_object()));
            assert!(may_be_ours(call), "{call} is no call of ours");
            let (named, meta) = (format!("mcp__tenon__{tool}"), &call["_meta"]);
            let names = [&call["name"], &meta["claudeCode"]["toolName"], &meta["toolName"]];
            let is_named =
                names.iter().any(|name| **name == named) || call["rawInput"]["tool"] == tool;
            assert!(tool == OURS || is_named, "{tool} of {call}");
        }
        Recognised::Foreign(tools) => foreign(call, &tools),
    }
}

/// Whether something that no model writes says that a call may be of an MCP server.
fn may_be_ours(call: &Value) -> bool {
    let meta = &call["_meta"];
    let is_named = [&call["name"], &meta["claudeCode"]["toolName"], &meta["toolName"]]
        .iter()
        .any(|name| name.is_string());
    let kind = call["kind"].as_str().unwrap_or("other");
    meta["is_mcp_tool_call"] == true || is_named || kind == "other"
}

fn foreign(call: &Value, tools: &[AgentTool]) {
    assert!(!tools.is_empty(), "{call} is about nothing");
    let ids: HashSet<_> = tools.iter().map(|tool| &tool.id).collect();
    assert_eq!(ids.len(), tools.len());
    assert_eq!(tools[0].id, call["toolCallId"].as_str().unwrap_or_default());
    for tool in tools {
        assert!(tool.args.is_object());
        let request = permission_request(tool, call["title"].as_str());
        assert_eq!(request["toolCallId"], tool.id);
        let kind = call["kind"].as_str().unwrap_or("other");
        if is_read(&request) {
            assert!(["read", "search"].contains(&kind), "{call} is taken for reading");
            assert_eq!(request["path"], place(tool));
        }
        if kind == "execute" && tool.mcp.is_none() {
            assert_eq!((tool.name.as_str(), tools.len()), ("bash", 1));
            if let Some(command) = call["rawInput"]["command"].as_str() {
                assert_eq!(request["fullCommandText"], command);
            }
        }
        let mut all = request.clone();
        ask_about_all(&mut all, tools.iter());
        assert_eq!(all["fileNames"].as_array().map(Vec::len), Some(tools.len()));
        assert!(!is_read(&all) || all["path"] == "");
    }
}
