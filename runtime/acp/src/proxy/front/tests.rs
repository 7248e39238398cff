//! The front against a client that answers from a script.

use std::sync::Arc;

use tenon_protocol::permission::AgentAction;
use tokio::sync::mpsc;

use super::*;
use crate::rpc::Handler;

/// A client: what it hears, and what it answers.
struct Scripted {
    heard: mpsc::UnboundedSender<(String, Value)>,
    answer: fn(&str, &Value) -> Result<Value, RpcError>,
}

#[async_trait]
impl Handler for Scripted {
    async fn notification(&self, method: String, params: Value) {
        let _ = self.heard.send((method, params));
    }

    async fn request(&self, method: String, params: Value) -> Result<Value, RpcError> {
        let answer = (self.answer)(&method, &params);
        let _ = self.heard.send((method, params));
        answer
    }
}

/// A front and the client behind it.
struct Pair {
    front: ClientFront,
    heard: mpsc::UnboundedReceiver<(String, Value)>,
    _client: Connection,
}

impl Pair {
    fn new(
        abilities: Abilities,
        known: bool,
        replay: bool,
        answer: fn(&str, &Value) -> Result<Value, RpcError>,
    ) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (our_reader, our_writer) = tokio::io::split(ours);
        let (their_reader, their_writer) = tokio::io::split(theirs);
        let (sender, heard) = mpsc::unbounded_channel();
        let (nowhere, _) = mpsc::unbounded_channel();
        let client = Scripted { heard: sender, answer };
        let _client = Connection::new(their_reader, their_writer, Arc::new(client));
        let ourselves = Arc::new(Scripted { heard: nowhere, answer: unable });
        let ours = Connection::new(our_reader, our_writer, ourselves);
        let front = ClientFront::new(ours, "client-id".to_owned(), abilities, known, replay);
        Self { front, heard, _client }
    }

    /// One whose session the client knows.
    async fn known(
        abilities: Abilities,
        answer: fn(&str, &Value) -> Result<Value, RpcError>,
    ) -> Self {
        let pair = Self::new(abilities, true, true, answer);
        pair.front.known().await;
        pair
    }

    /// The next thing the client hears, which is about the session by its own name for it.
    async fn next(&mut self) -> (String, Value) {
        let (method, params) = self.heard.recv().await.unwrap();
        assert_eq!(params["sessionId"], "client-id", "{method} {params}");
        (method, params)
    }
}

fn unable(method: &str, _: &Value) -> Result<Value, RpcError> {
    Err(RpcError::method_not_found(method))
}

/// Takes the option of this kind.
fn select(params: &Value, kind: &str) -> Result<Value, RpcError> {
    let options = params["options"].as_array().unwrap();
    let option = options.iter().find(|option| option["kind"] == kind).unwrap();
    let outcome =
        json!({ "outcome": "selected", "optionId": option["optionId"], "_meta": { "x": 1 } });
    Ok(json!({ "outcome": outcome }))
}

fn always(_: &str, params: &Value) -> Result<Value, RpcError> {
    select(params, "allow_always")
}

fn never(_: &str, params: &Value) -> Result<Value, RpcError> {
    select(params, "reject_once")
}

fn tool(name: &str) -> PermissionRequest {
    PermissionRequest::CustomTool {
        tool_call_id: "toolu_1".to_owned(),
        tool_name: name.to_owned(),
        tool_description: String::new(),
        args: json!({}).into(),
    }
}

#[tokio::test]
async fn the_agents_question_reaches_the_client_as_it_was_asked() {
    let mut pair = Pair::known(Abilities::default(), always).await;
    let asked = json!({
        "sessionId": "tenon-id",
        "toolCall": { "toolCallId": "c", "odd": 1 },
        "options": [{ "optionId": "o1", "kind": "allow_always", "name": "Yes, always" }],
        "_meta": { "kept": true },
    });
    let action = AgentAction::Url { url: String::new(), intention: String::new() };
    let acp = Some(asked.clone().into());
    let request = PermissionRequest::Agent(AgentRequest { acp, ..AgentRequest::new(action, "c") });
    let decision = pair.front.request_permission(&request).await.unwrap();
    assert_eq!(decision.kind, DecisionKind::ApproveForSession);
    let outcome = json!({ "outcome": "selected", "optionId": "o1", "_meta": { "x": 1 } });
    assert_eq!(decision.rest["acpOutcome"], outcome);
    let (method, mut params) = pair.next().await;
    assert_eq!(method, "session/request_permission");
    params["sessionId"] = "tenon-id".into();
    assert_eq!(params, asked);
}

#[tokio::test]
async fn a_tool_permitted_for_the_session_is_not_asked_for_again() {
    let mut pair = Pair::known(Abilities::default(), always).await;
    assert!(pair.front.request_permission(&tool("a")).await.unwrap().is_approved());
    assert!(pair.front.request_permission(&tool("a")).await.unwrap().is_approved());
    assert!(pair.front.request_permission(&tool("b")).await.unwrap().is_approved());
    let title = |params: &Value| params["toolCall"]["title"].as_str().unwrap().to_owned();
    assert!(title(&pair.next().await.1).ends_with(" a"));
    assert!(title(&pair.next().await.1).ends_with(" b"));
}

