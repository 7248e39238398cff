//! A JSON value that is kept by several owners and whose text is made once.

use std::fmt;
use std::sync::Arc;
use std::sync::OnceLock;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON value. A clone shares it, and serialising it copies its text instead of walking it again.
#[derive(Clone)]
pub struct Json(Arc<Shared>);

struct Shared {
    value: Value,
    text: OnceLock<Box<RawValue>>,
}

impl Json {
    /// The value.
    pub fn value(&self) -> &Value {
        &self.0.value
    }

    /// Its text, made when it is first asked for.
    pub fn text(&self) -> &RawValue {
        self.0.text.get_or_init(|| {
            // A JSON value always has a JSON text.
            serde_json::value::to_raw_value(&self.0.value)
                .unwrap_or_else(|_| RawValue::NULL.to_owned())
        })
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self(Arc::new(Shared { value, text: OnceLock::new() }))
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        value.clone().into()
    }
}

impl Default for Json {
    fn default() -> Self {
        Value::Null.into()
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.value == other.0.value
    }
}

impl Eq for Json {}

impl PartialEq<Value> for Json {
    fn eq(&self, other: &Value) -> bool {
        self.0.value == *other
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Json({})", self.0.value)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Holder {
        held: Json,
    }

    #[test]
    fn the_text_is_made_once_and_stands_wherever_the_value_is_written() {
        let value = json!({ "b": [1, 2.5, null], "a": "\u{e9}\n" });
        let json = Json::from(value.clone());
        let clone = json.clone();
        assert!(std::ptr::eq(json.text(), clone.text()));
        assert_eq!(json.text().get(), value.to_string());
        let written = serde_json::to_string(&Holder { held: clone }).unwrap();
        assert_eq!(written, format!(r#"{{"held":{value}}}"#));
        assert_eq!(serde_json::to_value(Holder { held: json }).unwrap()["held"], value);
    }

    #[test]
    fn what_is_read_equals_what_was_written() {
        let text = r#"{"held":{"z":1,"a":[true]}}"#;
        let holder: Holder = serde_json::from_str(text).unwrap();
        assert_eq!(holder.held, json!({ "a": [true], "z": 1 }));
        assert_eq!(holder.held, Json::from(&json!({ "z": 1, "a": [true] })));
        assert_eq!(serde_json::to_string(&holder).unwrap(), text);
    }
}
