//! The JSON that extensions see, written out, and what may be decided about it.

use serde_json::json;

use super::*;

fn text(request: &PermissionRequest) -> String {
    serde_json::to_string(request).unwrap()
}

fn agent(action: AgentAction) -> AgentRequest {
    AgentRequest::new(action, "c1")
}

fn read() -> AgentAction {
    AgentAction::Read { path: "src".to_owned(), intention: "look".to_owned() }
}

fn args() -> Json {
    Json::from(json!({ "z": 1, "a": [true, null] }))
}

#[test]
fn a_call_of_an_extensions_tool_is_written_as_the_contract_says() {
    let request = PermissionRequest::CustomTool {
        tool_call_id: "c1".to_owned(),
        tool_name: "deploy".to_owned(),
        tool_description: "Ships it".to_owned(),
        args: args(),
    };
    assert_eq!(
        text(&request),
        r#"{"kind":"custom-tool","toolCallId":"c1","toolName":"deploy","toolDescription":"Ships it","args":{"z":1,"a":[true,null]}}"#
    );
}

#[test]
fn a_question_of_a_hook_is_written_as_the_contract_says() {
    let hook = |why: Option<&str>| PermissionRequest::Hook {
        tool_call_id: "c1".to_owned(),
        tool_name: "deploy".to_owned(),
        tool_args: args(),
        hook_message: why.map(str::to_owned),
        extension_name: "user:guard".to_owned(),
    };
    assert_eq!(
        text(&hook(Some("sure?"))),
        r#"{"kind":"hook","toolCallId":"c1","toolName":"deploy","toolArgs":{"z":1,"a":[true,null]},"hookMessage":"sure?","extensionName":"user:guard"}"#
    );
    assert_eq!(
        text(&hook(None)),
        r#"{"kind":"hook","toolCallId":"c1","toolName":"deploy","toolArgs":{"z":1,"a":[true,null]},"hookMessage":null,"extensionName":"user:guard"}"#
    );
}

#[test]
fn questions_about_extensions_are_written_as_the_contract_says() {
    let manage = |operation: Switch, name: Option<&str>| PermissionRequest::ExtensionManagement {
        tool_call_id: "c1".to_owned(),
        operation,
        extension_name: name.map(str::to_owned),
    };
    assert_eq!(
        text(&manage(Switch::Disable, Some("guard"))),
        r#"{"kind":"extension-management","toolCallId":"c1","operation":"disable","extensionName":"guard"}"#
    );
    assert_eq!(
        text(&manage(Switch::Enable, None)),
        r#"{"kind":"extension-management","toolCallId":"c1","operation":"enable","extensionName":null}"#
    );
    let secrets = PermissionRequest::ExtensionEnvAccess {
        extension_name: "user:x".to_owned(),
        environment_variables: vec!["TOKEN".to_owned(), "KEY".to_owned()],
    };
    assert_eq!(
        text(&secrets),
        r#"{"kind":"extension-env-access","extensionName":"user:x","environmentVariables":["TOKEN","KEY"]}"#
    );
    let review = PermissionRequest::ExtensionReview {
        intention: "it is new".to_owned(),
        extension_name: "project:x".to_owned(),
        path: "/w/x".to_owned(),
        hash: "abc".to_owned(),
    };
    assert_eq!(
        text(&review),
        r#"{"kind":"extension-review","intention":"it is new","extensionName":"project:x","path":"/w/x","hash":"abc"}"#
    );
}

#[test]
fn what_an_agent_wants_to_do_is_written_as_the_contract_says() {
    let written = |action: AgentAction| text(&PermissionRequest::Agent(agent(action)));
    let intention = || "why".to_owned();
    let shell = AgentAction::Shell {
        full_command_text: "ls > x".to_owned(),
        intention: intention(),
        possible_paths: Vec::new(),
        has_write_file_redirection: true,
    };
    assert_eq!(
        written(shell),
        r#"{"kind":"shell","fullCommandText":"ls > x","intention":"why","possiblePaths":[],"hasWriteFileRedirection":true,"toolCallId":"c1"}"#
    );
    let write = |contents: Option<Json>| AgentAction::Write {
        file_name: "a".to_owned(),
        intention: intention(),
        diff: "+x\n".to_owned(),
        new_file_contents: contents,
    };
    assert_eq!(
        written(write(Some(Json::from(json!("x"))))),
        r#"{"kind":"write","fileName":"a","intention":"why","diff":"+x\n","newFileContents":"x","toolCallId":"c1"}"#
    );
    assert_eq!(
        written(write(None)),
        r#"{"kind":"write","fileName":"a","intention":"why","diff":"+x\n","newFileContents":null,"toolCallId":"c1"}"#
    );
    assert_eq!(
        written(read()),
        r#"{"kind":"read","path":"src","intention":"look","toolCallId":"c1"}"#
    );
    let url = AgentAction::Url { url: "https://x.y/".to_owned(), intention: intention() };
    assert_eq!(
        written(url),
        r#"{"kind":"url","url":"https://x.y/","intention":"why","toolCallId":"c1"}"#
    );
    let mcp = AgentAction::Mcp {
        server_name: "files".to_owned(),
        tool_name: "find".to_owned(),
        tool_title: "Find".to_owned(),
        read_only: false,
        args: args(),
    };
    assert_eq!(
        written(mcp),
        r#"{"kind":"mcp","serverName":"files","toolName":"find","toolTitle":"Find","readOnly":false,"args":{"z":1,"a":[true,null]},"toolCallId":"c1"}"#
    );
    let other = AgentAction::CustomTool {
        tool_name: "think".to_owned(),
        tool_description: intention(),
        args: Json::default(),
    };
    assert_eq!(
        written(other),
        r#"{"kind":"custom-tool","toolName":"think","toolDescription":"why","args":null,"toolCallId":"c1"}"#
    );
}

