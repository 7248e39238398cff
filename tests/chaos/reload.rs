//! Files change while extensions are at work.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use libtest_mimic::Trial;
use serde_json::json;
use tenon_host::ExtensionInfo;
use tenon_host::SessionOptions;
use tenon_host::Status;
use tenon_host::front::Decision;
use tenon_host::front::Front;
use tenon_host::session::CallError;
use tenon_host::session::ToolCall;
use tenon_host::session::ToolOutcome;
use tenon_protocol::permission::PermissionRequest;
use tenon_tests::trial;

use crate::world::GENEROUS;
use crate::world::World;
use crate::world::answer;
use crate::world::call;
use crate::world::info;
use crate::world::make;
use crate::world::patiently;
use crate::world::until;
use crate::world::until_answer;
use crate::world::until_generation;
use crate::world::until_info;
use crate::world::versioned;
use crate::world::wait_for;
use crate::world::with_tools;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("reload::a_call_is_finished_by_the_code_that_began_it", during_a_call),
        trial("reload::a_hook_is_finished_by_the_code_that_began_it", during_a_hook),
        trial("reload::a_change_while_the_last_one_is_loading_wins", during_a_load),
        trial("reload::a_broken_save_keeps_the_tool_and_a_good_one_replaces_it", broken),
        trial("reload::an_error_while_loading_keeps_the_tool", throws_at_load),
        trial("reload::a_file_that_is_written_in_two_steps", half_written),
        trial("reload::a_file_that_is_renamed_over", renamed_over),
        trial("reload::a_file_that_the_entry_imports", imported),
        trial("reload::what_does_not_change_is_not_loaded_again", unchanged),
        trial("reload::folders_come_and_go", come_and_go),
        trial("reload::the_first_extension_of_a_workspace", first),
        trial("reload::two_extensions_swap_the_names_of_their_tools", swap),
        trial("reload::one_that_has_not_changed_keeps_its_tool_from_a_newcomer", kept),
        trial("reload::every_content_that_was_not_reviewed_is_asked_about_once", review),
        trial("reload::a_port_that_somebody_else_has_keeps_the_last_good_one", foreign_port),
        trial("reload::a_restricted_extension_cannot_write_extensions", smuggling),
        trial("reload::a_name_that_is_taken_fails_the_newcomer_only", collision),
        trial("reload::a_new_generation_may_offer_other_tools", other_tools),
    ]
}

/// A tool that says when it was called and answers when it may.
fn slow(answer: &str, version: u32) -> String {
    let (started, wait) = (make("started"), wait_for("release"));
    with_tools(
        "",
        &format!(
            "{{ name: \"slow\", handler: async () => {{ {started} {wait} return \"{answer}\"; }} }},\
             {{ name: \"version\", handler: () => \"{version}\" }}"
        ),
    )
}

async fn during_a_call() {
    let world = World::new();
    world.extension("changing", &slow("old", 1));
    let session = world.live().await;
    let slow_call = tokio::spawn({
        let session = session.clone();
        async move { answer(&session, "slow").await }
    });
    world.marked("started").await;
    world.extension("changing", &slow("new", 2));
    until_answer(&session, "version", "2").await;
    assert!(!slow_call.is_finished());
    world.mark("release");
    assert_eq!(slow_call.await.unwrap(), "old");
    assert_eq!(answer(&session, "slow").await, "new");
    world.close(session).await;
}

async fn during_a_hook() {
    let hook = |text: &str| {
        let (started, wait) = (make("started"), wait_for("release"));
        format!(
            "import {{ joinSession }} from \"@github/copilot-sdk/extension\";\n\
             await joinSession({{ hooks: {{ onPreToolUse: async () => {{ {started} {wait} \
             return {{ additionalContext: \"{text}\" }}; }} }} }});\n"
        )
    };
    let world = World::new();
    world.extension("hooked", &hook("old"));
    world.extension("echo", &versioned("echo", 1));
    let session = world.live().await;
    let called = tokio::spawn({
        let session = session.clone();
        async move { session.call_tool(ToolCall::new("echo", json!({}))).await.unwrap() }
    });
    world.marked("started").await;
    world.extension("hooked", &hook("new"));
    until_generation(&session, "hooked", 2).await;
    world.mark("release");
    let said = |outcome: ToolOutcome| {
        outcome.before.into_iter().map(|context| context.text).collect::<Vec<_>>()
    };
    let outcome = patiently("the call ends", called).await.unwrap();
    assert_eq!(outcome.result.text_result_for_llm, "1");
    assert_eq!(said(outcome), ["old"]);
    let outcome = session.call_tool(ToolCall::new("echo", json!({}))).await.unwrap();
    assert_eq!(said(outcome), ["new"]);
    world.close(session).await;
}

