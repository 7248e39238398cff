//! Messages as lines and back.

use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::RpcError;

/// A message of the other side.
#[derive(Debug, PartialEq)]
pub enum Incoming {
    Request {
        /// A number or a text; the answer carries it as it is.
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    Response {
        id: Value,
        result: Result<Value, RpcError>,
    },
}

/// The parameters of a message for the other side.
#[derive(Debug)]
pub enum Params {
    /// They are written down when the message is sent; null stands for none.
    Value(Value),
    /// They are written down already, in one line.
    Text(Box<RawValue>),
}

impl Params {
    /// Writes parameters down that cannot be kept until the message is sent.
    pub fn text(params: &impl Serialize) -> Result<Self, RpcError> {
        let text = serde_json::value::to_raw_value(params);
        text.map(Self::Text).map_err(|error| RpcError::internal(error.to_string()))
    }
}

impl From<Value> for Params {
    fn from(params: Value) -> Self {
        Self::Value(params)
    }
}

/// A message for the other side.
#[derive(Debug)]
pub enum Outgoing {
    Request { id: u64, method: String, params: Params },
    Notification { method: String, params: Params },
    Response { id: Value, result: Result<Value, RpcError> },
}

/// The fields of all kinds of messages. Which there are tells the kind; others are of no interest.
#[derive(Deserialize)]
struct Fields {
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    result: Value,
    error: Option<Value>,
}

/// Reads a line, or says why it is no message.
pub fn read(line: &[u8]) -> Result<Incoming, String> {
    // Else an array would do, with the fields in their order.
    if line.first() != Some(&b'{') {
        return Err("not a JSON object".to_owned());
    }
    let fields = serde_json::from_slice(line).or_else(|error| match without_halves(line) {
        Some(line) => serde_json::from_slice(&line),
        None => Err(error),
    });
    let fields: Fields = fields.map_err(|error| error.to_string())?;
    if matches!(fields.id, Some(Value::Bool(_) | Value::Array(_) | Value::Object(_))) {
        return Err("its id is neither a number nor a text".to_owned());
    }
    match (fields.method, fields.id) {
        (Some(method), Some(id)) => Ok(Incoming::Request { id, method, params: fields.params }),
        (Some(method), None) => Ok(Incoming::Notification { method, params: fields.params }),
        (None, Some(id)) => {
            let result = fields.error.map_or(Ok(fields.result), |error| Err(read_error(error)));
            Ok(Incoming::Response { id, result })
        }
        (None, None) => match fields.error {
            Some(error) => Err(format!("an error without an id: {}", read_error(error))),
            None => Err("it has neither a method nor an id".to_owned()),
        },
    }
}

/// The request that a line answers, which [`read`] did not understand. Whatever else is in it is passed over, however deep
/// it is nested.
pub fn answered(line: &[u8]) -> Option<Value> {
    #[derive(Deserialize)]
    struct Envelope {
        id: Option<Value>,
        method: Option<serde::de::IgnoredAny>,
    }
    // See `read`.
    if line.first() != Some(&b'{') {
        return None;
    }
    let envelope: Envelope = serde_json::from_slice(line).ok()?;
    if envelope.method.is_some() { None } else { envelope.id }
}

/// The line with what is only half a character replaced; none if there is no such thing in it. JavaScript cuts
/// texts between the two halves of a character, and writes a half as an escape that is not allowed here.
fn without_halves(line: &[u8]) -> Option<Vec<u8>> {
    let unit = |at: usize| {
        let digits = line.get(at..at + 6)?.strip_prefix(br"\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut out = Vec::with_capacity(line.len());
    let (mut at, mut is_changed) = (0, false);
    while at < line.len() {
        let length = match (unit(at), unit(at + 6)) {
            _ if line[at] != b'\\' => 1,
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                out.extend_from_slice(br"\ufffd");
                is_changed = true;
                at += 6;
                continue;
            }
            // The backslash may be what is escaped.
            _ => 2,
        };
        let end = (at + length).min(line.len());
        out.extend_from_slice(&line[at..end]);
        at = end;
    }
    is_changed.then_some(out)
}

/// An error, whatever shape it has: whoever waits for the answer must get one.
fn read_error(error: Value) -> RpcError {
    let mut read = RpcError::deserialize(&error).unwrap_or_else(|_| {
        let code = error["code"].as_i64().unwrap_or(RpcError::INTERNAL);
        let message = error["message"].as_str().or(error.as_str());
        let message = message.map_or_else(|| error.to_string(), str::to_owned);
        RpcError::new(code, message)
    });
    if read.is_closed() {
        // Whoever answers is not gone.
        read.code = RpcError::INTERNAL;
    }
    read
}

impl Outgoing {
    /// Appends the message as a line.
    pub fn write(&self, buffer: &mut Vec<u8>) {
        buffer.extend_from_slice(br#"{"jsonrpc":"2.0""#);
        match self {
            Self::Request { id, method, params } => {
                write_field(buffer, "id", id);
                write_call(buffer, method, params);
            }
            Self::Notification { method, params } => write_call(buffer, method, params),
            Self::Response { id, result } => {
                write_field(buffer, "id", id);
                match result {
                    Ok(value) => write_field(buffer, "result", value),
                    Err(error) => write_field(buffer, "error", error),
                }
            }
        }
        buffer.extend_from_slice(b"}\n");
    }
}

fn write_call(buffer: &mut Vec<u8>, method: &str, params: &Params) {
    write_field(buffer, "method", method);
    match params {
        Params::Value(Value::Null) => {}
        Params::Value(params) => write_field(buffer, "params", params),
        Params::Text(text) => write_field(buffer, "params", text),
    }
}

fn write_field(buffer: &mut Vec<u8>, name: &str, value: &(impl Serialize + ?Sized)) {
    buffer.extend_from_slice(b",\"");
    buffer.extend_from_slice(name.as_bytes());
    buffer.extend_from_slice(b"\":");
    // Plain data always has a JSON text, and a vector takes every byte.
    let _ = serde_json::to_writer(buffer, value);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn half_a_character_is_replaced() {
        let line =
            br#"{"method":"m","params":["\ud83d","\ud83d\ude00","\\ud83d","\udc00x","a\ud83d\n"]}"#;
        let params = json!(["\u{fffd}", "\u{1f600}", "\\ud83d", "\u{fffd}x", "a\u{fffd}\n"]);
        assert_eq!(read(line), Ok(Incoming::Notification { method: "m".into(), params }));
        assert_eq!(without_halves(br#"{"a":"\u0041\"}"#), None);
    }

    #[test]
    fn the_request_is_known_that_an_unreadable_answer_belongs_to() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        let line = format!("{{\"jsonrpc\":\"2.0\",\"result\":{deep},\"id\":7}}");
        assert!(read(line.as_bytes()).is_err());
        assert_eq!(answered(line.as_bytes()), Some(json!(7)));
        assert_eq!(answered(br#"{"id":7,"method":"m","params":[}"#), None);
        assert_eq!(answered(br#"{"id":7,"method":"m"}"#), None);
        assert_eq!(answered(b"{"), None);
        assert_eq!(answered(b"[7]"), None);
        assert_eq!(answered(b"[7,null]"), None);
    }

    fn message(value: Value) -> Incoming {
        read(value.to_string().as_bytes()).unwrap()
    }

    fn response(value: Value) -> Result<Value, RpcError> {
        match message(value) {
            Incoming::Response { result, .. } => result,
            other => panic!("{other:?}"),
        }
    }

    fn line(message: &Outgoing) -> String {
        let mut buffer = Vec::new();
        message.write(&mut buffer);
        let text = String::from_utf8(buffer).unwrap();
        let line = text.strip_suffix('\n').unwrap();
        assert!(!line.contains('\n'), "{line}");
        line.to_owned()
    }

    #[test]
    fn the_fields_tell_the_kind_of_a_message() {
        let (method, params) = ("m".to_owned(), json!({ "b": 1, "a": [null] }));
        assert_eq!(
            message(json!({ "jsonrpc": "2.0", "id": "x", "method": "m", "params": params })),
            Incoming::Request { id: json!("x"), method: method.clone(), params: params.clone() }
        );
        assert_eq!(
            message(json!({ "method": "m", "params": params, "more": {} })),
            Incoming::Notification { method: method.clone(), params }
        );
        assert_eq!(
            message(json!({ "id": null, "method": "m" })),
            Incoming::Notification { method, params: Value::Null }
        );
        assert_eq!(
            message(json!({ "id": 7, "result": "r" })),
            Incoming::Response { id: json!(7), result: Ok(json!("r")) }
        );
    }

    #[test]
    fn an_answer_counts_whatever_is_missing_in_it() {
        assert_eq!(response(json!({ "id": 1, "result": null })), Ok(Value::Null));
        assert_eq!(response(json!({ "id": 1 })), Ok(Value::Null));
        assert_eq!(response(json!({ "id": 1, "error": null })), Ok(Value::Null));
        assert_eq!(response(json!({ "id": 1, "result": 5, "error": null })), Ok(json!(5)));
        let error = RpcError { code: 3, message: "m".into(), data: Some(json!("d")) };
        assert_eq!(response(json!({ "id": 1, "result": null, "error": error })), Err(error));
    }

    #[test]
    fn an_error_of_any_shape_is_an_error() {
        let internal = RpcError::INTERNAL;
        for (error, expected) in [
            (json!("boom"), RpcError::new(internal, "boom")),
            (json!({ "code": 5 }), RpcError::new(5, r#"{"code":5}"#)),
            (json!({ "message": "m" }), RpcError::new(internal, "m")),
            (json!({ "code": "E", "message": "m" }), RpcError::new(internal, "m")),
            (json!(false), RpcError::new(internal, "false")),
        ] {
            assert_eq!(response(json!({ "id": 1, "error": error })), Err(expected));
        }
    }

    #[test]
    fn what_is_no_message_is_refused_with_the_reason() {
        for (text, why) in [
            ("hello", "not a JSON object"),
            ("[]", "not a JSON object"),
            (r#"[1, "m", {}, null, null]"#, "not a JSON object"),
            ("12", "not a JSON object"),
            ("{", "EOF"),
            (r#"{"method":"m"} x"#, "trailing"),
            (r#"{"level":"info"}"#, "neither a method nor an id"),
            (r#"{"id":null,"result":1}"#, "neither a method nor an id"),
            (r#"{"id":null,"error":{"code":1,"message":"parse"}}"#, "without an id: parse"),
            (r#"{"id":{},"method":"m"}"#, "neither a number nor a text"),
            (r#"{"id":[1],"result":1}"#, "neither a number nor a text"),
            (r#"{"id":1,"method":5}"#, "string"),
        ] {
            let refused = read(text.as_bytes()).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
        assert!(read(b"{\"method\":\"\xFF\"}").is_err());
    }

    #[test]
    fn messages_are_written_as_the_protocol_wants_them() {
        let call = |params| Outgoing::Request { id: 1, method: "a/b".into(), params };
        let nothing = call(Value::Null.into());
        assert_eq!(line(&nothing), r#"{"jsonrpc":"2.0","id":1,"method":"a/b"}"#);
        let params = json!({ "z": "line\nbreak", "a": 1 });
        for params in [Params::text(&params).unwrap(), params.into()] {
            assert_eq!(
                line(&call(params)),
                r#"{"jsonrpc":"2.0","id":1,"method":"a/b","params":{"z":"line\nbreak","a":1}}"#
            );
        }
        assert_eq!(
            line(&Outgoing::Notification { method: "n".into(), params: json!([1]).into() }),
            r#"{"jsonrpc":"2.0","method":"n","params":[1]}"#
        );
        assert_eq!(
            line(&Outgoing::Response { id: json!("i\"d"), result: Ok(Value::Null) }),
            r#"{"jsonrpc":"2.0","id":"i\"d","result":null}"#
        );
        let error = RpcError::new(-1, "m");
        assert_eq!(
            line(&Outgoing::Response { id: json!(2), result: Err(error) }),
            r#"{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"m"}}"#
        );
    }
}
