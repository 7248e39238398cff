//! Names of sessions in messages: the client has one, the agent another.

use serde_json::Value;
use serde_json::json;

/// The session that a message is about.
pub fn session_of(params: &Value) -> Option<&str> {
    params.get("sessionId")?.as_str()
}

/// Makes a message one about this session.
pub fn set_session(params: &mut Value, id: &str) {
    if !params.is_object() {
        *params = json!({});
    }
    params["sessionId"] = id.into();
}

/// Replaces the name of a session, if the message is about that one.
pub fn rename(message: &mut Value, from: &str, to: &str) {
    if session_of(message) == Some(from) {
        message["sessionId"] = to.into();
    }
}

/// Replaces the names in the answer to `session/list`; those without another stay.
pub fn rename_listed(answer: &mut Value, name: impl Fn(&str) -> Option<String>) {
    let Some(sessions) = answer.get_mut("sessions").and_then(Value::as_array_mut) else { return };
    for session in sessions {
        if let Some(name) = session_of(session).and_then(&name) {
            session["sessionId"] = name.into();
        }
    }
}

/// Whether a name can be that of a session of ours; any other is never looked for on disk.
pub fn can_be_ours(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !id.is_empty() && id.chars().all(plain) && !id.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_of_the_session_changes_and_everything_stays_in_place() {
        let mut params =
            json!({ "x": 1, "sessionId": "native", "_meta": { "sessionId": "native" } });
        set_session(&mut params, "ours");
        let expected = r#"{"x":1,"sessionId":"ours","_meta":{"sessionId":"native"}}"#;
        assert_eq!(params.to_string(), expected);
    }

    #[test]
    fn a_message_without_parameters_gets_them() {
        let mut params = Value::Null;
        set_session(&mut params, "ours");
        assert_eq!(params, json!({ "sessionId": "ours" }));
    }

    #[test]
    fn a_message_about_another_session_stays_as_it_is() {
        let mut answer = json!({ "sessionId": "child" });
        rename(&mut answer, "native", "ours");
        assert_eq!(answer, json!({ "sessionId": "child" }));
        rename(&mut answer, "child", "ours");
        assert_eq!(answer, json!({ "sessionId": "ours" }));
        let mut nothing = Value::Null;
        rename(&mut nothing, "native", "ours");
        assert_eq!(nothing, Value::Null);
    }

    #[test]
    fn sessions_in_a_list_get_the_names_that_the_client_knows() {
        let mut answer = json!({
            "sessions": [
                { "sessionId": "a", "cwd": "/x", "title": "A" },
                { "sessionId": "b", "cwd": "/y" },
                { "odd": true },
            ],
            "nextCursor": "n",
        });
        rename_listed(&mut answer, |id| (id == "a").then(|| "ours".to_owned()));
        let expected = json!({
            "sessions": [
                { "sessionId": "ours", "cwd": "/x", "title": "A" },
                { "sessionId": "b", "cwd": "/y" },
                { "odd": true },
            ],
            "nextCursor": "n",
        });
        assert_eq!(answer, expected);
    }

    #[test]
    fn a_name_that_leads_elsewhere_on_disk_is_not_ours() {
        assert!(can_be_ours("3f2a-b_c.1"));
        for id in ["", ".", "..", "../x", "a/b", "a\0b", ".hidden"] {
            assert!(!can_be_ours(id), "{id:?}");
        }
    }
}