#[tokio::test]
async fn a_refusal_is_one_and_ends_the_call_that_only_we_know() {
    let mut pair = Pair::known(Abilities::default(), never).await;
    let request = PermissionRequest::ExtensionEnvAccess {
        extension_name: "project:a".to_owned(),
        environment_variables: vec!["TOKEN".to_owned()],
    };
    let decision = pair.front.request_permission(&request).await.unwrap();
    assert_eq!(decision.kind, DecisionKind::Reject);
    let call = pair.next().await.1["toolCall"]["toolCallId"].clone();
    let (method, params) = pair.next().await;
    assert_eq!(method, "session/update");
    let update =
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": call, "status": "failed" });
    assert_eq!(params["update"], update);
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_leaves_the_decision_open() {
    let pair = Pair::known(Abilities::default(), unable).await;
    assert_eq!(pair.front.request_permission(&tool("a")).await, None);
    let forms = Abilities { forms: true, ..Abilities::default() };
    let pair = Pair::known(forms, unable).await;
    let question = Question { question: "?".to_owned(), choices: Vec::new(), allow_freeform: true };
    assert_eq!(pair.front.ask_user(&question).await, None);
}

#[tokio::test]
async fn while_a_session_is_opened_nobody_is_asked_but_a_review_waits() {
    let pair = Pair::new(Abilities::default(), true, true, never);
    assert_eq!(pair.front.request_permission(&tool("a")).await, None);
    let review = PermissionRequest::ExtensionReview {
        intention: String::new(),
        extension_name: "project:a".to_owned(),
        path: String::new(),
        hash: String::new(),
    };
    let (decision, ()) = tokio::join!(pair.front.request_permission(&review), pair.front.known());
    assert_eq!(decision.unwrap().kind, DecisionKind::Reject);
}

#[tokio::test]
async fn nobody_is_asked_about_a_session_that_is_closed() {
    let pair = Pair::known(Abilities::default(), always).await;
    pair.front.closed();
    assert_eq!(pair.front.request_permission(&tool("a")).await, None);
}

#[tokio::test]
async fn a_question_is_a_form_for_a_client_with_forms() {
    fn answer(method: &str, params: &Value) -> Result<Value, RpcError> {
        assert_eq!(method, "elicitation/create");
        assert_eq!(params["mode"], "form");
        Ok(json!({ "action": "accept", "content": { "choice": "blue" } }))
    }
    let forms = Abilities { forms: true, ..Abilities::default() };
    let pair = Pair::known(forms, answer).await;
    assert!(pair.front.capabilities().elicitation);
    let choices = vec!["red".to_owned(), "blue".to_owned()];
    let question = Question { question: "Which?".to_owned(), choices, allow_freeform: false };
    let answer = pair.front.ask_user(&question).await.unwrap();
    assert_eq!((answer.answer.as_str(), answer.was_freeform), ("blue", false));
}

#[tokio::test]
async fn what_was_said_before_reaches_only_a_client_that_wants_it() {
    let chunk = |text: &str| {
        json!({
            "sessionId": "tenon-id",
            "update": {
                "sessionUpdate": "agent_message_chunk",
                "content": { "type": "text", "text": text },
            },
        })
    };
    let mode =
        json!({ "update": { "sessionUpdate": "current_mode_update", "currentModeId": "x" } });
    for (replay, expected) in [(true, vec!["old", "x", "new"]), (false, vec!["x", "new"])] {
        let mut pair = Pair::new(Abilities::default(), true, replay, unable);
        pair.front.update(chunk("old")).await;
        pair.front.update(mode.clone()).await;
        pair.front.known().await;
        pair.front.update(chunk("new")).await;
        for expected in expected {
            let update = pair.next().await.1["update"].clone();
            let text = update["content"]["text"].as_str().or(update["currentModeId"].as_str());
            assert_eq!(text, Some(expected));
        }
    }
}

#[tokio::test]
async fn what_is_not_known_here_passes_both_ways() {
    fn answer(_: &str, params: &Value) -> Result<Value, RpcError> {
        Ok(json!({ "got": params["odd"] }))
    }
    let mut pair = Pair::known(Abilities::default(), answer).await;
    let params = json!({ "sessionId": "tenon-id", "odd": { "x": 1 } });
    let answer = pair.front.request("_x/ask", params.clone()).await.unwrap().unwrap();
    assert_eq!(answer, json!({ "got": { "x": 1 } }));
    pair.front.notification("_x/tell", params).await;
    assert_eq!(pair.next().await.0, "_x/ask");
    let (method, params) = pair.next().await;
    assert_eq!(method, "_x/tell");
    assert_eq!(params["odd"], json!({ "x": 1 }));
    let refusing = Pair::known(Abilities::default(), unable).await;
    let refused = refusing.front.request("fs/read_text_file", json!({})).await.unwrap();
    assert_eq!(refused.unwrap_err().code, RpcError::METHOD_NOT_FOUND);
}

#[tokio::test]
async fn a_page_is_linked_once_and_again_after_it_was_closed() {
    let mut pair = Pair::known(Abilities::default(), unable).await;
    let mut canvas = OpenCanvas {
        instance_id: "i".to_owned(),
        extension_id: "project:a".to_owned(),
        extension_name: "a".to_owned(),
        canvas_id: "board".to_owned(),
        title: Some("Board [1]".to_owned()),
        status: None,
        url: Some("http://127.0.0.1:1/x".to_owned()),
        input: None,
    };
    pair.front.show_canvas(&canvas).await;
    pair.front.show_canvas(&canvas).await;
    pair.front.close_canvas("i").await;
    pair.front.show_canvas(&canvas).await;
    canvas.url = None;
    pair.front.show_canvas(&canvas).await;
    pair.front.notification("last", json!({})).await;
    for _ in 0..2 {
        let text = pair.next().await.1["update"]["content"]["text"].clone();
        let expected = "\n> **tenon · project:a** opened [Board 1](<http://127.0.0.1:1/x>)\n\n";
        assert_eq!(text, expected);
    }
    assert_eq!(pair.next().await.0, "last");
}