async fn during_a_load() {
    let world = World::new();
    world.extension("changing", &versioned("version", 1));
    let session = world.live().await;
    let stalls = format!("{} {}", make("stalls"), wait_for("release"));
    let second = with_tools(&stalls, "{ name: \"version\", handler: () => \"2\" }");
    world.extension("changing", &second);
    world.marked("stalls").await;
    // Whoever asks is answered by the one that runs.
    assert_eq!(answer(&session, "version").await, "1");
    world.extension("changing", &versioned("version", 3));
    world.mark("release");
    until_answer(&session, "version", "3").await;
    let info = info(&session, "changing").unwrap();
    assert_eq!((info.status, info.error.is_none()), (Status::Running, true));
    world.close(session).await;
}

async fn broken() {
    let world = World::new();
    world.extension("changing", &versioned("version", 1));
    let session = world.live().await;
    world.extension(
        "changing",
        "import { joinSession } from \"@github/copilot-sdk/extension\";\n\nconst = 3;\n",
    );
    let info = until_info(&session, "changing", "in error", |info| info.error.is_some()).await;
    assert_eq!((info.status, info.generation), (Status::Running, 1));
    let error = info.error.unwrap();
    assert_eq!(error.what.line, Some(3), "{}", error.what);
    assert!(error.what.file.unwrap().ends_with("changing/extension.mjs"));
    assert_eq!(answer(&session, "version").await, "1");
    world.extension("changing", &versioned("version", 2));
    until_answer(&session, "version", "2").await;
    until_info(&session, "changing", "well", |info| info.error.is_none()).await;
    world.close(session).await;
}

async fn throws_at_load() {
    let world = World::new();
    world.extension("changing", &versioned("version", 1));
    let session = world.live().await;
    let source = with_tools("throw new Error(\"not today\");", "");
    world.extension("changing", &source);
    let info = until_info(&session, "changing", "in error", |info| info.error.is_some()).await;
    let error = info.error.unwrap().what;
    assert!(error.message.contains("not today"), "{error}");
    assert_eq!(error.line, Some(2), "{error}");
    assert_eq!(answer(&session, "version").await, "1");
    // The same file again is no change, and the error stays; what was there before is one.
    world.extension("changing", &versioned("version", 1));
    until_info(&session, "changing", "well", |info| info.error.is_none()).await;
    assert_eq!(answer(&session, "version").await, "1");
    world.close(session).await;
}

async fn half_written() {
    let world = World::new();
    world.extension("changing", &versioned("version", 1));
    let session = world.live().await;
    let source = versioned("version", 2);
    let (first, second) = source.split_at(source.len() - 20);
    let mut file = std::fs::File::create(world.folder("changing").join("extension.mjs")).unwrap();
    file.write_all(first.as_bytes()).unwrap();
    file.flush().unwrap();
    // Whoever writes is slow: half a file is there long enough to be looked at.
    until_info(&session, "changing", "in error", |info| info.error.is_some()).await;
    assert_eq!(answer(&session, "version").await, "1");
    file.write_all(second.as_bytes()).unwrap();
    drop(file);
    until_answer(&session, "version", "2").await;
    until_info(&session, "changing", "well", |info| info.error.is_none()).await;
    world.close(session).await;
}

async fn renamed_over() {
    let world = World::new();
    let entry = world.extension("changing", &versioned("version", 1));
    let session = world.live().await;
    // More than once: the file that was watched first is gone after the first.
    for version in 2..5 {
        let new = world.write("changing", ".extension.mjs.new", &versioned("version", version));
        std::fs::rename(new, &entry).unwrap();
        until_answer(&session, "version", &version.to_string()).await;
    }
    world.close(session).await;
}

