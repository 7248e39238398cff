//! The agent as its client sees it, over the protocol.

mod stage;

use std::path::Path;

use agent_client_protocol::Error;
use agent_client_protocol::ErrorCode;
use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::CancelNotification;
use agent_client_protocol::v1::schema::CloseSessionRequest;
use agent_client_protocol::v1::schema::InitializeRequest;
use agent_client_protocol::v1::schema::ListSessionsRequest;
use agent_client_protocol::v1::schema::LoadSessionRequest;
use agent_client_protocol::v1::schema::NewSessionRequest;
use agent_client_protocol::v1::schema::PermissionOptionKind;
use agent_client_protocol::v1::schema::RequestPermissionOutcome;
use agent_client_protocol::v1::schema::RequestPermissionResponse;
use agent_client_protocol::v1::schema::ResumeSessionRequest;
use agent_client_protocol::v1::schema::SetSessionConfigOptionRequest;
use agent_client_protocol::v1::schema::SetSessionModeRequest;
use agent_client_protocol::v1::schema::StopReason;
use serde_json::Value;
use serde_json::json;

use super::DemoOptions;
use stage::Seen;
use stage::Stage;
use stage::exchange;
use stage::open;
use stage::prompt;
use stage::request;

#[tokio::test]
async fn a_prompt_without_directives_is_repeated() {
    let stage = Stage::new();
    assert_eq!(stage.prompt("Hello, you").await, StopReason::EndTurn);
    assert_eq!(stage.seen.said(), "You said: Hello, you");
    let title = &stage.seen.updates("session_info_update")[0]["title"];
    assert_eq!(title, "Hello, you");
    assert_eq!(stage.seen.updates("usage_update").len(), 1);
    let commands = &stage.seen.updates("available_commands_update")[0]["availableCommands"];
    assert_eq!(commands[0]["name"], "shout");
}

#[tokio::test]
async fn words_thoughts_and_plans_arrive_as_such() {
    let stage = Stage::new();
    let told = "@think let me see\n@plan look; act\n@say one two\n@say three\n/shout loud\n@dance";
    stage.prompt(told).await;
    assert_eq!(stage.seen.chunks("agent_thought_chunk"), ["let ", "me ", "see"]);
    let entries = &stage.seen.updates("plan")[0]["entries"];
    assert_eq!((&entries[0]["content"], &entries[1]["content"]), (&json!("look"), &json!("act")));
    assert_eq!(stage.seen.chunks("agent_message_chunk")[..2], ["one ", "two"]);
    assert_eq!(stage.seen.said(), "one two\nthree\nLOUD\nunknown directive: @dance");
}

#[tokio::test]
async fn an_allowed_command_runs_in_the_sessions_directory() {
    let stage = Stage::new();
    stage.prompt("@run echo hello > made; cat made\n@say it was: $last").await;
    assert_eq!(stage.seen.statuses(), ["pending", "in_progress", "completed"]);
    assert_eq!(stage.seen.result()["content"][0]["content"]["text"], "hello\n");
    assert_eq!(std::fs::read_to_string(stage.cwd().join("made")).unwrap(), "hello\n");
    assert_eq!(stage.seen.said(), "it was: hello\n");
    let asked = stage.seen.asked.lock().clone();
    let announced = &stage.seen.updates("tool_call")[0];
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0]["toolCall"]["toolCallId"], announced["toolCallId"]);
    assert_eq!(announced["kind"], "execute");
    assert_eq!(announced["rawInput"]["command"], "echo hello > made; cat made");
}

#[tokio::test]
async fn a_rejected_command_does_not_run_and_the_turn_goes_on() {
    let stage = Stage { choice: Some(PermissionOptionKind::RejectOnce), ..Stage::new() };
    assert_eq!(stage.prompt("@run touch made\n@say after").await, StopReason::EndTurn);
    assert_eq!(stage.seen.statuses(), ["pending", "failed"]);
    assert!(!stage.cwd().join("made").exists());
    assert_eq!(stage.seen.said(), "after");
}

