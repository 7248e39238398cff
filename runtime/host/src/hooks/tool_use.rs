//! Hooks around a tool call: arguments and results are passed along, the strictest decision holds.

use std::ops::ControlFlow;

use serde::ser::SerializeMap;
use serde_json::Value;
use tenon_protocol::json::Json;

use super::Chain;
use super::Hook;
use super::Output;
use super::filled;
use super::flag;
use super::text;
use crate::front::Context;
use crate::tool::ToolResult;

/// What an extension decided about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// It may be made without asking.
    Allow,
    /// The person is to be asked.
    Ask,
    /// It may not be made.
    Deny,
}

/// A decision, with who made it and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// What was decided.
    pub permission: Permission,
    /// `scope:name`.
    pub by: String,
    /// In the extension's words.
    pub reason: Option<String>,
}

/// Whose call it is, for all tool hooks.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// The call.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
    /// The sub-agent that makes the call, if one does.
    pub agent_id: Option<String>,
    /// What the agent itself calls the tool, and gives it; where that differs.
    pub native: Option<(String, Value)>,
}

impl Caller {
    fn input<M: SerializeMap>(&self, args: &Json, input: &mut M) -> Result<(), M::Error> {
        input.serialize_entry("toolName", &self.tool_name)?;
        input.serialize_entry("toolArgs", args)?;
        input.serialize_entry("toolCallId", &self.tool_call_id)?;
        if let Some(agent) = &self.agent_id {
            input.serialize_entry("agentId", agent)?;
        }
        if let Some((name, raw)) = &self.native {
            input.serialize_entry("nativeToolName", name)?;
            input.serialize_entry("nativeToolArgs", raw)?;
        }
        Ok(())
    }
}

/// `onPreToolUse`.
#[derive(Debug)]
pub struct Pre {
    /// Whose call it is.
    pub caller: Caller,
    /// The arguments, as rewritten so far.
    pub args: Json,
    /// The strictest decision so far.
    pub decided: Option<Decided>,
    /// What extensions tell the agent.
    pub contexts: Vec<Context>,
    /// The call is not to be shown.
    pub suppress_output: bool,
}

impl Pre {
    /// Of a call as it came.
    pub fn new(caller: Caller, args: impl Into<Json>) -> Self {
        Self {
            caller,
            args: args.into(),
            decided: None,
            contexts: Vec::new(),
            suppress_output: false,
        }
    }
}

impl Chain for Pre {
    const HOOK: Hook = Hook::PreToolUse;
    const DECIDES: bool = true;

    fn input<M: SerializeMap>(&self, input: &mut M) -> Result<(), M::Error> {
        self.caller.input(&self.args, input)
    }

    /// A guard that misspells its denial must not let the call pass unnoticed.
    fn problem(output: &Output) -> Option<String> {
        let decision = output.get("permissionDecision")?;
        let known = decision.is_null() || ["allow", "ask", "deny"].iter().any(|it| decision == it);
        (!known).then(|| {
            format!("permissionDecision is {decision}; expected \"allow\", \"deny\" or \"ask\"")
        })
    }

