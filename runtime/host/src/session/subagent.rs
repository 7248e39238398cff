//! Sub-agents: an agent that the session's agent starts for a part of its work. Their hooks and events are part of the
//! contract; no agent uses them yet.

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::MAX_CONSECUTIVE_BLOCKS;
use super::Session;
use crate::front::Context;
use crate::hooks::lifecycle;
use crate::hooks::lifecycle::SubagentStart;
use crate::hooks::lifecycle::SubagentStop;

/// A sub-agent at work.
#[derive(Debug, Clone, Default)]
pub struct SubagentCall {
    /// The tool call that started it.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// What kind of agent it is.
    pub kind: String,
}

/// What becomes of a sub-agent that stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubagentEnd {
    /// It returns this.
    Done {
        /// The answer, after all rewrites.
        response: String,
    },
    /// It goes on with this message.
    Continue {
        /// What it is told.
        reason: String,
    },
}

impl Session {
    /// A sub-agent starts: what extensions tell it before its first prompt. Part of the contract that no agent uses yet.
    pub async fn subagent_started(&self, call: &SubagentCall) -> Vec<Context> {
        let data = json!({
            "toolCallId": call.id,
            "agentName": call.name,
            "agentDisplayName": call.name,
            "agentDescription": "",
            "agentType": call.kind,
        });
        self.emit("subagent.started", data);
        let chain = SubagentStart { agent: self.describe(call), contexts: Vec::new() };
        self.hooks().run(chain).await.contexts
    }

    /// A sub-agent is about to return its answer. Part of the contract that no agent uses yet.
    pub async fn subagent_stopped(
        &self,
        call: &SubagentCall,
        stop_reason: &str,
        response: &str,
    ) -> SubagentEnd {
        let chain = SubagentStop {
            agent: self.describe(call),
            stop_reason: stop_reason.to_owned(),
            response: response.to_owned(),
            blocked: Vec::new(),
        };
        let chain = self.hooks().run(chain).await;
        let blocks = self.facts().subagent_blocks.remove(&call.id).unwrap_or(0);
        if !chain.blocked.is_empty() && blocks < MAX_CONSECUTIVE_BLOCKS {
            self.facts().subagent_blocks.insert(call.id.clone(), blocks + 1);
            return SubagentEnd::Continue { reason: lifecycle::reasons(&chain.blocked) };
        }
        let data = json!({
            "toolCallId": call.id,
            "agentName": call.name,
            "agentDisplayName": call.name,
        });
        self.emit("subagent.completed", data);
        SubagentEnd::Done { response: chain.response }
    }

    /// A sub-agent could not do its work. Part of the contract that no agent uses yet.
    pub fn subagent_failed(&self, call: &SubagentCall, error: &str) {
        self.facts().subagent_blocks.remove(&call.id);
        let data = json!({
            "toolCallId": call.id,
            "agentName": call.name,
            "agentDisplayName": call.name,
            "error": error,
        });
        self.emit("subagent.failed", data);
    }

    /// What hooks are told of a sub-agent.
    fn describe(&self, call: &SubagentCall) -> Map<String, Value> {
        let fields = [("agentId", &call.id), ("agentName", &call.name), ("agentType", &call.kind)];
        let text = |(field, value): (&str, &String)| (field.to_owned(), value.as_str().into());
        let mut described: Map<_, _> = fields.map(text).into_iter().collect();
        if let Some(path) = self.transcript() {
            described.insert("transcriptPath".into(), path.into());
        }
        described
    }
}
