//! `session/update`: what the agent says and does, as events of the session.

use serde_json::Value;
use serde_json::json;
use tenon_host::Session;

use super::Bridge;
use super::Replay;
use crate::agent::AgentSession;

/// The kinds of updates that tell what was said and done before, when an agent opens a session again.
pub(crate) const HISTORY: [&str; 6] = [
    "user_message_chunk",
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
];

impl Bridge {
    /// An update of the agent, in the order they come.
    pub(super) async fn update(&self, params: Value) {
        let replaying = {
            let mut state = self.state();
            state.updates += 1;
            state.replaying
        };
        let update = &params["update"];
        let kind = update["sessionUpdate"].as_str().unwrap_or_default().to_owned();
        if let Some(session) = self.session() {
            if replaying.is_some() {
                // It was an event when it happened; what it says about now still counts.
                self.note_facts(&session, &kind, update);
            } else {
                self.translate(&session, &kind, update).await;
            }
        }
        if let Some(outer) = &self.outer
            && !(replaying == Some(Replay::Known) && HISTORY.contains(&kind.as_str()))
        {
            outer.update(params).await;
        }
    }

    async fn translate(&self, session: &Session, kind: &str, update: &Value) {
        let turn = self.state().turn.clone();
        let text = update["content"]["text"].as_str();
        match (kind, turn, text) {
            // Some agents say nothing to say something beside it.
            ("agent_message_chunk" | "agent_thought_chunk", _, Some("")) => {}
            ("agent_message_chunk", Some(turn), Some(text)) => turn.delta(text),
            ("agent_thought_chunk", Some(turn), Some(text)) => turn.reasoning_delta(text),
            ("tool_call" | "tool_call_update", turn, _) => {
                if let Some(turn) = turn {
                    // What was said before is said.
                    turn.finish();
                }
                self.tool_update(update).await;
            }
            ("plan", ..) => {
                let entries = &update["entries"];
                session.emit_ephemeral("assistant.plan", json!({ "entries": entries }));
            }
            ("usage_update", ..) => {
                let data = json!({
                    "currentTokens": update["used"],
                    "tokenLimit": update["size"],
                    "messagesLength": 0,
                });
                session.emit_ephemeral("session.usage_info", data);
            }
            ("notice", ..) => self.notice(session, update),
            ("compaction_update", ..) => {
                let begun = matches!(update["status"].as_str(), Some("in_progress" | "pending"));
                let name =
                    if begun { "session.compaction_start" } else { "session.compaction_complete" };
                let success = update["status"] == "completed";
                let data = if begun { json!({}) } else { json!({ "success": success }) };
                session.emit(name, data);
            }
            _ => {
                if !self.note_facts(session, kind, update) {
                    // Pictures, sounds, words outside of a turn, and what a newer agent says.
                    session.emit_ephemeral("acp.update", json!({ "update": update }));
                }
            }
        }
    }

    /// What is so from now on; false if the update says nothing of that kind.
    fn note_facts(&self, session: &Session, kind: &str, update: &Value) -> bool {
        match kind {
            "available_commands_update" => {
                let commands = update["availableCommands"].as_array().cloned().unwrap_or_default();
                self.state().commands = commands;
                let data = json!({ "commands": update["availableCommands"] });
                session.emit_ephemeral("agent.commands_changed", data);
            }
            "current_mode_update" => {
                if let Some(mode) = update["currentModeId"].as_str() {
                    self.mode_is(session, mode);
                }
            }
            "config_option_update" => self.options_are(session, &update["configOptions"]),
            "session_info_update" => {
                if let Some(title) = update["title"].as_str() {
                    session.title_changed(title);
                }
            }
            _ => return false,
        }
        true
    }

    fn notice(&self, session: &Session, update: &Value) {
        let title = update["title"].as_str().unwrap_or_default();
        let message = match update["description"].as_str() {
            Some(more) => format!("{title}: {more}"),
            None => title.to_owned(),
        };
        match update["severity"].as_str() {
            Some("error") => {
                session.emit("session.error", json!({ "errorType": "agent", "message": message }));
            }
            Some("warning") => self.warn("agent", &message),
            _ => {
                session.emit("session.info", json!({ "infoType": "agent", "message": message }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use parking_lot::Mutex;
    use std::sync::Arc;

    use super::super::tool_watch::stage::Stage;
    use super::*;
    use crate::agent::Outer;
    use crate::rpc::RpcError;

    /// A client in front that keeps what it hears.
    #[derive(Default)]
    struct Client(Mutex<Vec<Value>>);

    #[async_trait]
    impl Outer for Client {
        async fn update(&self, params: Value) {
            self.0.lock().push(params);
        }

        async fn notification(&self, _method: &str, params: Value) {
            self.0.lock().push(params);
        }

        async fn request(&self, _method: &str, params: Value) -> Option<Result<Value, RpcError>> {
            self.0.lock().push(params);
            Some(Ok(json!({})))
        }
    }

    #[tokio::test]
    async fn whoever_is_in_front_gets_what_the_agent_sent_as_it_was() {
        let client = Arc::new(Client::default());
        let stage = Stage::behind(Some(client.clone()));
        let update = json!({ "sessionUpdate": "plan", "entries": [] });
        let file = stage.root.join("x");
        let sent = [
            ("session/update", json!({ "sessionId": "native", "update": update })),
            ("_x/note", json!({ "sessionId": "native" })),
            ("_x/ask", json!({ "sessionId": "native", "x": 1 })),
            ("fs/write_text_file", json!({ "sessionId": "native", "path": file, "content": "" })),
        ];
        for (method, params) in &sent[..2] {
            stage.bridge.notification(method, params.clone()).await;
        }
        for (method, params) in &sent[2..] {
            stage.bridge.request(method, params.clone()).await.unwrap();
        }
        assert_eq!(*client.0.lock(), sent.map(|(_, params)| params));
    }
}