    fn take(&mut self, extension: &str, mut output: Output) -> ControlFlow<()> {
        if let Some(args) = output.remove("modifiedArgs").filter(|args| !args.is_null()) {
            self.args = args.into();
        }
        if let Some(text) = filled(&mut output, "additionalContext") {
            self.contexts.push(Context { extension: extension.to_owned(), text });
        }
        self.suppress_output |= flag(&output, "suppressOutput");
        let permission = match text(&mut output, "permissionDecision").as_deref() {
            Some("allow") => Permission::Allow,
            Some("ask") => Permission::Ask,
            Some("deny") => Permission::Deny,
            _ => return ControlFlow::Continue(()),
        };
        if self.decided.as_ref().is_none_or(|before| permission > before.permission) {
            let reason = filled(&mut output, "permissionDecisionReason");
            self.decided = Some(Decided { permission, by: extension.to_owned(), reason });
        }
        if permission == Permission::Deny {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn fail_closed(&mut self, extension: &str, why: &str) -> ControlFlow<()> {
        self.decided = Some(Decided {
            permission: Permission::Deny,
            by: extension.to_owned(),
            reason: Some(why.to_owned()),
        });
        ControlFlow::Break(())
    }
}

/// `onPreMcpToolCall`.
#[derive(Debug)]
pub struct PreMcp {
    /// The call.
    pub tool_call_id: String,
    /// The sub-agent that makes the call, if one does.
    pub agent_id: Option<String>,
    /// The server.
    pub server: String,
    /// The tool, without the server's prefix.
    pub tool: String,
    /// Its arguments.
    pub args: Json,
    /// What travels beside them, as rewritten so far.
    pub meta: Option<Value>,
    /// Set if an extension that fails closed did not answer.
    pub denied: Option<Decided>,
}

impl Chain for PreMcp {
    const HOOK: Hook = Hook::PreMcpToolCall;
    const DECIDES: bool = true;

    fn input<M: SerializeMap>(&self, input: &mut M) -> Result<(), M::Error> {
        input.serialize_entry("toolCallId", &self.tool_call_id)?;
        input.serialize_entry("serverName", &self.server)?;
        input.serialize_entry("toolName", &self.tool)?;
        input.serialize_entry("arguments", &self.args)?;
        if let Some(agent) = &self.agent_id {
            input.serialize_entry("agentId", agent)?;
        }
        if let Some(meta) = &self.meta {
            input.serialize_entry("_meta", meta)?;
        }
        Ok(())
    }

    fn take(&mut self, _extension: &str, mut output: Output) -> ControlFlow<()> {
        match output.remove("metaToUse") {
            Some(Value::Null) => self.meta = None,
            Some(meta @ Value::Object(_)) => self.meta = Some(meta),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn fail_closed(&mut self, extension: &str, why: &str) -> ControlFlow<()> {
        self.denied = Some(Decided {
            permission: Permission::Deny,
            by: extension.to_owned(),
            reason: Some(why.to_owned()),
        });
        ControlFlow::Break(())
    }
}

/// `onPostToolUse`.
#[derive(Debug)]
pub struct Post {
    /// Whose call it was.
    pub caller: Caller,
    /// The arguments that were used.
    pub args: Json,
    /// The result, as rewritten so far.
    pub result: ToolResult,
    /// What extensions tell the agent.
    pub contexts: Vec<Context>,
    /// The result is not to be shown.
    pub suppress_output: bool,
}

impl Chain for Post {
    const HOOK: Hook = Hook::PostToolUse;

    fn input<M: SerializeMap>(&self, input: &mut M) -> Result<(), M::Error> {
        self.caller.input(&self.args, input)?;
        input.serialize_entry("toolResult", &self.result)
    }

    fn take(&mut self, extension: &str, mut output: Output) -> ControlFlow<()> {
        if let Some(result) = output.remove("modifiedResult").filter(|result| !result.is_null()) {
            self.result = ToolResult::from_reply(result);
        }
        if let Some(text) = filled(&mut output, "additionalContext") {
            self.contexts.push(Context { extension: extension.to_owned(), text });
        }
        self.suppress_output |= flag(&output, "suppressOutput");
        ControlFlow::Continue(())
    }
}

/// `onPostToolUseFailure`.
#[derive(Debug)]
pub struct PostFailure {
    /// Whose call it was.
    pub caller: Caller,
    /// The arguments that were used.
    pub args: Json,
    /// What went wrong.
    pub error: String,
    /// What extensions tell the agent.
    pub contexts: Vec<Context>,
}

impl Chain for PostFailure {
    const HOOK: Hook = Hook::PostToolUseFailure;

    fn input<M: SerializeMap>(&self, input: &mut M) -> Result<(), M::Error> {
        self.caller.input(&self.args, input)?;
        input.serialize_entry("error", &self.error)
    }

    fn take(&mut self, extension: &str, mut output: Output) -> ControlFlow<()> {
        if let Some(text) = filled(&mut output, "additionalContext") {
            self.contexts.push(Context { extension: extension.to_owned(), text });
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::hooks::written::told;

    fn answer(chain: &mut Pre, extension: &str, output: Value) -> bool {
        chain.take(extension, output.as_object().unwrap().clone()).is_break()
    }

    #[test]
    fn the_strictest_decision_holds_and_a_denial_ends_the_chain() {
        let mut chain = Pre::new(Caller::default(), json!({}));
        assert!(!answer(
            &mut chain,
            "a",
            json!({ "permissionDecision": "ask", "permissionDecisionReason": "sure?" })
        ));
        assert!(!answer(&mut chain, "b", json!({ "permissionDecision": "allow" })));
        let decided = chain.decided.clone().unwrap();
        assert_eq!((decided.permission, decided.by.as_str()), (Permission::Ask, "a"));
        assert!(answer(&mut chain, "c", json!({ "permissionDecision": "deny" })));
        assert_eq!(chain.decided.unwrap().by, "c");
    }

    #[test]
    fn the_first_of_equal_decisions_is_named() {
        let mut chain = Pre::new(Caller::default(), json!({}));
        answer(&mut chain, "a", json!({ "permissionDecision": "ask" }));
        answer(&mut chain, "b", json!({ "permissionDecision": "ask" }));
        assert_eq!(chain.decided.unwrap().by, "a");
    }

    #[test]
    fn arguments_are_passed_along() {
        let mut chain = Pre::new(Caller::default(), json!({ "n": 1 }));
        answer(&mut chain, "a", json!({ "modifiedArgs": { "n": 2 } }));
        assert_eq!(told(&chain)["toolArgs"], json!({ "n": 2 }));
        answer(&mut chain, "b", json!({ "modifiedArgs": null }));
        assert_eq!(chain.args, json!({ "n": 2 }));
    }
}
