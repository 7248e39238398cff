//! `tenon acp`: an editor in front, the demo agent behind.

use libtest_mimic::Trial;
use serde_json::Value;
use serde_json::json;
use tenon_acp::rpc::RpcError;
use tenon_tests::Workspace;
use tenon_tests::resume;
use tenon_tests::stop;
use tenon_tests::trial;

use crate::client::Client;
use crate::client::permits;
use crate::client::select;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("proxy::a_turn_passes_with_its_updates", a_turn),
        trial("proxy::tools_of_extensions_are_called_in_the_turn", tools),
        trial("proxy::commands_of_extensions_are_offered_and_run", commands),
        trial("proxy::logs_and_denials_are_seen", denials),
        trial("proxy::what_is_unknown_passes_both_ways", unknown),
        trial("proxy::sessions_share_nothing_but_the_process", many_sessions),
        trial("proxy::a_cancelled_turn_says_so", cancelled),
        trial("proxy::a_loaded_session_is_replayed_without_hooks", loaded),
        trial("proxy::the_person_decides_in_the_editor", asked),
        trial("proxy::a_crashed_agent_is_reported_and_comes_back", crashed),
        trial("proxy::an_extension_that_stands_still_holds_up_nobody_else", standing_still),
        trial("proxy::the_mode_that_was_chosen_outlives_a_crash", chosen_mode),
        trial("proxy::a_resumed_session_has_its_commands_and_no_history", resumed),
        trial("proxy::prompts_with_more_than_text_pass_unchanged", blocks),
        trial("proxy::its_log_says_what_happened_and_not_what_was_said", log),
    ]
}

const GREETER: &str = r#"import { joinSession } from "@github/copilot-sdk/extension";
let prompts = 0;
const session = await joinSession({
  tools: [{ name: "greet", description: "Greets", skipPermission: true, handler: ({ who }) => `hello ${who}` }],
  commands: [{ name: "wave", description: "Waves", handler: async ({ args }) => { await session.log(`waved at ${args}`); } }],
  hooks: { onUserPromptSubmitted: async () => { prompts += 1; await session.log(`prompt ${prompts}`); } },
});
"#;

async fn a_turn() {
    let workspace = Workspace::new();
    let client = Client::with_demo(&workspace).await;
    let session = client.open(&workspace).await;
    let prompt = "@think hm\n@plan A; B\n@say hello there\n@usage 5 10\n@title Greetings";
    let answer = client.prompt(&session, prompt).await.unwrap();
    assert_eq!(answer["stopReason"], "end_turn");
    assert!(client.said(&session).contains("hello there"), "{}", client.said(&session));
    for kind in ["agent_thought_chunk", "plan", "usage_update", "session_info_update"] {
        assert!(!client.updates(&session, kind).is_empty(), "{kind} is missing");
    }
    assert!(client.end().await.success());
}

async fn tools() {
    let workspace = Workspace::new().extension("greeter", GREETER);
    let client = Client::with_demo(&workspace).await;
    let session = client.open(&workspace).await;
    client.prompt(&session, "@call greet {\"who\":\"you\"}\n@say $last").await.unwrap();
    assert!(client.said(&session).contains("hello you"), "{}", client.said(&session));
    assert!(!client.updates(&session, "tool_call").is_empty());
    assert!(client.end().await.success());
}

