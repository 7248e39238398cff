//! Extensions that do not stay well, and logs that cannot be written.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use libtest_mimic::Trial;
use tenon_host::ExtensionInfo;
use tenon_host::Session;
use tenon_host::SessionOptions;
use tenon_host::Status;
use tenon_host::session::EndReason;
use tenon_tests::trial;

use crate::world::World;
use crate::world::answer;
use crate::world::call;
use crate::world::make;
use crate::world::patiently;
use crate::world::until;
use crate::world::until_answer;
use crate::world::until_generation;
use crate::world::until_info;
use crate::world::versioned;
use crate::world::wait_for;
use crate::world::with_tools;

/// The first pause before an extension is started again.
const PAUSE: Duration = Duration::from_millis(40);

/// Failures after which an extension is not started again.
const TOO_OFTEN: usize = 5;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("supervision::a_crash_loop_slows_down_and_ends", crash_loop),
        trial("supervision::a_fixed_file_ends_a_crash_loop", fixed),
        trial(
            "supervision::a_crash_does_not_count_against_what_is_on_its_way",
            replaced_one_crashes,
        ),
        trial(
            "supervision::a_call_waits_for_the_version_that_replaces_a_crashed_one",
            crashed_before_replaced,
        ),
        trial("supervision::one_crash_is_forgiven", one_crash),
        trial("supervision::running_well_for_long_enough_forgives", well_again),
        trial("supervision::what_is_switched_off_stays_off_until_it_is_switched_on", switches),
        trial("supervision::logs_that_cannot_be_written_do_not_stop_the_session", no_log_folder),
        trial("supervision::a_full_disk_does_not_stop_the_session", full_disk),
    ]
}

/// Starts, says when, and crashes once it runs.
fn crashes() -> String {
    let source = with_tools(
        "import fs from \"node:fs\";\nfs.appendFileSync(\"starts\", `${Date.now()}\\n`);",
        "{ name: \"crashes\", handler: () => \"here\" }",
    );
    format!("{source}setTimeout(() => {{ throw new Error(\"not well\"); }}, 20);\n")
}

/// Every crash counts: no extension runs long enough to be thought well.
fn strict(world: &World) -> SessionOptions {
    let mut options = world.options();
    options.timing.restart_after = PAUSE;
    options.timing.healthy_after = Duration::from_secs(600);
    options
}

async fn crash_loop() {
    let world = World::new();
    world.extension("crashes", &crashes());
    world.extension("bystander", &versioned("ping", 1));
    let session = world.open(strict(&world)).await;
    let disabled = |info: &ExtensionInfo| info.status == Status::Disabled;
    let info = until_info(&session, "crashes", "switched off", disabled).await;
    let error = info.error.or(info.last_error).unwrap();
    assert!(error.what.message.contains("not well"), "{}", error.what);
    assert_eq!(answer(&session, "ping").await, "1");
    let starts: Vec<u64> = world.lines("starts").iter().map(|line| line.parse().unwrap()).collect();
    assert_eq!(starts.len(), TOO_OFTEN, "{starts:?}");
    for (pause, gap) in starts.windows(2).map(|pair| pair[1] - pair[0]).enumerate() {
        // A pause can be longer on a busy machine, but not shorter. The clock counts whole milliseconds.
        let at_least = (PAUSE.as_millis() as u64) << pause;
        assert!(gap + 2 >= at_least, "pause {pause} was {gap} ms: {starts:?}");
    }
    world.extension("crashes", &versioned("crashes", 2));
    let info = patiently("it is switched on", session.enable("crashes")).await.unwrap();
    assert_eq!(info.name, "crashes");
    until_answer(&session, "crashes", "2").await;
    world.close(session).await;
}

async fn fixed() {
    let world = World::new();
    world.extension("crashes", &crashes());
    let mut options = SessionOptions { watch: true, ..strict(&world) };
    // Long enough for the corrected file to be written before it is switched off, however busy the machine.
    options.timing.restart_after = Duration::from_secs(1);
    let session = world.open(options).await;
    until("it was started again", || world.lines("starts").len() > 1).await;
    world.replace("crashes", &versioned("crashes", 2));
    // Failures are cleared when the corrected version has taken over, not before.
    let is_well = |info: &ExtensionInfo| info.status == Status::Running && info.failures == 0;
    let well = until_info(&session, "crashes", "running", is_well).await;
    assert!(well.error.is_none());
    assert_eq!(answer(&session, "crashes").await, "2");
    world.close(session).await;
}

/// A tool that crashes the extension and never answers.
const CRASH: &str = "{ name: \"crash\", handler: () => { setTimeout(() => { throw new Error(\"once\"); }); return new Promise(() => {}); } }";

async fn replaced_one_crashes() {
    let world = World::new();
    world.extension("crashes", &with_tools("", CRASH));
    let mut options = SessionOptions { watch: true, ..strict(&world) };
    // It is not started again by us: what is on its way is there first.
    options.timing.restart_after = Duration::from_secs(600);
    let session = world.open(options).await;
    let stalls = format!("{} {}", make("stalls"), wait_for("release"));
    let fixed = with_tools(&stalls, "{ name: \"version\", handler: () => \"2\" }");
    world.replace("crashes", &fixed);
    world.marked("stalls").await;
    let result = call(&session, "crash").await.unwrap();
    assert!(result.text_result_for_llm.contains("once"), "{result:?}");
    world.mark("release");
    let info = until_generation(&session, "crashes", 2).await;
    assert_eq!((info.failures, info.error.is_none()), (0, true));
    assert_eq!(answer(&session, "version").await, "2");
    world.close(session).await;
}

