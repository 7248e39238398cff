//! The agent's own tools in the words that extensions know: Copilot's names and argument shapes. A guard that
//! was written for `bash {command}` guards every agent's shell.

mod places;
#[cfg(test)]
mod tests;

use serde_json::Map;
use serde_json::Value;
use serde_json::json;
use tenon_host::session::AgentTool;
use tenon_host::session::McpTool;
use tenon_protocol::json::Json;
use tenon_protocol::permission::AgentAction;
use tenon_protocol::permission::AgentRequest;

pub use self::places::place;
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

/// A question about a tool of the agent.
pub fn permission_request(tool: &AgentTool, title: Option<&str>) -> AgentRequest {
    let args = &tool.args;
    let text = |name: &str| args[name].as_str().unwrap_or_default().to_owned();
    let intention = args["description"].as_str().or(title).unwrap_or_default().to_owned();
    let action = match (&*tool.name, &tool.mcp) {
        (_, Some(mcp)) => AgentAction::Mcp {
            server_name: mcp.server.clone(),
            tool_name: mcp.tool.clone(),
            tool_title: title.unwrap_or(&mcp.tool).to_owned(),
            read_only: false,
            args: args.into(),
        },
        ("bash", _) => {
            let command = text("command");
            AgentAction::Shell {
                has_write_file_redirection: command.contains('>'),
                full_command_text: command,
                intention,
                possible_paths: Vec::new(),
            }
        }
        ("create" | "edit", _) => AgentAction::Write {
            file_name: text("path"),
            intention,
            diff: diff(args),
            new_file_contents: args.get("file_text").map(Json::from),
        },
        ("view" | "grep" | "glob", _) => AgentAction::Read { path: place(tool), intention },
        ("web_fetch", _) => AgentAction::Url { url: text("url"), intention },
        (name, _) => AgentAction::CustomTool {
            tool_name: name.to_owned(),
            tool_description: intention,
            args: args.into(),
        },
    };
    AgentRequest::new(action, &tool.id)
}

/// Makes a question about the first of several tools one about all of them.
pub fn ask_about_all<'a>(request: &mut AgentRequest, tools: impl Iterator<Item = &'a AgentTool>) {
    request.file_names = Some(tools.map(place).collect());
    if let AgentAction::Read { path, .. } = &mut request.action {
        // Whoever looks at one path only must not take it for all.
        path.clear();
    }
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
    named.or(meta["toolName"].as_str())
}