async fn imported() {
    let world = World::new();
    world.write("changing", "lib/deep/version.mjs", "export const version = 1;\n");
    world.write("changing", "lib/all.mjs", "export * from \"./deep/version.mjs\";\n");
    let source = with_tools(
        "import { version } from \"./lib/all.mjs\";",
        "{ name: \"version\", handler: () => String(version) }",
    );
    world.extension("changing", &source);
    let session = world.live().await;
    assert_eq!(answer(&session, "version").await, "1");
    world.write("changing", "lib/deep/version.mjs", "export const version = 2;\n");
    until_answer(&session, "version", "2").await;
    world.close(session).await;
}

async fn unchanged() {
    let world = World::new();
    world.extension("same", &versioned("same", 1));
    world.extension("changing", &versioned("version", 1));
    let session = world.live().await;
    world.replace("same", &versioned("same", 1));
    world.replace("changing", &versioned("version", 2));
    until_answer(&session, "version", "2").await;
    // Looks at everything again: what was written before it is taken account of.
    let report = patiently("a refresh", session.refresh()).await;
    assert_eq!(report.reloaded, Vec::<String>::new());
    assert_eq!(info(&session, "same").unwrap().generation, 1);
    assert_eq!(info(&session, "changing").unwrap().generation, 2);
    world.close(session).await;
}

async fn come_and_go() {
    let world = World::new();
    world.extension("stays", &versioned("stays", 1));
    let session = world.live().await;
    world.extension("comes", &versioned("comes", 1));
    until_answer(&session, "comes", "1").await;
    std::fs::remove_dir_all(world.folder("comes")).unwrap();
    until("its tool is gone", || session.tools().iter().all(|it| it.tool.name != "comes")).await;
    assert!(matches!(call(&session, "comes").await, Err(CallError::UnknownTool { .. })));
    until("it is not listed", || session.find("comes").is_empty()).await;
    world.extension("comes", &versioned("comes", 2));
    until_answer(&session, "comes", "2").await;
    assert_eq!(answer(&session, "stays").await, "1");
    assert_eq!(info(&session, "stays").unwrap().generation, 1);
    world.close(session).await;
}

async fn first() {
    let world = World::new();
    let session = world.live().await;
    assert!(session.list().is_empty());
    world.extension("first", &versioned("first", 1));
    until_answer(&session, "first", "1").await;
    world.close(session).await;
}

async fn collision() {
    let world = World::new();
    let owner = world.extension("owner", &versioned("same", 1));
    let session = world.live().await;
    let newcomer = world.extension("newcomer", &versioned("same", 2));
    let failed = |info: &ExtensionInfo| info.status == Status::Failed;
    let info_of_newcomer = until_info(&session, "newcomer", "failed", failed).await;
    let message = info_of_newcomer.error.unwrap().what.message;
    for path in [&owner, &newcomer] {
        assert!(message.contains(&*path.to_string_lossy()), "{message}");
    }
    assert_eq!(answer(&session, "same").await, "1");
    assert_eq!(info(&session, "owner").unwrap().generation, 1);
    // Another name, and it runs.
    world.extension("newcomer", &versioned("other", 2));
    until_answer(&session, "other", "2").await;
    world.close(session).await;
}

async fn other_tools() {
    let world = World::new();
    world.extension("changing", &versioned("old", 1));
    let session = world.live().await;
    world.extension("changing", &versioned("young", 2));
    until_answer(&session, "young", "2").await;
    until("the old tool is gone", || session.tools().iter().all(|it| it.tool.name != "old")).await;
    assert!(call(&session, "old").await.is_err());
    world.close(session).await;
}

async fn swap() {
    let world = World::new();
    world.extension("one", &versioned("left", 1));
    world.extension("two", &versioned("right", 2));
    // Nobody looks before both are written.
    let session = world.open(world.options()).await;
    world.extension("one", &versioned("right", 1));
    world.extension("two", &versioned("left", 2));
    patiently("a refresh", session.refresh()).await;
    assert_eq!(answer(&session, "right").await, "1");
    assert_eq!(answer(&session, "left").await, "2");
    for name in ["one", "two"] {
        assert!(session.find(name)[0].error.is_none(), "{:?}", session.find(name)[0].error);
    }
    world.close(session).await;
}

