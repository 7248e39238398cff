//! A process that stands still holds up nobody but those who wait for it, and answers when it goes on.

use std::sync::Arc;

use async_trait::async_trait;
use libtest_mimic::Trial;
use serde_json::json;
use tenon_host::Session;
use tenon_host::SessionOptions;
use tenon_host::Status;
use tenon_host::events::Filter;
use tenon_host::events::Subscriber;
use tenon_host::front::Decision;
use tenon_host::front::Front;
use tenon_host::session::PermissionCheck;
use tenon_host::session::ToolCall;
use tenon_host::tool::ResultType;
use tenon_protocol::permission::PermissionRequest;
use tenon_tests::resume;
use tenon_tests::stop;
use tenon_tests::trial;

use crate::world::World;
use crate::world::answer;
use crate::world::info;
use crate::world::patiently;
use crate::world::until_answer;
use crate::world::until_info;
use crate::world::with_tools;

/// Parts of a message that an agent says meanwhile.
const PARTS: usize = 100;

/// Calls that are made meanwhile, each after a question to the person.
const CALLS: usize = 20;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("stopping::an_extension_holds_up_nobody_else", extension),
        trial("stopping::the_zygote_holds_up_only_what_is_to_be_started", zygote),
    ]
}

/// Permits everything.
struct Person;

#[async_trait]
impl Front for Person {
    async fn request_permission(&self, _: &PermissionRequest) -> Option<Decision> {
        Some(Decision::approve())
    }
}

/// An extension with a tool that says its version, and one that says how many parts of messages it has heard.
fn listener(name: &str, version: u32) -> String {
    let tools = format!(
        "{{ name: \"version_{name}\", handler: () => \"{version}\" }},\
         {{ name: \"heard_{name}\", handler: () => String(heard) }}"
    );
    let listens = "session.on(\"assistant.message_delta\", () => { heard += 1; });\n";
    with_tools("let heard = 0;", &tools) + listens
}

async fn open(world: &World) -> Session {
    let front: Arc<dyn Front> = Arc::new(Person);
    world.open(SessionOptions { front: Some(front), ..world.options() }).await
}

/// Waits for an event; those before it are passed over.
async fn happens(
    client: &Subscriber,
    what: &str,
    is_it: impl Fn(&tenon_host::events::Event) -> bool,
) {
    patiently(what, async { while !is_it(&client.next().await.event) {} }).await;
}

/// What the agent says reaches the client and the other extension, and calls of that one are answered.
async fn goes_on(session: &Session, client: &Subscriber, name: &str) {
    for part in 0..PARTS {
        let data = json!({ "messageId": "m", "deltaContent": part.to_string() });
        let id = session.emit_ephemeral("assistant.message_delta", data);
        happens(client, "the client hears a part", |event| event.id == id).await;
    }
    assert_eq!(answer(session, &format!("heard_{name}")).await, PARTS.to_string());
    for _ in 0..CALLS {
        let call = ToolCall::new(format!("version_{name}"), json!({}));
        let asked = session.call_tool(ToolCall { permission: PermissionCheck::Ask, ..call });
        let result = patiently("an answer after a question", asked).await.unwrap().result;
        assert_eq!(result.result_type, ResultType::Success, "{result:?}");
    }
}

async fn extension() {
    let world = World::new();
    for name in ["still", "lively"] {
        world.extension(name, &listener(name, 1));
    }
    let session = open(&world).await;
    let before = info(&session, "still").unwrap();
    let pid = before.pid.unwrap();
    let client = session.subscribe("client", Filter::all());
    stop(pid);
    let waiting = tokio::spawn({
        let session = session.clone();
        async move { answer(&session, "version_still").await }
    });
    happens(&client, "the call is made", |event| {
        event.kind == "external_tool.requested" && event.data["toolName"] == "version_still"
    })
    .await;
    goes_on(&session, &client, "lively").await;
    // What was saved is loaded, too.
    world.replace("lively", &listener("lively", 2));
    patiently("the other is loaded again", session.refresh()).await;
    assert_eq!(answer(&session, "version_lively").await, "2");
    assert!(!waiting.is_finished());
    resume(pid);
    assert_eq!(patiently("the answer of the one that was stopped", waiting).await.unwrap(), "1");
    // It has missed nothing, and nothing was held against it.
    until_answer(&session, "heard_still", &PARTS.to_string()).await;
    let after = info(&session, "still").unwrap();
    let facts = |it: &tenon_host::ExtensionInfo| (it.status, it.pid, it.generation, it.failures);
    assert_eq!(facts(&after), facts(&before));
    world.close(session).await;
}

async fn zygote() {
    let world = World::new();
    world.extension("lively", &listener("lively", 1));
    let session = open(&world).await;
    let zygote = world.isolates.pids()[0];
    let client = session.subscribe("client", Filter::all());
    stop(zygote);
    goes_on(&session, &client, "lively").await;
    world.extension("late", &listener("late", 1));
    let starting = tokio::spawn({
        let session = session.clone();
        async move { session.refresh().await }
    });
    until_info(&session, "late", "starting", |info| info.status == Status::Starting).await;
    assert_eq!(answer(&session, "version_lively").await, "1");
    assert!(!starting.is_finished());
    resume(zygote);
    let report = patiently("the new one is started", starting).await.unwrap();
    assert_eq!((report.added, report.failed), (vec!["project:late".to_owned()], Vec::new()));
    assert_eq!(answer(&session, "version_late").await, "1");
    assert_eq!(world.isolates.pids()[0], zygote);
    world.close(session).await;
}