/// The tool's name in the id of the call, `glob__glob_1794839940091_0`. Gemini makes such ids, and tells no
/// input; agents that tell it may pass on an id that a model has written.
fn name_in_id(call: &Value) -> Option<&str> {
    let id = call["toolCallId"].as_str().filter(|_| call["rawInput"].is_null())?;
    let (name, rest) = id.split_once("__")?;
    (!name.is_empty() && rest.starts_with(name)).then_some(name)
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
    let named = given_name(call).or_else(|| name_in_id(call));
    named.or_else(|| titles(call).find(is_name)).map(str::to_owned)
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
    // All tools of MCP servers are of this kind where the id has the name.
    let in_id = || name_in_id(call).filter(|_| call["kind"] == "other");
    if let Some(name) = given_name(call).or_else(in_id) {
        // Also a tool that has gone in the meantime; calling it says so.
        let certain = name.starts_with(&format!("mcp__{SERVER_NAME}__"));
        return mcp_name(name, &|tool| certain || ours(tool));
    }
    if kind_of(call) != "other" || raw.get("command").is_some() {
        return None;
    }
    let (server, tool) = titles(call).next().and_then(|title| mcp_name(title, ours))?;
    // Gemini has the name before every id, and shows an argument as the title if that is called `command`.
    let id = call["toolCallId"].as_str().filter(|id| raw.is_null() && id.contains("__"));
    let fits = id.is_none_or(|id| id.starts_with(&format!("mcp_{server}_{tool}__")));
    fits.then_some((server, tool))
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
        "read" => reads(call, &lower, title),
        "search" => {
            let glob = lower.contains("glob") || lower.contains("list");
            let name = if glob { "glob" } else { "grep" };
            searches(name, raw, title, places::files_in(raw))
        }
        "fetch" if lower.contains("search") => {
            let query = first(raw, &["query", "q"]).unwrap_or_else(|| title.into());
            word("web_search", json!({ "query": query }))
        }
        "fetch" => word("web_fetch", json!({ "url": address(raw, title) })),
        "delete" | "move" => {
            let args = raw.as_object().cloned().unwrap_or_default();
            each(kind_of(call), args, places::files_of(call))
        }
        _ => {
            let args = if raw.is_object() { raw.clone() } else { json!({}) };
            // Reading may be permitted in advance, so only the kinds above say that something reads.
            let reads = |name: &str| ["view", "grep", "glob"].contains(&name);
            let names = [native, kind_of(call), "other"];
            word(names.into_iter().find(|name| !reads(name)).unwrap_or_default(), args)
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

/// The same for each of the files.
fn each(name: &str, mut args: Map<String, Value>, files: Vec<Value>) -> Vec<(String, Value)> {
    if files.is_empty() {
        args.retain(|name, value| name != "path" || !value.is_null());
        return vec![(name.to_owned(), args.into())];
    }
    let of = |file: Value| {
        let mut args = args.clone();
        args.insert("path".into(), file);
        (name.to_owned(), args.into())
    };
    files.into_iter().map(of).collect()
}

/// `view {path}`, one for each file.
fn reads(call: &Value, native: &str, title: &str) -> Vec<(String, Value)> {
    let raw = &call["rawInput"];
    let files = places::files_of(call);
    // Some agents call searching reading; but a tool that reads does not search because it is given a pattern.
    if raw["pattern"].is_string() && (files.is_empty() || places::has_only_path(raw)) {
        let glob = native.contains("glob") || title.starts_with("Finding files");
        return searches(if glob { "glob" } else { "grep" }, raw, title, files);
    }
    let mut args = without_path();
    if let (Some(from), Some(count)) = (raw["offset"].as_u64(), raw["limit"].as_u64()) {
        let to = from.saturating_add(count.saturating_sub(1));
        args.insert("view_range".into(), json!([from, to]));
    }
    each("view", args, files)
}

/// Arguments in which the path, once it is there, is the first.
fn without_path() -> Map<String, Value> {
    Map::from_iter([("path".to_owned(), Value::Null)])
}

/// `create {path, file_text}` and `edit {path, old_str, new_str}`, one for each file.
fn edits(call: &Value) -> Vec<(String, Value)> {
    let raw = &call["rawInput"];
    let diffs = places::diffs(call);
    let files = places::files_of(call);
    if diffs.len() <= 1 {
        let mut args = without_path();
        let old = first(raw, &["old_str", "old_string", "oldString", "oldText", "old"]);
        if let Some(old) = old {
            args.insert("old_str".into(), old);
            let new = first(raw, &["new_str", "new_string", "newString", "newText", "new"]);
            insert(&mut args, "new_str", new);
            return each("edit", args, files);
        }
        if let Some(text) = first(raw, &["file_text", "content", "text"]) {
            args.insert("file_text".into(), text);
            return each("create", args, files);
        }
    }
    let mut told: Vec<_> = diffs.into_iter().map(of_diff).collect();
    // A file that is moved away has no diff.
    let is_told = |file: &Value| told.iter().any(|(_, args)| args["path"] == *file);
    let others: Vec<_> = files.into_iter().filter(|file| !is_told(file)).collect();
    if told.is_empty() || !others.is_empty() {
        told.extend(each("edit", without_path(), others));
    }
    told
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

/// `grep` or `glob`, one for each place.
fn searches(name: &str, raw: &Value, title: &str, files: Vec<Value>) -> Vec<(String, Value)> {
    let mut args = raw.as_object().cloned().unwrap_or_default();
    let pattern = first(raw, &places::PATTERN_NAMES).unwrap_or_else(|| title.into());
    args.insert("pattern".into(), pattern);
    let all = files.into_iter().chain(places::folders_in(raw)).collect();
    each(name, args, places::distinct(all))
}

fn address(raw: &Value, title: &str) -> Value {
    let is_address = |word: &&str| word.starts_with("http://") || word.starts_with("https://");
    let in_text = |text: &str| text.split_whitespace().find(is_address).map(Value::from);
    let given = first(raw, &["url", "uri"]);
    let given = given.or_else(|| in_text(raw["prompt"].as_str().unwrap_or_default()));
    given.or_else(|| in_text(title)).unwrap_or_else(|| title.into())
}

fn first(raw: &Value, names: &[&str]) -> Option<Value> {
    names.iter().find_map(|name| raw.get(name).filter(|value| !value.is_null())).cloned()
}

fn insert(args: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        args.insert(name.to_owned(), value);
    }
}