async fn commands() {
    let workspace = Workspace::new().extension("greeter", GREETER);
    let client = Client::with_demo(&workspace).await;
    let session = client.open(&workspace).await;
    let offered = |client: &Client| {
        let updates = client.updates(&session, "available_commands_update");
        let names = |update: &Value| {
            let commands = update["availableCommands"].as_array().unwrap().iter();
            commands.map(|it| it["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let both = |names: &Vec<String>| {
            ["wave", "shout"].iter().all(|it| names.iter().any(|name| name == it))
        };
        updates.iter().map(names).find(both)
    };
    client.until("commands of the agent and of extensions are offered", offered).await;
    let answer = client.prompt(&session, "/wave  the sea").await.unwrap();
    assert_eq!(answer["stopReason"], "end_turn");
    let waved = |client: &Client| client.said(&session).contains("waved at the sea").then_some(());
    client.until("the command's log is seen", waved).await;
    assert!(client.end().await.success());
}

async fn denials() {
    let guard = r#"import { joinSession } from "@github/copilot-sdk/extension";
await joinSession({ hooks: { onPreToolUse: ({ toolName }) => toolName === "bash" ? { permissionDecision: "deny", permissionDecisionReason: "no shells" } : undefined } });
"#;
    let workspace = Workspace::new().extension("guard", guard);
    let client = Client::with_demo(&workspace).await;
    let session = client.open(&workspace).await;
    client.prompt(&session, "@run touch made\n@say done").await.unwrap();
    let seen = |client: &Client| {
        let said = client.said(&session);
        (said.contains("project:guard") && said.contains("no shells")).then_some(())
    };
    client.until("the denial is seen, with its author", seen).await;
    assert!(!workspace.cwd().join("made").exists());
    assert!(
        client.requests("session/request_permission").is_empty(),
        "the person was asked in vain"
    );
    // What the guard said reaches the agent with the next prompt.
    client.prompt(&session, "@prompt").await.unwrap();
    let said = client.said(&session);
    assert!(said.contains("<context from=\"project:guard\">"), "{said}");
    assert!(client.end().await.success());
}

async fn unknown() {
    let workspace = Workspace::new();
    let answers = |method: &str, params: &Value| match method {
        "_demo/hello" => Ok(json!({ "world": params["sessionId"].is_string() })),
        _ => permits(method, params),
    };
    let client = Client::start(&workspace, &["-a", "demo"], answers);
    client.initialize().await;
    let session = client.open(&workspace).await;
    client
        .prompt(
            &session,
            "@unknown-request _demo/hello\n@unknown-notification _demo/note\n@unknown-update",
        )
        .await
        .unwrap();
    assert_eq!(client.updates(&session, "demo_unknown_update").len(), 1);
    for method in ["_demo/hello", "_demo/note"] {
        let requests = client.requests(method);
        assert_eq!(requests.len(), 1, "{method}");
        assert_eq!(requests[0]["sessionId"], session.as_str(), "{method}");
    }
    assert!(client.said(&session).contains("\"world\":true"), "{}", client.said(&session));
    let error = client.request("_client/none", json!({ "x": 1 })).await.unwrap_err();
    assert_eq!(error.code, RpcError::METHOD_NOT_FOUND);
    assert!(client.end().await.success());
}

async fn many_sessions() {
    let counter = r#"import { joinSession } from "@github/copilot-sdk/extension";
let count = 0;
await joinSession({ tools: [{ name: "count", description: "Counts", skipPermission: true, handler: () => `count is ${++count}` }] });
"#;
    let workspace = Workspace::new().extension("counter", counter);
    let client = Client::with_demo(&workspace).await;
    let mut sessions = Vec::new();
    for _ in 0..4 {
        sessions.push(client.open(&workspace).await);
    }
    let prompts =
        sessions.iter().map(|session| client.prompt(session, "@call count {}\n@say $last"));
    for answer in futures::future::join_all(prompts).await {
        assert_eq!(answer.unwrap()["stopReason"], "end_turn");
    }
    for session in &sessions {
        assert!(client.said(session).contains("count is 1"), "{}", client.said(session));
    }
    assert!(client.end().await.success());
}

async fn cancelled() {
    let workspace = Workspace::new();
    let client = Client::with_demo(&workspace).await;
    let session = client.open(&workspace).await;
    let prompt = client.prompt(&session, "@say waiting\n@wait 600000\n@say never");
    let cancel = async {
        let waits = |client: &Client| client.said(&session).contains("waiting").then_some(());
        client.until("the turn has begun", waits).await;
        client.connection.notify("session/cancel", json!({ "sessionId": session })).await.unwrap();
    };
    let (answer, ()) = tokio::join!(prompt, cancel);
    assert_eq!(answer.unwrap()["stopReason"], "cancelled");
    assert!(!client.said(&session).contains("never"));
    let answer = client.prompt(&session, "@say again").await.unwrap();
    assert_eq!(answer["stopReason"], "end_turn");
    assert!(client.end().await.success());
}

async fn loaded() {
    let workspace = Workspace::new().extension("greeter", GREETER);
    let client = Client::with_demo(&workspace).await;
    let session = client.open(&workspace).await;
    client.prompt(&session, "@say remembered words").await.unwrap();
    assert!(client.end().await.success());

    let client = Client::with_demo(&workspace).await;
    let params = json!({ "sessionId": session, "cwd": workspace.cwd(), "mcpServers": [] });
    client.request("session/load", params).await.unwrap();
    let said = client.said(&session);
    assert!(said.contains("remembered words"), "{said}");
    assert!(!said.contains("prompt 1"), "a prompt hook ran for what was replayed: {said}");
    client.prompt(&session, "@say and more").await.unwrap();
    let hooked = |client: &Client| client.said(&session).contains("prompt 1").then_some(());
    client.until("the hook runs for the first prompt of this time", hooked).await;
    assert!(client.end().await.success());
}

async fn asked() {
    let workspace = Workspace::new();
    let answers = |method: &str, params: &Value| match method {
        "session/request_permission" if params["toolCall"]["title"].to_string().contains("yes") => {
            select(params, "allow_once")
        }
        "session/request_permission" => select(params, "reject_once"),
        _ => permits(method, params),
    };
    let client = Client::start(&workspace, &["-a", "demo"], answers);
    client.initialize().await;
    let session = client.open(&workspace).await;
    client.prompt(&session, "@run touch yes\n@run touch no").await.unwrap();
    assert_eq!(client.requests("session/request_permission").len(), 2);
    assert!(workspace.cwd().join("yes").exists());
    assert!(!workspace.cwd().join("no").exists());
    assert!(client.end().await.success());
}

async fn crashed() {
    let workspace = Workspace::new();
    let client = Client::with_demo(&workspace).await;
    let session = client.open(&workspace).await;
    client.prompt(&session, "@say one").await.unwrap();
    let error = client.prompt(&session, "@crash 3").await.unwrap_err();
    assert!(error.message.contains("exit code 3"), "{error}");
    let answer = client.prompt(&session, "@say two").await.unwrap();
    assert_eq!(answer["stopReason"], "end_turn");
    assert!(client.said(&session).contains("two"));
    assert!(client.end().await.success());
}

/// An extension that tells in which process it is.
const HOLDER: &str = r#"import { joinSession } from "@github/copilot-sdk/extension";
await joinSession({
  tools: [
    { name: "process", description: "Tells", skipPermission: true, handler: () => `process ${process.pid}` },
    { name: "hold", description: "Holds", skipPermission: true, handler: () => "held" },
  ],
});
"#;

async fn standing_still() {
    let workspace = Workspace::new().extension("greeter", GREETER).extension("holder", HOLDER);
    let client = Client::with_demo(&workspace).await;
    let first = client.open(&workspace).await;
    client.prompt(&first, "@call process {}\n@say $last").await.unwrap();
    let said = client.said(&first);
    let pid = said.rsplit_once("process ").unwrap().1;
    let pid: String = pid.chars().take_while(char::is_ascii_digit).collect();
    let pid = pid.parse().unwrap();
    stop(pid);
    let holding = client.prompt(&first, "@say waiting\n@call hold {}\n@say $last");
    let meanwhile = async {
        let waits = |client: &Client| client.said(&first).contains("waiting").then_some(());
        client.until("the turn has begun", waits).await;
        // What the agent says in another session passes, and its calls are answered.
        let second = client.open(&workspace).await;
        let prompt = "@think hm\n@plan A; B\n@call greet {\"who\":\"you\"}\n@say $last";
        let answer = client.prompt(&second, prompt).await.unwrap();
        assert_eq!(answer["stopReason"], "end_turn");
        assert!(client.said(&second).contains("hello you"), "{}", client.said(&second));
        for kind in ["agent_thought_chunk", "plan", "tool_call"] {
            assert!(!client.updates(&second, kind).is_empty(), "{kind} is missing");
        }
        assert!(!client.said(&first).contains("held"), "{}", client.said(&first));
        resume(pid);
    };
    let (answer, ()) = tokio::join!(holding, meanwhile);
    assert_eq!(answer.unwrap()["stopReason"], "end_turn");
    assert!(client.said(&first).contains("held"), "{}", client.said(&first));
    assert!(client.end().await.success());
}

async fn chosen_mode() {
    let workspace = Workspace::new();
    let client = Client::with_demo(&workspace).await;
    let session = client.open(&workspace).await;
    let params = json!({ "sessionId": session, "modeId": "plan" });
    client.request("session/set_mode", params).await.unwrap();
    client.prompt(&session, "@crash 3").await.unwrap_err();
    // In this mode nothing is changed, and it is an error to try.
    let _ = client.prompt(&session, "@run touch made").await;
    assert!(!workspace.cwd().join("made").exists(), "{}", client.said(&session));
    assert!(client.end().await.success());
}

async fn resumed() {
    let workspace = Workspace::new();
    let client = Client::with_demo(&workspace).await;
    let session = client.open(&workspace).await;
    client.prompt(&session, "@say long ago").await.unwrap();
    assert!(client.end().await.success());
    let client = Client::with_demo(&workspace).await;
    let params = json!({ "sessionId": session, "cwd": workspace.cwd(), "mcpServers": [] });
    client.request("session/resume", params).await.unwrap();
    let offered = |client: &Client| {
        let updates = client.updates(&session, "available_commands_update");
        updates.iter().any(|it| it.to_string().contains("\"shout\"")).then_some(())
    };
    client.until("the agent's commands are offered", offered).await;
    client.prompt(&session, "@say now").await.unwrap();
    assert_eq!(client.said(&session), "now");
    assert!(client.end().await.success());
}

async fn blocks() {
    let workspace = Workspace::new();
    let client = Client::with_demo(&workspace).await;
    let session = client.open(&workspace).await;
    let link = json!({ "type": "resource_link", "uri": "file:///a.txt", "name": "a.txt", "_meta": { "kept": true } });
    let prompt = json!([{ "type": "text", "text": "@prompt" }, link]);
    let params = json!({ "sessionId": session, "prompt": prompt, "_meta": { "mine": 1 } });
    client.request("session/prompt", params).await.unwrap();
    let said = client.said(&session);
    assert!(said.contains("file:///a.txt"), "{said}");
    assert!(client.end().await.success());
}

async fn log() {
    let secret = "correct horse battery staple";
    let workspace = Workspace::new().extension("greeter", GREETER).env("TENON_LOG", "trace");
    let client = Client::with_demo(&workspace).await;
    let session = client.open(&workspace).await;
    let prompt = format!(
        "@call extensions_reload {{}}\n@call greet {{\"who\":\"{secret}\"}}\n@say $last {secret}"
    );
    client.prompt(&session, &prompt).await.unwrap();
    assert!(client.said(&session).contains(secret));
    assert!(client.end().await.success());
    let log = std::fs::read_to_string(workspace.home().join("logs/tenon-acp.log")).unwrap();
    let spans = [
        "load{session=",
        "reload{session=",
        "start{extension=project:greeter}",
        "request{method=session/prompt}",
        "prompt{session=",
        "agent{agent=demo}",
        "call{tool=greet}",
        "hook{hook=\"onUserPromptSubmitted\" extension=project:greeter}",
        "process{extension=project:greeter",
        "process{agent=true",
    ];
    for span in spans {
        assert!(log.contains(span), "{span} is missing: {log}");
    }
    for said in [secret, "waved", "Greets"] {
        assert!(!log.contains(said), "{said} is in the log: {log}");
    }
}
