//! A prompt on its way to the agent, and the turn that it begins.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use serde_json::json;
use tenon_host::front::AgentError;
use tenon_host::front::AgentPrompt;
use tenon_host::front::Answer;
use tenon_host::front::Context;
use tenon_host::front::ErrorContext;
use tenon_host::front::StopReason;
use tenon_host::session::Turn;
use tokio::runtime::Handle;

use super::Bridge;
use super::prompt_params::PromptParams;
use crate::agent::more;
use crate::content;
use crate::rpc::Params;
use crate::rpc::RpcError;

impl Bridge {
    /// Has the agent work on a prompt to its end.
    #[tracing::instrument(level = "info", name = "agent", skip_all, fields(agent = %self.definition.name))]
    pub(super) async fn work_on(
        &self,
        turn: Arc<Turn>,
        prompt: &AgentPrompt,
    ) -> Result<Answer, AgentError> {
        let cancelling = self.state().cancelling.take();
        if let Some(cancelling) = cancelling {
            // It is about the prompt before; a panic in it was reported where it happened.
            let _ = cancelling.await;
        }
        // Or it was about this one, which the agent did not have yet. From here on nothing waits until it is sent,
        // so whoever cancels it later does so after that.
        if turn.is_cancelled() {
            return Ok(StopReason::cancelled().into());
        }
        let first = {
            let mut state = self.state();
            state.turn = Some(turn.clone());
            !std::mem::replace(&mut state.instructed, true)
        };
        let startup = first.then(|| self.definition.startup_prompt.clone()).flatten();
        let mut working = Working { bridge: self, over: false };
        let answered = self.send_prompt(prompt, startup.as_deref()).await;
        working.over = true;
        self.watches_ended(&turn).await;
        drop(working);
        turn.finish();
        match answered {
            Ok(response) => {
                self.count(&turn, &response);
                Ok(answer(response))
            }
            Err(error) => {
                // Nobody knows whether it has read what came with the prompt.
                self.state().instructed &= !first;
                Err(self.describe(error).await)
            }
        }
    }

    /// Sends a prompt to the agent.
    async fn send_prompt(
        &self,
        prompt: &AgentPrompt,
        startup: Option<&str>,
    ) -> Result<Value, RpcError> {
        let connection = self.connection().ok_or_else(RpcError::closed)?;
        let params = {
            let blocks = blocks(prompt, startup, self.accepts("image"), &self.opening.cwd);
            let session = self.acp_id();
            let given = prompt.native.as_deref();
            Params::text(&PromptParams::new(given, &session, &blocks, startup.is_some()))?
        };
        connection.request("session/prompt", params).await
    }

    /// What a failed prompt is, for extensions and people.
    async fn describe(&self, error: RpcError) -> AgentError {
        let name = &self.definition.name;
        if error.is_closed() {
            let message = match self.agent() {
                Some(agent) => agent.obituary().await,
                None => format!("{name} is gone"),
            };
            return super::failure(message);
        }
        let why = more(&error);
        let hint = match (error.code, &self.definition.login) {
            (RpcError::AUTH_REQUIRED, Some(login)) => format!("\n{login}"),
            _ => String::new(),
        };
        AgentError {
            message: format!("{name}: {}{why}{hint}", error.message),
            context: ErrorContext::ModelCall,
            recoverable: error.code != RpcError::AUTH_REQUIRED,
            // An error without a JSON form reaches the client as its message alone.
            native: serde_json::to_value(error).ok(),
        }
    }

    /// Whether the agent takes prompts with something beside text.
    fn accepts(&self, what: &str) -> bool {
        let capabilities = self.agent().map(|agent| agent.capabilities()).unwrap_or_default();
        capabilities["promptCapabilities"][what] == true
    }

    fn count(&self, turn: &Turn, response: &Value) {
        let usage = &response["usage"];
        if usage.is_object() {
            let mut data = json!({
                "inputTokens": usage["inputTokens"],
                "outputTokens": usage["outputTokens"],
            });
            if let Some(model) = self.current_model() {
                data["model"] = model.into();
            }
            turn.usage(data);
        }
    }
}

/// A prompt is being worked on. Whoever does not wait for its end has given up on an agent that does not stop.
struct Working<'a> {
    bridge: &'a Bridge,
    over: bool,
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        {
            let mut state = self.bridge.state();
            state.turn = None;
            state.deaf = !self.over;
        }
        // Nobody waits for the end of its calls, but who has heard of their beginning hears of it.
        if let (false, Ok(runtime)) = (self.over, Handle::try_current()) {
            runtime.spawn(self.bridge.watches_end());
        }
    }
}

/// The agent's answer to a prompt. One that does not say why the agent stopped is not passed on as it is.
fn answer(response: Value) -> Answer {
    match response["stopReason"].as_str().map(str::to_owned) {
        Some(reason) => Answer { stop: StopReason(reason), native: Some(response) },
        None => StopReason::end_turn().into(),
    }
}

/// The prompt as ACP content blocks: what extensions say, then the prompt, then what is attached. Blocks that the client
/// gave, which may be long images, are borrowed.
fn blocks<'a>(
    prompt: &'a AgentPrompt,
    startup: Option<&str>,
    images: bool,
    cwd: &Path,
) -> Vec<Cow<'a, Value>> {
    let text = |text: &str| Cow::Owned(json!({ "type": "text", "text": text }));
    let mut blocks: Vec<Cow<'a, Value>> = startup.map(text).into_iter().collect();
    let said = Context::render(&prompt.context);
    if !said.is_empty() {
        blocks.push(text(&said));
    }
    match prompt.native.as_ref().and_then(|native| native["prompt"].as_array()) {
        Some(native) if !prompt.rewritten => blocks.extend(native.iter().map(Cow::Borrowed)),
        Some(native) => {
            // What is not text was not rewritten.
            blocks.push(text(&prompt.text));
            let others = native.iter().filter(|block| block["type"] != "text");
            blocks.extend(others.map(Cow::Borrowed));
        }
        None => {
            blocks.push(text(&prompt.text));
            let attached = prompt.attachments.iter().map(|it| attachment(it, images, cwd));
            blocks.extend(attached.map(Cow::Owned));
        }
    }
    blocks
}