async fn crashed_before_replaced() {
    let world = World::new();
    let tools = format!("{CRASH}, {{ name: \"version\", handler: () => \"1\" }}");
    world.extension("crashes", &with_tools("", &tools));
    let mut options = SessionOptions { watch: true, ..strict(&world) };
    // It is not started again by us: what is on its way is there first.
    options.timing.restart_after = Duration::from_secs(600);
    let session = world.open(options).await;
    let stalls = format!("{} {}", make("stalls"), wait_for("release"));
    world.replace("crashes", &with_tools(&stalls, "{ name: \"version\", handler: () => \"2\" }"));
    world.marked("stalls").await;
    let result = call(&session, "crash").await.unwrap();
    assert!(result.text_result_for_llm.contains("once"), "{result:?}");
    // The call comes first: it finds neither version running.
    let (version, ()) =
        tokio::join!(biased; answer(&session, "version"), async { world.mark("release") });
    assert_eq!(version, "2");
    world.close(session).await;
}

async fn well_again() {
    let world = World::new();
    world.extension("crashes", &with_tools("", CRASH));
    let mut options = world.options();
    options.timing.healthy_after = Duration::from_millis(100);
    let session = world.open(options).await;
    let result = call(&session, "crash").await.unwrap();
    assert!(result.text_result_for_llm.contains("once"), "{result:?}");
    until_info(&session, "crashes", "well again", |info| {
        info.status == Status::Running && info.generation == 2 && info.failures == 0
    })
    .await;
    world.close(session).await;
}

async fn one_crash() {
    let world = World::new();
    world.extension("crashes", &with_tools("", CRASH));
    let session = world.open(world.options()).await;
    let result = call(&session, "crash").await.unwrap();
    assert!(result.text_result_for_llm.contains("once"), "{result:?}");
    let info = until_generation(&session, "crashes", 2).await;
    assert!(info.error.is_none());
    assert!(info.last_error.unwrap().what.message.contains("once"));
    world.close(session).await;
}

async fn switches() {
    let world = World::new();
    world.extension("switched", &versioned("version", 1));
    let session = world.live().await;
    let info = patiently("it is switched off", session.disable("switched", "a test")).await;
    assert_eq!(info.unwrap().status, Status::Disabled);
    assert!(call(&session, "version").await.is_err());
    // A change on disk is not a word of the person.
    world.extension("switched", &versioned("version", 2));
    patiently("a refresh", session.refresh()).await;
    assert_eq!(session.find("switched")[0].status, Status::Disabled);
    patiently("it is switched on", session.enable("switched")).await.unwrap();
    assert_eq!(answer(&session, "version").await, "2");
    let unknown = session.disable("nobody", "a test").await.unwrap_err().to_string();
    assert!(unknown.contains("nobody"), "{unknown}");
    world.close(session).await;
}

/// Everything that the session says to whoever listens.
fn listen(session: &Session) -> Arc<Mutex<Vec<String>>> {
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let events = heard.clone();
    session.tap(move |event| {
        if event.kind == "session.warning" {
            events.lock().unwrap().push(event.data.to_string());
        }
    });
    heard
}

fn chatty() -> String {
    with_tools(
        "console.log(\"here I am\");",
        "{ name: \"talks\", handler: () => { console.log(\"said\"); return \"talked\"; } }",
    )
}

/// Whether a warning speaks of a path, as an event or in the extension's log.
fn warned(session: &Session, heard: &Mutex<Vec<String>>, path: &str) -> bool {
    let infos = session.find("chatty");
    let logs = infos.iter().flat_map(|info| session.log(info)).map(|line| line.text);
    heard.lock().unwrap().iter().cloned().chain(logs).any(|text| text.contains(path))
}

async fn no_log_folder() {
    let world = World::new();
    world.extension("chatty", &chatty());
    let logs = world.home().join("logs");
    std::fs::write(&logs, "not a folder").unwrap();
    let session = Session::new(SessionOptions { log_files: true, ..world.options() }).unwrap();
    let heard = listen(&session);
    patiently("the session loads", session.load()).await;
    assert_eq!(answer(&session, "talks").await, "talked");
    let path = logs.to_string_lossy();
    until("a warning about the logs", || warned(&session, &heard, &path)).await;
    // What is in memory is whole.
    until("the log in memory", || {
        session.log(&session.find("chatty")[0]).iter().any(|line| line.text == "said")
    })
    .await;
    world.close(session).await;
}

async fn full_disk() {
    let world = World::new();
    world.extension("chatty", &chatty());
    let options = SessionOptions { log_files: true, ..world.options() };
    let session = world.open(options.clone()).await;
    let file = session.find("chatty")[0].log_file.clone().expect("there is a log file");
    patiently("the session ends", session.end(EndReason::Complete)).await;
    drop(session);
    // Whatever is written to it from now on finds no room.
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let _ = std::fs::remove_file(&file);
    std::os::unix::fs::symlink("/dev/full", &file).unwrap();
    let session = Session::new(options).unwrap();
    let heard = listen(&session);
    patiently("the session loads", session.load()).await;
    for _ in 0..10 {
        assert_eq!(answer(&session, "talks").await, "talked");
    }
    let path = file.to_string_lossy();
    until("a warning about the log", || warned(&session, &heard, &path)).await;
    world.close(session).await;
}