#[tokio::test]
async fn what_is_always_allowed_is_asked_once() {
    let stage = Stage { choice: Some(PermissionOptionKind::AllowAlways), ..Stage::new() };
    stage.prompt("@run true\n@run true\n@write a.txt x").await;
    // Running is allowed, writing is another matter.
    assert_eq!(stage.seen.asked.lock().len(), 2);
}

#[tokio::test]
async fn files_are_written_changed_and_read() {
    let stage = Stage::new();
    let told = [
        r#"@write deep/a.txt "one\ntwo\n""#,
        r#"@replace deep/a.txt {"old": "two", "new": "2"}"#,
        "@read deep/a.txt",
        "@say $last",
        r#"@replace deep/a.txt {"old": "three", "new": "3"}"#,
        "@read missing.txt",
    ];
    stage.prompt(&told.join("\n")).await;
    assert_eq!(stage.seen.said(), "one\n2\n");
    let calls = stage.seen.updates("tool_call");
    let file = stage.cwd().join("deep/a.txt");
    assert_eq!(calls[0]["rawInput"], json!({ "path": file, "content": "one\ntwo\n" }));
    assert_eq!(calls[0]["content"][0]["type"], "diff");
    let change = json!({ "path": file, "old_string": "two", "new_string": "2" });
    assert_eq!(calls[1]["rawInput"], change);
    assert_eq!((&calls[1]["kind"], &calls[2]["kind"]), (&json!("edit"), &json!("read")));
    let ends: Vec<_> = stage.seen.statuses().into_iter().filter(|s| s.ends_with("ed")).collect();
    assert_eq!(ends, ["completed", "completed", "completed", "failed", "failed"]);
    // Reading needs nobody's permission.
    assert_eq!(stage.seen.asked.lock().len(), 3);
}

#[tokio::test]
async fn calls_of_tools_that_are_missing_fail_and_the_turn_goes_on() {
    let stage = Stage::new();
    stage.prompt("@tools\n@parallel\n@call a\n@call b {\"x\":1}\n@end\n@say $last").await;
    assert_eq!(stage.seen.said(), "no toolsthere is no tool a\nthere is no tool b");
    let failed = stage.seen.statuses().iter().filter(|status| *status == "failed").count();
    assert_eq!(failed, 2);
    assert_eq!(stage.seen.updates("tool_call")[1]["rawInput"], json!({ "x": 1 }));
}

#[tokio::test]
async fn the_mode_decides_whether_anybody_is_asked() {
    let stage = Stage::new();
    let cwd = stage.cwd();
    let story = stage.play(async |cx| {
        let session = open(&cx, &cwd).await?;
        let mode = |id: &'static str| SetSessionModeRequest::new(session.clone(), id);
        cx.send_request(mode("bypass")).block_task().await?;
        prompt(&cx, &session, "@run touch bypassed").await?;
        cx.send_request(mode("plan")).block_task().await?;
        prompt(&cx, &session, "@run touch planned").await?;
        let unknown = cx.send_request(mode("dream")).block_task().await;
        assert_eq!(unknown.unwrap_err().code, ErrorCode::INVALID_PARAMS);
        prompt(&cx, &session, "@mode default\n@run touch asked").await
    });
    story.await.unwrap();
    assert!(cwd.join("bypassed").exists() && cwd.join("asked").exists());
    assert!(!cwd.join("planned").exists());
    assert_eq!(stage.seen.asked.lock().len(), 1);
    assert_eq!(stage.seen.updates("current_mode_update")[0]["currentModeId"], "default");
}

