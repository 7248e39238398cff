//! Two tools that never change, for agents that do not list the tools again: one says which tools there are now,
//! the other calls one of them.

use serde_json::Map;
use serde_json::Value;
use serde_json::json;
use tenon_host::session::ToolListing;
use tenon_host::tool::ToolDeclaration;

use super::schema::schema;

/// Says which tools extensions have now.
pub const LIST: &str = "extension_tools";

/// Calls one of them.
pub const CALL: &str = "call_extension_tool";

/// What a call of an agent means.
#[derive(Debug, PartialEq)]
pub(super) enum Route {
    /// It wants to know which tools there are.
    List,
    /// It wants this tool with these arguments.
    Call(String, Value),
}

/// The two tools, as the agent is told of them.
pub(super) fn declarations() -> [ToolDeclaration; 2] {
    let declare = |name: &str, description: &str, parameters: Value| ToolDeclaration {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: Some(parameters),
        rest: Map::new(),
    };
    [
        declare(
            LIST,
            "Lists the tools that extensions offer at this moment, each with its description and the JSON \
             Schema of its arguments. Call it after extensions_reload: tools that are new or changed may \
             not be in your own list, and can be called with call_extension_tool.",
            json!({ "type": "object", "properties": {} }),
        ),
        declare(
            CALL,
            "Calls a tool of an extension by its name, also one that is not in your own list of tools. \
             extension_tools says which there are and what arguments they take.",
            json!({
                "type": "object",
                "properties": {
                    "name": { "type": "string", "description": "The tool, as extension_tools lists it" },
                    "arguments": { "type": "object", "description": "Its arguments" },
                },
                "required": ["name"],
            }),
        ),
    ]
}

/// What a call means; an error if it is one of the two and makes no sense.
pub(super) fn route(name: &str, mut args: Value) -> Result<Route, String> {
    match name {
        LIST => Ok(Route::List),
        CALL => {
            let Some(tool) = args["name"].as_str().map(str::to_owned) else {
                return Err(format!("{CALL} needs the \"name\" of a tool; {LIST} lists them"));
            };
            let given = ["arguments", "args"].into_iter().find_map(|field| {
                let given = args.get_mut(field)?.take();
                (!given.is_null()).then_some(given)
            });
            Ok(Route::Call(tool, arguments(given)?))
        }
        _ => Ok(Route::Call(name.to_owned(), args)),
    }
}

/// Arguments as an object; models like to write one as a text.
fn arguments(given: Option<Value>) -> Result<Value, String> {
    let given = match given {
        None => return Ok(json!({})),
        Some(Value::String(text)) if text.trim().is_empty() => return Ok(json!({})),
        Some(Value::String(text)) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        Some(given) => given,
    };
    if given.is_object() {
        Ok(given)
    } else {
        Err(format!("the \"arguments\" of {CALL} must be an object, not {given}"))
    }
}

/// The tools there are now, for a model to read.
pub(super) fn describe(tools: &[ToolListing]) -> String {
    let describe = |listing: &ToolListing| {
        json!({
            "name": listing.tool.name,
            "description": listing.tool.description,
            "inputSchema": schema(listing.tool.parameters.as_ref()),
        })
    };
    let all = Value::Array(tools.iter().map(describe).collect());
    // Plain data always has a JSON text.
    serde_json::to_string_pretty(&all).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_routed_to_the_tool_it_names() {
        let args = json!({ "name": "echo", "arguments": { "text": "hi" } });
        let expected = Route::Call("echo".to_owned(), json!({ "text": "hi" }));
        assert_eq!(route(CALL, args), Ok(expected));
        let text = json!({ "name": "echo", "args": "{\"text\":\"hi\"}" });
        let expected = Route::Call("echo".to_owned(), json!({ "text": "hi" }));
        assert_eq!(route(CALL, text), Ok(expected));
        let nothing = Route::Call("echo".to_owned(), json!({}));
        assert_eq!(route(CALL, json!({ "name": "echo", "arguments": null })), Ok(nothing));
        assert_eq!(route(LIST, json!({})), Ok(Route::List));
    }

    #[test]
    fn other_tools_pass() {
        let expected = Route::Call("echo".to_owned(), json!({ "name": 1 }));
        assert_eq!(route("echo", json!({ "name": 1 })), Ok(expected));
    }

    #[test]
    fn nonsense_is_refused_with_what_is_missing() {
        assert!(route(CALL, json!({})).unwrap_err().contains("name"));
        assert!(route(CALL, json!({ "name": "echo", "arguments": [1] })).is_err());
        assert!(route(CALL, json!({ "name": "echo", "arguments": "not json" })).is_err());
    }

    #[test]
    fn the_list_has_what_a_model_needs_for_a_call() {
        let tool = ToolDeclaration {
            name: "echo".to_owned(),
            description: "Says it again".to_owned(),
            parameters: None,
            rest: Map::new(),
        };
        let listing = ToolListing { tool: tool.into(), extension_id: None };
        let described: Value = serde_json::from_str(&describe(&[listing])).unwrap();
        assert_eq!(described[0]["name"], "echo");
        assert_eq!(described[0]["inputSchema"], json!({ "type": "object", "properties": {} }));
    }
}