async fn kept() {
    let world = World::new();
    world.extension("newcomer", &versioned("mine", 1));
    // Slow, so that the newcomer asks for the name while this one is being loaded again.
    let slow = "await new Promise((resolve) => setTimeout(resolve, 500));";
    world.extension("owner", &with_tools(slow, "{ name: \"taken\", handler: () => \"owner\" }"));
    let session = world.open(world.options()).await;
    let both = "{ name: \"mine\", handler: () => \"2\" },\
        { name: \"taken\", handler: () => \"newcomer\" }";
    world.extension("newcomer", &with_tools("", both));
    let report = patiently("a reload", session.reload()).await;
    assert_eq!(report.failed, ["project:newcomer"]);
    assert_eq!(answer(&session, "taken").await, "owner");
    assert_eq!(answer(&session, "mine").await, "1");
    world.close(session).await;
}

/// A person who is asked about extensions, and approves them or not.
#[derive(Default)]
struct Person {
    approves: AtomicBool,
    asked: AtomicUsize,
}

#[async_trait]
impl Front for Person {
    async fn request_permission(&self, request: &PermissionRequest) -> Option<Decision> {
        assert!(matches!(request, PermissionRequest::ExtensionReview { .. }), "{request:?}");
        let approves = self.approves.load(Ordering::Relaxed);
        self.asked.fetch_add(1, Ordering::Relaxed);
        Some(if approves { Decision::approve() } else { Decision::reject(None) })
    }
}

async fn review() {
    let world = World::new();
    world.config("[trust]\nreview = true\n");
    world.extension("reviewed", &versioned("version", 1));
    let person = Arc::new(Person::default());
    let asked = || person.asked.load(Ordering::Relaxed);
    let mut options = SessionOptions { watch: true, ..world.options() };
    options.front = Some(person.clone());
    let session = world.open(options).await;
    until("the person is asked", || asked() == 1).await;
    patiently("a reload", session.reload()).await;
    assert_eq!(info(&session, "reviewed").unwrap().status, Status::Untrusted);
    person.approves.store(true, Ordering::Relaxed);
    // What they did not want is now something else, and then something else again while it runs.
    for version in 2..4 {
        world.replace("reviewed", &versioned("version", version));
        until_answer(&session, "version", &version.to_string()).await;
        assert_eq!(asked(), version as usize);
    }
    world.close(session).await;
}

async fn foreign_port() {
    let world = World::new();
    world.extension("listens", &versioned("version", 1));
    let session = world.live().await;
    let foreign = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = foreign.local_addr().unwrap().port();
    let before = format!(
        "import {{ createServer }} from \"node:http\";\n\
         await new Promise((resolve, reject) => createServer().on(\"error\", reject)\
         .listen({port}, \"127.0.0.1\", resolve));\n"
    );
    world.extension("listens", &format!("{before}{}", versioned("version", 2)));
    let failed = |info: &ExtensionInfo| info.error.is_some();
    let info = until_info(&session, "listens", "an error is shown", failed).await;
    assert_eq!((info.status, info.generation), (Status::Running, 1), "{:?}", info.error);
    assert_eq!(answer(&session, "version").await, "1");
    world.close(session).await;
}

async fn smuggling() {
    let world = World::new();
    let write = "const { mkdirSync, writeFileSync } = await import(\"node:fs\"); \
        mkdirSync(\".github/extensions/smuggled\", { recursive: true }); \
        writeFileSync(\".github/extensions/smuggled/extension.mjs\", \"\"); return \"written\";";
    let tool = format!("{{ name: \"smuggle\", handler: async () => {{ {write} }} }}");
    world.extension("smuggler", &with_tools("", &tool));
    world.config(&format!("[extensions.smuggler]\nprofile = \"workspace\"\n{GENEROUS}"));
    let session = world.live().await;
    let result = call(&session, "smuggle").await.unwrap();
    assert!(result.text_result_for_llm.contains("no write access"), "{result:?}");
    world.close(session).await;
}