#[tokio::test]
async fn the_model_is_an_option() {
    let stage = Stage::new();
    let cwd = stage.cwd();
    let story = stage.play(async |cx| {
        let opened = cx.send_request(NewSessionRequest::new(&cwd)).block_task().await?;
        let session = opened.session_id.clone();
        let set = SetSessionConfigOptionRequest::new(session.clone(), "model", "demo-large");
        let changed = cx.send_request(set).block_task().await?;
        let wrong = SetSessionConfigOptionRequest::new(session, "model", "huge");
        assert!(cx.send_request(wrong).block_task().await.is_err());
        Ok(json!([opened.config_options, changed.config_options]))
    });
    let options = story.await.unwrap();
    assert_eq!(options[0][0]["currentValue"], "demo-small");
    assert_eq!(options[0][0]["category"], "model");
    assert_eq!(options[1][0]["currentValue"], "demo-large");
}

#[tokio::test]
async fn a_turn_that_waits_can_be_cancelled() {
    let stage = Stage::new();
    let cwd = stage.cwd();
    for waits in ["@wait 600000", "@run sleep 600"] {
        stage.seen.forget();
        let story = stage.play(async |cx| {
            let session = open(&cx, &cwd).await?;
            let told = format!("@say ready\n{waits}\n@say never");
            let cancelling = async {
                stage.seen.until(|seen| seen.said().contains("ready")).await;
                if waits.starts_with("@run") {
                    let runs = |seen: &Seen| seen.statuses().contains(&"in_progress".to_owned());
                    stage.seen.until(runs).await;
                }
                cx.send_notification(CancelNotification::new(session.clone()))
            };
            let (stopped, sent) = tokio::join!(prompt(&cx, &session, &told), cancelling);
            sent?;
            // The next turn is not affected.
            assert_eq!(prompt(&cx, &session, "@say again").await?, StopReason::EndTurn);
            stopped
        });
        assert_eq!(story.await.unwrap(), StopReason::Cancelled);
        assert!(!stage.seen.said().contains("never"));
        assert!(stage.seen.said().ends_with("again"));
    }
    assert_eq!(stage.seen.statuses(), ["pending", "in_progress", "failed"]);
}

#[tokio::test]
async fn a_cancelled_question_ends_the_turn() {
    let stage = Stage { choice: None, ..Stage::new() };
    let cwd = stage.cwd();
    let story = stage.play(async |cx| {
        let session = open(&cx, &cwd).await?;
        let cancelling = async {
            stage.seen.until(|seen| !seen.unanswered.lock().is_empty()).await;
            cx.send_notification(CancelNotification::new(session.clone()))?;
            let responder = stage.seen.unanswered.lock().remove(0);
            let cancelled = RequestPermissionOutcome::Cancelled;
            responder.respond(RequestPermissionResponse::new(cancelled))
        };
        let turn = prompt(&cx, &session, "@run touch made\n@say never");
        let (stopped, sent) = tokio::join!(turn, cancelling);
        sent?;
        stopped
    });
    assert_eq!(story.await.unwrap(), StopReason::Cancelled);
    assert!(!cwd.join("made").exists());
    assert_eq!(stage.seen.said(), "");
}

#[tokio::test]
async fn a_second_turn_in_a_session_is_refused() {
    let stage = Stage::new();
    let cwd = stage.cwd();
    let story = stage.play(async |cx| {
        let session = open(&cx, &cwd).await?;
        let second = async {
            stage.seen.until(|seen| seen.said().contains("ready")).await;
            let refused = prompt(&cx, &session, "@say no").await;
            cx.send_notification(CancelNotification::new(session.clone()))?;
            Ok::<_, Error>(refused)
        };
        let first = prompt(&cx, &session, "@say ready\n@wait 600000");
        let (first, refused) = tokio::join!(first, second);
        assert_eq!(refused?.unwrap_err().code, ErrorCode::INVALID_REQUEST);
        first
    });
    assert_eq!(story.await.unwrap(), StopReason::Cancelled);
}

#[tokio::test]
async fn a_turn_that_fails_is_answered_with_an_error() {
    let stage = Stage::new();
    let cwd = stage.cwd();
    let story = stage.play(async |cx| {
        let session = open(&cx, &cwd).await?;
        prompt(&cx, &session, "@say before\n@fail the model is out\n@say after").await
    });
    let error = story.await.unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (ErrorCode::INTERNAL_ERROR, "the model is out")
    );
    assert_eq!(stage.seen.said(), "before");
}

