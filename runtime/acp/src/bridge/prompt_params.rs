//! The parameters of `session/prompt` as the agent gets them: what the client sent is borrowed, and all of it is written
//! down once.

use std::borrow::Cow;

use serde::Serialize;
use serde::Serializer;
use serde::ser::SerializeMap;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

const SESSION: &str = "sessionId";
const PROMPT: &str = "prompt";
const META: &str = "_meta";

/// What the client sent, with the session, the blocks and `_meta` that the agent gets in place of the client's.
pub(super) struct PromptParams<'a> {
    given: Option<&'a Map<String, Value>>,
    session: &'a str,
    blocks: &'a [Cow<'a, Value>],
    meta: Option<Value>,
}

impl<'a> PromptParams<'a> {
    /// `given`: what the client sent, if the prompt came from one. `startup`: the first block is the startup prompt.
    pub fn new(
        given: Option<&'a Value>,
        session: &'a str,
        blocks: &'a [Cow<'a, Value>],
        startup: bool,
    ) -> Self {
        let given = given.and_then(Value::as_object);
        // ACP has no place for it in session/new.
        let meta = startup.then(|| {
            let known = given.and_then(|given| given.get(META)).filter(|meta| meta.is_object());
            let mut meta = known.cloned().unwrap_or_else(|| json!({}));
            meta["tenon"] = json!({ "startupPrompt": "first block" });
            meta
        });
        Self { given, session, blocks, meta }
    }

    fn write<M: SerializeMap>(
        &self,
        map: &mut M,
        name: &str,
        given: Option<&Value>,
    ) -> Result<(), M::Error> {
        match (name, &self.meta, given) {
            (SESSION, ..) => map.serialize_entry(name, self.session),
            (PROMPT, ..) => map.serialize_entry(name, self.blocks),
            (META, Some(meta), _) => map.serialize_entry(name, meta),
            (_, _, Some(value)) => map.serialize_entry(name, value),
            (_, _, None) => Ok(()),
        }
    }
}

impl Serialize for PromptParams<'_> {
    /// Every field of the client's stays in its place.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.given.into_iter().flatten() {
            self.write(&mut map, name, Some(value))?;
        }
        for name in [SESSION, PROMPT, META] {
            if self.given.is_none_or(|given| !given.contains_key(name)) {
                self.write(&mut map, name, None)?;
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(given: Option<&Value>, startup: bool) -> String {
        let block = json!({ "type": "text", "text": "hi" });
        let blocks = [Cow::Borrowed(&block)];
        serde_json::to_string(&PromptParams::new(given, "native", &blocks, startup)).unwrap()
    }

    #[test]
    fn what_the_client_sent_stays_in_its_place() {
        let given = json!({
            "x": 1,
            "sessionId": "ours",
            "prompt": [{ "type": "text", "text": "before the hooks" }],
            "_meta": { "sessionId": "ours" },
            "messageId": "m",
        });
        let expected = r#"{"x":1,"sessionId":"native","prompt":[{"type":"text","text":"hi"}],"_meta":{"sessionId":"ours"},"messageId":"m"}"#;
        assert_eq!(text(Some(&given), false), expected);
    }

    #[test]
    fn a_prompt_of_nobodys_client_has_a_session_and_blocks() {
        let expected = r#"{"sessionId":"native","prompt":[{"type":"text","text":"hi"}]}"#;
        assert_eq!(text(None, false), expected);
        assert_eq!(text(Some(&json!("odd")), false), expected);
    }

    #[test]
    fn the_startup_prompt_is_named_beside_what_the_client_says() {
        let meta = |given: Option<&Value>| {
            let params: Value = serde_json::from_str(&text(given, true)).unwrap();
            params["_meta"].clone()
        };
        let startup = json!({ "startupPrompt": "first block" });
        assert_eq!(meta(None), json!({ "tenon": startup }));
        assert_eq!(meta(Some(&json!({ "_meta": "odd" }))), json!({ "tenon": startup }));
        let known = json!({ "_meta": { "trace": 1 } });
        assert_eq!(meta(Some(&known)), json!({ "trace": 1, "tenon": startup }));
    }
}