/// An attachment of the public contract as a content block.
fn attachment(attachment: &Value, images: bool, cwd: &Path) -> Value {
    let kind = attachment["type"].as_str().unwrap_or_default();
    let name = attachment["displayName"].as_str();
    match kind {
        "file" | "directory" if attachment["path"].is_string() => {
            let path = cwd.join(attachment["path"].as_str().unwrap_or_default());
            let last = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
            json!({ "type": "resource_link", "uri": content::file_uri(&path), "name": name.unwrap_or(&last) })
        }
        "blob" if images && is_image(attachment) => {
            json!({ "type": "image", "data": attachment["data"], "mimeType": attachment["mimeType"] })
        }
        "selection" => {
            let path = attachment["filePath"].as_str().unwrap_or_default();
            let text = attachment["text"].as_str().unwrap_or_default();
            json!({ "type": "text", "text": format!("Selected in {path}:\n{text}") })
        }
        _ => json!({ "type": "text", "text": format!("Attached: {attachment}") }),
    }
}

fn is_image(attachment: &Value) -> bool {
    attachment["mimeType"].as_str().is_some_and(|kind| kind.starts_with("image/"))
}

#[cfg(test)]
mod tests {
    use super::super::tool_watch::stage::Stage;
    use super::super::tool_watch::stage::bash;
    use super::*;

    #[tokio::test]
    async fn the_calls_of_a_turn_that_nobody_waits_for_end_too() {
        let stage = Stage::new();
        let mut running = bash("sleep 1000");
        running["status"] = "in_progress".into();
        stage.bridge.tool_update(&running).await;
        assert_eq!(stage.events(), ["start sleep 1000"]);
        drop(Working { bridge: &stage.bridge, over: false });
        stage.until(2).await;
        assert_eq!(stage.events()[1], "complete the turn ended before the call did");
        assert!(stage.bridge.state().deaf);
    }

    fn prompt(text: &str, native: &Arc<Value>) -> AgentPrompt {
        AgentPrompt {
            text: text.to_owned(),
            native: Some(native.clone()),
            ..AgentPrompt::default()
        }
    }

    /// Whether these are the client's own blocks, and no copies.
    fn are_given(blocks: &[Cow<'_, Value>], given: &[Value]) -> bool {
        let is_it = |(block, given): (&Cow<'_, Value>, &Value)| matches!(block, Cow::Borrowed(it) if std::ptr::eq(*it, given));
        blocks.len() == given.len() && blocks.iter().zip(given).all(is_it)
    }

    #[test]
    fn a_prompt_that_nobody_changed_reaches_the_agent_as_the_client_gave_it() {
        let native = Arc::new(json!({ "prompt": [
            { "type": "text", "text": "look at", "annotations": { "priority": 1 } },
            { "type": "image", "data": "x", "mimeType": "image/png" },
            { "type": "text", "text": "this" },
        ] }));
        let prompt = prompt("look at\nthis", &native);
        let sent = blocks(&prompt, None, true, Path::new("/"));
        assert!(are_given(&sent, native["prompt"].as_array().unwrap()));
    }

    #[test]
    fn a_changed_prompt_keeps_what_is_not_text() {
        let native = Arc::new(
            json!({ "prompt": [{ "type": "text", "text": "a" }, { "type": "resource_link", "uri": "file:///x", "name": "x" }] }),
        );
        let mut changed = prompt("b", &native);
        changed.rewritten = true;
        changed.context = vec![Context { extension: "user:x".into(), text: "note".into() }];
        let sent = blocks(&changed, Some("be brief"), true, Path::new("/"));
        assert!(are_given(&sent[3..], &native["prompt"].as_array().unwrap()[1..]));
        assert_eq!(sent[0]["text"], "be brief");
        assert_eq!(sent[1]["text"], "<context from=\"user:x\">\nnote\n</context>");
        assert_eq!(sent[2]["text"], "b");
        assert_eq!(sent[3]["uri"], "file:///x");
        assert_eq!(sent.len(), 4);
    }

    #[test]
    fn an_answer_without_a_reason_is_the_end_of_the_turn() {
        let response = json!({ "stopReason": "max_tokens", "usage": { "inputTokens": 3 } });
        let whole = answer(response.clone());
        assert_eq!(whole, Answer { stop: StopReason("max_tokens".into()), native: Some(response) });
        for odd in [json!({ "usage": {} }), json!({ "stopReason": 5 }), Value::Null] {
            assert_eq!(answer(odd), StopReason::end_turn().into());
        }
    }

    #[test]
    fn attachments_become_links_images_and_text() {
        let cwd = Path::new("/work space");
        let file = json!({ "type": "file", "path": "a b.txt" });
        assert_eq!(attachment(&file, true, cwd)["uri"], "file:///work%20space/a%20b.txt");
        assert_eq!(attachment(&file, true, cwd)["name"], "a b.txt");
        let blob = json!({ "type": "blob", "data": "eA==", "mimeType": "image/png" });
        assert_eq!(attachment(&blob, true, cwd)["type"], "image");
        assert_eq!(attachment(&blob, false, cwd)["type"], "text");
    }
}