#[tokio::test]
async fn a_session_is_loaded_by_another_process_with_all_that_was_said() {
    let stage = Stage::new();
    let cwd = stage.cwd();
    let told = "@say one two\n@run true\n@say three";
    let first = stage.play(async |cx| {
        let session = open(&cx, &cwd).await?;
        prompt(&cx, &session, told).await?;
        Ok(session)
    });
    let session = first.await.unwrap();
    let call = stage.seen.updates("tool_call")[0]["toolCallId"].clone();
    stage.seen.forget();
    let second = stage.play(async |cx| {
        let load = LoadSessionRequest::new(session.clone(), &cwd);
        cx.send_request(load).block_task().await?;
        let replayed = stage.seen.chunks("user_message_chunk");
        assert_eq!(replayed, [told]);
        assert_eq!(stage.seen.said(), "one two\nthree");
        stage.seen.forget();
        let listed = cx.send_request(ListSessionsRequest::new()).block_task().await?;
        assert_eq!(listed.sessions[0].session_id, session);
        assert_eq!(listed.sessions[0].title.as_deref(), Some("@say one two"));
        let elsewhere = ListSessionsRequest::new().cwd(Path::new("/elsewhere"));
        assert!(cx.send_request(elsewhere).block_task().await?.sessions.is_empty());
        prompt(&cx, &session, "@run true").await
    });
    second.await.unwrap();
    assert_ne!(stage.seen.updates("tool_call")[0]["toolCallId"], call);
}

#[tokio::test]
async fn a_resumed_session_is_not_replayed() {
    let stage = Stage::new();
    let cwd = stage.cwd();
    let first = stage.play(async |cx| {
        let session = open(&cx, &cwd).await?;
        prompt(&cx, &session, "@say before").await?;
        Ok(session)
    });
    let session = first.await.unwrap();
    stage.seen.forget();
    let second = stage.play(async |cx| {
        let resume = ResumeSessionRequest::new(session.clone(), &cwd);
        cx.send_request(resume).block_task().await?;
        prompt(&cx, &session, "@say after").await
    });
    second.await.unwrap();
    assert_eq!(stage.seen.said(), "after");
    assert!(stage.seen.chunks("user_message_chunk").is_empty());
}

#[tokio::test]
async fn a_session_that_is_unknown_or_forgotten_or_closed_is_not_found() {
    let mut stage = Stage::new();
    let cwd = stage.cwd();
    let first = stage.play(async |cx| {
        for id in ["demo-unknown", "../../etc/passwd"] {
            let load = LoadSessionRequest::new(id, &cwd);
            let error = cx.send_request(load).block_task().await.unwrap_err();
            assert_eq!(error.code, ErrorCode::RESOURCE_NOT_FOUND, "{id}");
        }
        let session = open(&cx, &cwd).await?;
        cx.send_request(CloseSessionRequest::new(session.clone())).block_task().await?;
        let error = prompt(&cx, &session, "@say no").await.unwrap_err();
        assert_eq!(error.code, ErrorCode::RESOURCE_NOT_FOUND);
        Ok(session)
    });
    let session = first.await.unwrap();
    stage.options.forget = true;
    let second = stage.play(async |cx| {
        let load = LoadSessionRequest::new(session.clone(), &cwd);
        cx.send_request(load).block_task().await
    });
    assert_eq!(second.await.unwrap_err().code, ErrorCode::RESOURCE_NOT_FOUND);
}

