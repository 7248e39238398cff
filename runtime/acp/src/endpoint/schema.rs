//! The schemas of tools' arguments, as MCP wants them.

use rmcp::model::JsonObject;
use serde_json::Value;
use serde_json::json;

/// The schema of a tool's arguments, which are always an object with named fields.
pub(super) fn schema(declared: Option<&Value>) -> JsonObject {
    let mut schema = match declared {
        Some(Value::Object(schema)) if describes_object(schema) => schema.clone(),
        _ => JsonObject::new(),
    };
    schema.insert("type".to_owned(), "object".into());
    if !schema.get("properties").is_some_and(Value::is_object) {
        schema.insert("properties".to_owned(), json!({}));
    }
    schema
}

fn describes_object(schema: &JsonObject) -> bool {
    match schema.get("type") {
        None => true,
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(kind) => kind == "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_describes_an_object() {
        let plain = json!({ "type": "object", "properties": {} });
        let made = |declared: Value| Value::Object(schema(Some(&declared)));
        assert_eq!(Value::Object(schema(None)), plain);
        for odd in [json!(null), json!(true), json!("text"), json!({ "type": "string" })] {
            assert_eq!(made(odd), plain);
        }
        let kept = json!({ "type": "object", "properties": { "a": {} }, "required": ["a"] });
        assert_eq!(made(kept.clone()), kept);
        let several = made(json!({ "type": ["object", "null"], "additionalProperties": false }));
        assert_eq!(several["type"], "object");
        assert_eq!(several["additionalProperties"], false);
        assert_eq!(made(json!({ "properties": null })), plain);
    }
}