#[test]
fn what_comes_with_an_agents_request_follows_it_in_order() {
    let request = |hook_message: Option<&str>| {
        PermissionRequest::Agent(AgentRequest {
            file_names: Some(vec!["a".to_owned(), "b".to_owned()]),
            asked_by: Some(AskedBy {
                hook_message: hook_message.map(str::to_owned),
                extension_name: "user:guard".to_owned(),
            }),
            acp: Some(Json::from(json!({ "toolCall": { "b": 1, "a": 2 } }))),
            ..agent(read())
        })
    };
    assert_eq!(
        text(&request(Some("careful"))),
        r#"{"kind":"read","path":"src","intention":"look","toolCallId":"c1","fileNames":["a","b"],"hookMessage":"careful","extensionName":"user:guard","acp":{"toolCall":{"b":1,"a":2}}}"#
    );
    assert_eq!(
        text(&request(None)),
        r#"{"kind":"read","path":"src","intention":"look","toolCallId":"c1","fileNames":["a","b"],"hookMessage":null,"extensionName":"user:guard","acp":{"toolCall":{"b":1,"a":2}}}"#
    );
}

#[test]
fn a_request_becomes_the_same_json_by_way_of_a_value() {
    let requests = [
        PermissionRequest::Agent(AgentRequest {
            acp: Some(Json::from(json!({ "z": {}, "a": 0.5 }))),
            ..agent(read())
        }),
        PermissionRequest::Other(json!({ "z": 1, "kind": "memory", "a": null })),
    ];
    for request in requests {
        assert_eq!(serde_json::to_value(&request).unwrap().to_string(), text(&request));
    }
}

#[test]
fn an_unknown_request_is_passed_on_and_never_allowed_for_a_session() {
    let value = json!({ "what": 1, "kind": "new-thing", "toolCallId": "c9" });
    let request = PermissionRequest::Other(value.clone());
    assert_eq!(text(&request), value.to_string());
    assert_eq!(request.tool_call_id(), Some("c9"));
    assert_eq!(request.subject(), None);
}

#[test]
fn what_an_extension_wants_asked_is_asked_each_time() {
    assert_eq!(PermissionRequest::Agent(agent(read())).subject(), Some(Subject::Reading));
    let asked_by = Some(AskedBy { hook_message: None, extension_name: "user:guard".to_owned() });
    let asked = AgentRequest { asked_by, ..agent(read()) };
    assert_eq!(PermissionRequest::Agent(asked).subject(), None);
}

#[test]
fn every_decision_is_written_as_it_was_read() {
    let names = [
        ("approve-once", true),
        ("approve-for-session", true),
        ("approve-for-location", true),
        ("approve-permanently", true),
        ("approved", true),
        ("approved-for-session", true),
        ("approved-for-location", true),
        ("reject", false),
        ("cancelled", false),
        ("no-result", false),
        ("user-not-available", false),
        ("denied-by-rules", false),
        ("denied-no-approval-rule-and-could-not-request-from-user", false),
        ("denied-interactively-by-user", false),
        ("denied-by-content-exclusion-policy", false),
        ("denied-by-permission-request-hook", false),
    ];
    for (name, approved) in names {
        let kind: DecisionKind = serde_json::from_value(json!(name)).unwrap();
        assert!(!matches!(kind, DecisionKind::Other(_)), "{name}");
        assert_eq!(kind.is_approved(), approved, "{name}");
        assert_eq!(serde_json::to_value(&kind).unwrap(), name);
    }
}

#[test]
fn an_unknown_decision_permits_nothing_whatever_it_is_called() {
    for name in ["approve-everything", "approved-by-magic", ""] {
        let kind: DecisionKind = serde_json::from_value(json!(name)).unwrap();
        assert!(!kind.is_approved() && !kind.leaves_it_to_others(), "{name}");
        assert_eq!(serde_json::to_value(&kind).unwrap(), name);
    }
    for none in [json!({ "approve-once": null }), json!(true), json!(null)] {
        assert!(serde_json::from_value::<DecisionKind>(none.clone()).is_err(), "{none}");
    }
}