#[tokio::test]
async fn what_an_agent_cannot_do_it_says_so() {
    let mut stage = Stage::new();
    stage.options.no_load = true;
    stage.options.no_modes = true;
    let cwd = stage.cwd();
    let story = stage.play(async |cx| {
        let hello = InitializeRequest::new(ProtocolVersion::V1);
        let answer = cx.send_request(hello).block_task().await?;
        assert!(!answer.agent_capabilities.load_session);
        assert!(answer.agent_capabilities.session_capabilities.resume.is_none());
        let opened = cx.send_request(NewSessionRequest::new(&cwd)).block_task().await?;
        assert!(opened.modes.is_none());
        let mode = SetSessionModeRequest::new(opened.session_id.clone(), "plan");
        let error = cx.send_request(mode).block_task().await.unwrap_err();
        assert_eq!(error.code, ErrorCode::METHOD_NOT_FOUND);
        let load = LoadSessionRequest::new(opened.session_id, &cwd);
        let error = cx.send_request(load).block_task().await.unwrap_err();
        assert_eq!(error.code, ErrorCode::METHOD_NOT_FOUND);
        Ok(())
    });
    story.await.unwrap();
}

#[tokio::test]
async fn a_flood_arrives_complete_and_in_order() {
    let stage = Stage::new();
    stage.prompt("@say first\n@flood 300 10\n@say last").await;
    let chunks = stage.seen.chunks("agent_message_chunk");
    assert_eq!((chunks.len(), chunks[0].as_str(), chunks[301].as_str()), (302, "first", "last"));
    assert!(chunks[1..301].iter().all(|chunk| chunk.len() == 10));
}

#[tokio::test]
async fn the_clock_goes_forward_and_is_everybodys() {
    let stage = Stage::new();
    let before = super::clock_ns();
    stage.prompt("@clock 3").await;
    let mut times = vec![before];
    let told = stage.seen.chunks("agent_message_chunk");
    times.extend(told.iter().map(|text| text.parse::<u64>().unwrap()));
    times.push(super::clock_ns());
    assert!(times.len() == 5 && times.is_sorted(), "{times:?}");
}

#[tokio::test]
async fn a_client_that_does_not_know_what_is_asked_of_it_is_quoted() {
    let stage = Stage::new();
    let told = "@unknown-request _demo/what\n@client-read a.txt\n@unknown-notification _demo/news\n\
                @unknown-update\n@permit-twice Do it\n@permit edit Edit it {\"a\":1}";
    assert_eq!(stage.prompt(told).await, StopReason::EndTurn);
    let said = stage.seen.said();
    assert!(said.starts_with("_demo/what: error -32601: "), "{said}");
    assert_eq!(said.matches("error -32601").count(), 2, "{said}");
    assert!(said.contains("permission: allow_once, allow_once\npermission: allow_once"), "{said}");
    let asked = stage.seen.asked.lock().clone();
    assert_eq!(asked[0]["toolCall"]["toolCallId"], asked[1]["toolCall"]["toolCallId"]);
    assert_eq!(asked[2]["toolCall"]["rawInput"], json!({ "a": 1 }));
}

#[tokio::test]
async fn garbage_stands_before_every_answer() {
    let stage = Stage::new();
    let options = DemoOptions { garbage: true, ..stage.options };
    let hello = request(1, "initialize", json!({ "protocolVersion": 1 }));
    let list = request(2, "session/list", json!({}));
    let received = exchange(options, &[hello, list], 4).await;
    let parsed: Vec<_> =
        received.iter().map(|line| serde_json::from_str::<Value>(line).ok()).collect();
    assert_eq!((&parsed[0], &parsed[2]), (&None, &None));
    assert_eq!(parsed[1].as_ref().unwrap()["result"]["protocolVersion"], 1);
    assert_eq!(parsed[3].as_ref().unwrap()["id"], 2);
}

#[tokio::test]
async fn a_silent_agent_answers_everything_but_initialize() {
    let stage = Stage::new();
    let options = DemoOptions { silent: true, ..stage.options };
    let hello = request(1, "initialize", json!({ "protocolVersion": 1 }));
    let list = request(2, "session/list", json!({}));
    let received = exchange(options, &[hello, list], 1).await;
    let answer: Value = serde_json::from_str(&received[0]).unwrap();
    assert_eq!(answer["id"], 2);
}
