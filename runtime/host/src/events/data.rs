//! What there is to know of an event: a value, or a text that is read only if somebody looks into it.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;

use serde::Serialize;
use serde::Serializer;
use serde_json::Map;
use serde_json::Value;
use serde_json::value::RawValue;

/// The data of an event, to be looked at like the [`Value`] that they are.
#[derive(Clone)]
pub struct EventData(Kept);

#[derive(Clone)]
enum Kept {
    Value(Value),
    /// Most events are only passed on, as text.
    Text {
        text: Box<RawValue>,
        read: OnceLock<Value>,
    },
}

impl EventData {
    /// Writes data down, once for everybody. For what is long: making a [`Value`] of it would copy it.
    pub fn written(data: &impl Serialize) -> Self {
        // Plain data always has a JSON text.
        let text = serde_json::value::to_raw_value(data);
        let text = text.unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self(Kept::Text { text, read: OnceLock::new() })
    }

    /// The JSON text, if the data are kept as one.
    pub fn text(&self) -> Option<&str> {
        match &self.0 {
            Kept::Value(_) => None,
            Kept::Text { text, .. } => Some(text.get()),
        }
    }

    /// Whether the data are at hand as a value. Those that are not are read as a whole by whoever looks into them.
    pub fn is_read(&self) -> bool {
        match &self.0 {
            Kept::Value(_) => true,
            Kept::Text { read, .. } => read.get().is_some(),
        }
    }

    /// An object with some of the fields. The others, which may be long, are not read.
    pub fn only(&self, names: &[&str]) -> Value {
        let fields: Map<String, Value> = match &self.0 {
            Kept::Value(value) => {
                let pick = |name: &&str| Some(((*name).to_owned(), value.get(name)?.clone()));
                names.iter().filter_map(pick).collect()
            }
            Kept::Text { text, .. } => {
                // What is no object has no fields.
                let all: HashMap<String, &RawValue> =
                    serde_json::from_str(text.get()).unwrap_or_default();
                let read = |name: &&str| serde_json::from_str::<Value>(all.get(*name)?.get()).ok();
                let pick = |name: &&str| Some(((*name).to_owned(), read(name)?));
                names.iter().filter_map(pick).collect()
            }
        };
        fields.into()
    }

    /// The data as a value.
    pub fn value(&self) -> &Value {
        match &self.0 {
            Kept::Value(value) => value,
            // What was written here can be read again.
            Kept::Text { text, read } => {
                read.get_or_init(|| serde_json::from_str(text.get()).unwrap_or_default())
            }
        }
    }
}

impl From<Value> for EventData {
    fn from(value: Value) -> Self {
        Self(Kept::Value(value))
    }
}

impl Deref for EventData {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.value()
    }
}

impl PartialEq<Value> for EventData {
    fn eq(&self, other: &Value) -> bool {
        self.value() == other
    }
}

impl fmt::Debug for EventData {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(formatter)
    }
}

impl Serialize for EventData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Kept::Value(value) => value.serialize(serializer),
            Kept::Text { text, .. } => text.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn written_data_are_passed_on_without_being_read() {
        let value = json!({ "b": [1, null], "a": "\u{e9}\n" });
        let data = EventData::written(&value);
        assert_eq!(serde_json::to_string(&data).unwrap(), value.to_string());
        assert!(!data.is_read());
        assert_eq!(data["b"][0], 1);
        assert!(data.is_read() && data == value);
    }

    #[test]
    fn some_fields_are_looked_at_without_reading_the_others() {
        let value = json!({ "long": [1, 2], "short": { "a": "\u{e9}" }, "flag": true });
        let written = EventData::written(&value);
        let names = ["flag", "short", "none"];
        let expected = json!({ "flag": true, "short": { "a": "\u{e9}" } });
        assert_eq!(written.only(&names), expected);
        assert!(!written.is_read());
        assert_eq!(EventData::from(value).only(&names), expected);
        assert_eq!(EventData::written(&[1]).only(&names), json!({}));
        assert_eq!(EventData::from(json!([1])).only(&names), json!({}));
    }

    #[test]
    fn a_value_and_its_text_are_the_same_data() {
        let value = json!({ "z": 1.5, "a": { "b": true } });
        let (kept, written) = (EventData::from(value.clone()), EventData::written(&value));
        assert_eq!(kept.value(), written.value());
        let text = |data: &EventData| serde_json::to_string(data).unwrap();
        assert_eq!(text(&kept), text(&written));
    }
}
