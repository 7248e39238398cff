//! Code that appears or changes while an extension with a smaller grant runs waits for the person.

use std::sync::Arc;
use std::sync::Mutex;

use async_trait::async_trait;
use libtest_mimic::Trial;
use serde_json::json;
use tenon_host::ExtensionInfo;
use tenon_host::Session;
use tenon_host::SessionOptions;
use tenon_host::Status;
use tenon_host::front::Decision;
use tenon_host::front::Front;
use tenon_host::session::EndReason;
use tenon_host::trust::TrustStore;
use tenon_host::trust::content_hash;
use tenon_protocol::permission::PermissionRequest;
use tenon_tests::trial;

use crate::world::GENEROUS;
use crate::world::World;
use crate::world::answer;
use crate::world::call_with;
use crate::world::info;
use crate::world::patiently;
use crate::world::until;
use crate::world::until_answer;
use crate::world::until_info;
use crate::world::versioned;
use crate::world::with_tools;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("approval::what_appears_waits_with_nobody_to_ask_until_it_is_reviewed", appears),
        trial("approval::what_changes_waits_while_the_old_generation_goes_on", changes),
        trial("approval::the_person_is_asked_and_their_answer_counts", asked),
        trial("approval::what_may_do_no_more_loads_at_once", no_more),
        trial("approval::what_waits_does_so_in_the_next_session_too", later),
        trial("approval::what_nobody_noticed_waits_in_the_next_session", unnoticed),
        trial("approval::what_cannot_be_read_waits_beside_it_and_later_too", unreadable),
        trial("approval::what_waits_takes_nobodys_name", nobodys_name),
        trial("approval::the_record_of_a_session_is_not_the_extensions", own_files),
        trial("approval::a_crash_does_not_load_what_waits", crash),
        trial("approval::a_file_outside_that_changes_waits_like_one_inside", outside),
        trial("approval::a_package_of_the_repository_that_changes_waits", package),
        trial("approval::a_package_that_comes_nearer_is_not_loaded", nearer),
        trial("approval::what_changed_outside_waits_in_the_next_session_too", outside_later),
        trial("approval::what_tenon_wrote_for_the_agent_loads_at_once", scaffolded),
    ]
}

/// A workspace with an extension that may do nothing.
fn restricted() -> World {
    let world = World::new();
    world.extension("meek", &versioned("meek", 1));
    world.config(&format!("[extensions.meek]\nprofile = \"none\"\n{GENEROUS}"));
    world
}

fn approve(world: &World, name: &str) {
    let (folder, store) = (world.folder(name), TrustStore::of(&world.home()));
    store.review(&folder, &store.content_to_review(&folder).unwrap()).unwrap();
}

async fn until_waiting(session: &Session, name: &str) -> ExtensionInfo {
    until_info(session, name, "it waits", |info| info.waits_for_approval).await
}

async fn appears() {
    let world = restricted();
    let session = world.live().await;
    world.extension("newcomer", &versioned("version", 1));
    let waits = until_waiting(&session, "newcomer").await;
    assert_eq!((waits.status, waits.generation), (Status::Untrusted, 0));
    let error = waits.error.unwrap();
    assert!(error.what.message.contains("it appeared while project:meek ran"), "{error:?}");
    assert!(error.hint.unwrap().contains("tenon trust --review newcomer"));
    let report = patiently("a reload", session.reload()).await;
    assert_eq!(report.waiting, ["project:newcomer"]);
    assert_eq!(report.reloaded, ["project:meek"]);
    approve(&world, "newcomer");
    patiently("a refresh", session.refresh()).await;
    // The watcher may have begun with it already.
    until_answer(&session, "version", "1").await;
    assert!(!info(&session, "newcomer").unwrap().waits_for_approval);
    world.close(session).await;
}

async fn changes() {
    let world = restricted();
    world.extension("mighty", &versioned("version", 1));
    let session = world.live().await;
    world.replace("mighty", &versioned("version", 2));
    let waits = until_waiting(&session, "mighty").await;
    assert_eq!((waits.status, waits.generation), (Status::Running, 1));
    assert!(waits.error.unwrap().what.message.contains("it changed while project:meek ran"));
    let report = patiently("a reload", session.reload()).await;
    assert_eq!(report.waiting, ["project:mighty"]);
    assert_eq!(answer(&session, "version").await, "1");
    // Its own content is nothing new.
    world.replace("mighty", &versioned("version", 1));
    until_info(&session, "mighty", "nothing waits", |info| {
        !info.waits_for_approval && info.error.is_none()
    })
    .await;
    world.replace("mighty", &versioned("version", 3));
    until_waiting(&session, "mighty").await;
    approve(&world, "mighty");
    patiently("a refresh", session.refresh()).await;
    // The watcher may have begun with it already.
    until_answer(&session, "version", "3").await;
    world.close(session).await;
}

/// A person who approves some contents, by their hashes.
#[derive(Default)]
struct Person {
    approves: Mutex<Vec<String>>,
    asked: Mutex<Vec<String>>,
}

#[async_trait]
impl Front for Person {
    async fn request_permission(&self, request: &PermissionRequest) -> Option<Decision> {
        let PermissionRequest::ExtensionReview { intention, hash, .. } = request else {
            panic!("{request:?} is no review");
        };
        assert!(intention.contains("while project:meek ran"), "{intention}");
        let approves = self.approves.lock().unwrap().contains(hash);
        self.asked.lock().unwrap().push(hash.clone());
        Some(if approves { Decision::approve() } else { Decision::reject(None) })
    }
}

async fn asked() {
    let world = restricted();
    world.extension("mighty", &versioned("version", 1));
    let person = Arc::new(Person::default());
    let mut options = SessionOptions { watch: true, ..world.options() };
    options.front = Some(person.clone());
    let session = world.open(options).await;
    let asked = || person.asked.lock().unwrap().len();
    world.replace("mighty", &versioned("version", 2));
    until("the person is asked", || asked() == 1).await;
    until_waiting(&session, "mighty").await;
    patiently("a reload", session.reload()).await;
    // Refused is refused: the same content is not asked about again.
    assert_eq!((asked(), answer(&session, "version").await.as_str()), (1, "1"));
    let other = world.home().join("other");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::write(other.join("extension.mjs"), versioned("version", 3)).unwrap();
    person.approves.lock().unwrap().push(content_hash(&other).unwrap());
    world.replace("mighty", &versioned("version", 3));
    until_answer(&session, "version", "3").await;
    world.close(session).await;
}

async fn no_more() {
    let world = restricted();
    world.extension("equal", &versioned("equal", 1));
    let none = format!("profile = \"none\"\n{GENEROUS}");
    world.config(&format!("[extensions.meek]\n{none}[extensions.equal]\n{none}"));
    let session = world.live().await;
    world.replace("equal", &versioned("equal", 2));
    until_answer(&session, "equal", "2").await;
    world.replace("meek", &versioned("meek", 2));
    until_answer(&session, "meek", "2").await;
    world.close(session).await;
}

async fn later() {
    let world = restricted();
    world.extension("mighty", &versioned("version", 1));
    let session = world.live().await;
    world.replace("mighty", &versioned("version", 2));
    until_waiting(&session, "mighty").await;
    patiently("the session ends", session.end(EndReason::Complete)).await;
    drop(session);
    // Also where nothing restricted runs any more.
    world.config("");
    let session = world.open(world.options()).await;
    let waits = info(&session, "mighty").unwrap();
    assert_eq!((waits.status, waits.waits_for_approval), (Status::Untrusted, true));
    world.replace("mighty", &versioned("version", 1));
    patiently("a refresh", session.refresh()).await;
    assert_eq!(answer(&session, "version").await, "1");
    // Now it is as in any session without restricted extensions.
    world.replace("mighty", &versioned("version", 3));
    patiently("a refresh", session.refresh()).await;
    assert_eq!(answer(&session, "version").await, "3");
    world.close(session).await;
}

async fn unnoticed() {
    let world = restricted();
    let session = world.open(world.options()).await;
    world.extension("newcomer", &versioned("version", 1));
    patiently("the session ends", session.end(EndReason::Complete)).await;
    drop(session);
    let session = world.open(world.options()).await;
    assert_eq!(info(&session, "newcomer").unwrap().status, Status::Untrusted);
    world.close(session).await;
}

async fn unreadable() {
    let world = restricted();
    let session = world.live().await;
    let beside = world.open(world.options()).await;
    let folder = world.folder("newcomer");
    std::fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink("/proc/self/mem", folder.join("k.mjs")).unwrap();
    world.extension("newcomer", &versioned("version", 1));
    let report = patiently("a refresh", beside.refresh()).await;
    assert_eq!(report.waiting, ["project:newcomer"]);
    let error = until_waiting(&session, "newcomer").await.error.unwrap().what.message;
    assert!(error.contains("its files cannot be read"), "{error}");
    for session in [session, beside] {
        patiently("the session ends", session.end(EndReason::Complete)).await;
    }
    let session = world.open(world.options()).await;
    assert_eq!(info(&session, "newcomer").unwrap().status, Status::Untrusted);
    std::fs::remove_file(folder.join("k.mjs")).unwrap();
    approve(&world, "newcomer");
    patiently("a refresh", session.refresh()).await;
    // The watcher may have begun with it already.
    until_answer(&session, "version", "1").await;
    world.close(session).await;
}

async fn nobodys_name() {
    let world = restricted();
    let guard = world.home().join("extensions/guard");
    std::fs::create_dir_all(&guard).unwrap();
    std::fs::write(guard.join("extension.mjs"), versioned("guarded_by", 1)).unwrap();
    let options = SessionOptions { user_folders: vec![world.home()], ..world.options() };
    let session = world.open(options).await;
    world.extension("guard", &versioned("guarded_by", 2));
    let report = patiently("a refresh", session.refresh()).await;
    assert_eq!(report.waiting, ["project:guard"]);
    assert_eq!(answer(&session, "guarded_by").await, "1");
    let status = |id: &str| session.find(id).pop().unwrap().status;
    assert_eq!(status("user:guard"), Status::Running);
    assert_eq!(status("project:guard"), Status::Untrusted);
    approve(&world, "guard");
    patiently("a refresh", session.refresh()).await;
    assert_eq!(status("user:guard"), Status::Shadowed);
    until_answer(&session, "guarded_by", "2").await;
    world.close(session).await;
}

async fn own_files() {
    let world = World::new();
    // A tool for each file, which says whether it could be written.
    let files = [
        ("record", "events.jsonl", "no"),
        ("agent", "agent.json", "no"),
        ("file", "files/a", "yes"),
    ];
    let tools = files.map(|(tool, file, _)| {
        format!(
            "{{ name: \"{tool}\", handler: () => {{ try {{ \
             appendFileSync(`${{session.workspacePath}}/{file}`, \"x\"); return \"yes\"; \
             }} catch {{ return \"no\"; }} }} }}"
        )
    });
    let import = "import { appendFileSync } from \"node:fs\";";
    world.extension("writer", &with_tools(import, &tools.join(", ")));
    world.config(&format!("[extensions.writer]\nprofile = \"workspace\"\n{GENEROUS}"));
    let session = world.open(SessionOptions { record: true, ..world.options() }).await;
    for (tool, file, written) in files {
        assert_eq!(answer(&session, tool).await, written, "{file}");
    }
    world.close(session).await;
}

async fn crash() {
    let world = restricted();
    world.extension("mighty", &versioned("version", 1));
    let session = world.open(world.options()).await;
    world.replace("mighty", &versioned("version", 2));
    let pid = info(&session, "mighty").unwrap().pid.unwrap();
    crate::world::kill(pid, "KILL").await;
    let waits = until_waiting(&session, "mighty").await;
    assert_eq!((waits.status, waits.generation), (Status::Untrusted, 1));
    world.close(session).await;
}

/// Writes a file of the repository at one go.
fn put(world: &World, file: &str, text: &str) {
    let path = world.cwd().join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let new = world.home().join("put.new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, path).unwrap();
}

/// An extension whose tool answers what a module exports.
fn importing(module: &str) -> String {
    let import = format!("import version from {module:?};");
    with_tools(&import, "{ name: \"version\", handler: () => `${version}` }")
}

async fn outside() {
    let world = restricted();
    put(&world, "lib.mjs", "export default 1;");
    world.extension("mighty", &importing("../../../lib.mjs"));
    let session = world.live().await;
    assert_eq!(answer(&session, "version").await, "1");
    put(&world, "lib.mjs", "export default 2;");
    let waits = until_waiting(&session, "mighty").await;
    assert_eq!((waits.status, waits.generation), (Status::Running, 1));
    let error = waits.error.unwrap().what.message;
    assert!(error.contains("lib.mjs, which it imports, changed while project:meek ran"), "{error}");
    assert_eq!(answer(&session, "version").await, "1");
    // Its own content is nothing new.
    put(&world, "lib.mjs", "export default 1;");
    until_info(&session, "mighty", "nothing waits", |info| !info.waits_for_approval).await;
    put(&world, "lib.mjs", "export default 3;");
    until_waiting(&session, "mighty").await;
    approve(&world, "mighty");
    patiently("a refresh", session.refresh()).await;
    // The watcher may have begun with it already.
    until_answer(&session, "version", "3").await;
    assert!(!info(&session, "mighty").unwrap().waits_for_approval);
    world.close(session).await;
}

async fn package() {
    let world = restricted();
    put(&world, "node_modules/dep/package.json", r#"{ "type": "module", "main": "one.js" }"#);
    put(&world, "node_modules/dep/one.js", "export default 1;");
    world.extension("mighty", &importing("dep"));
    let session = world.live().await;
    assert_eq!(answer(&session, "version").await, "1");
    for (file, text) in [
        ("node_modules/dep/one.js", "export default 2;"),
        ("node_modules/dep/package.json", r#"{ "type": "module", "main": "other.js" }"#),
    ] {
        let before = std::fs::read_to_string(world.cwd().join(file)).unwrap();
        put(&world, file, text);
        // Packages are not watched.
        let report = patiently("a reload", session.reload()).await;
        assert_eq!(report.waiting, ["project:mighty"], "{file}");
        let error = info(&session, "mighty").unwrap().error.unwrap().what.message;
        assert!(error.contains(file), "{error}");
        put(&world, file, &before);
        let report = patiently("a reload", session.reload()).await;
        assert_eq!((report.waiting, report.failed), (Vec::new(), Vec::new()));
    }
    put(&world, "node_modules/dep/one.js", "export default 3;");
    patiently("a reload", session.reload()).await;
    approve(&world, "mighty");
    patiently("a refresh", session.refresh()).await;
    // The watcher may have begun with it already.
    until_answer(&session, "version", "3").await;
    world.close(session).await;
}

async fn nearer() {
    let world = restricted();
    let package = |folder: &str, version: u32| {
        put(
            &world,
            &format!("{folder}/dep/package.json"),
            r#"{ "type": "module", "main": "i.js" }"#,
        );
        put(&world, &format!("{folder}/dep/i.js"), &format!("export default {version};"));
    };
    package("node_modules", 1);
    world.extension("mighty", &importing("dep"));
    let session = world.live().await;
    package(".github/node_modules", 2);
    // None of the files that were loaded has changed, so only the load itself meets the new one.
    patiently("a reload", session.reload()).await;
    let waits = until_waiting(&session, "mighty").await;
    assert_eq!(waits.status, Status::Running);
    let error = waits.error.unwrap().what.message;
    assert!(error.contains(".github/node_modules/dep/i.js"), "{error}");
    assert!(error.contains("project:meek"), "{error}");
    assert_eq!(answer(&session, "version").await, "1");
    approve(&world, "mighty");
    patiently("a refresh", session.refresh()).await;
    // The watcher may have begun with it already.
    until_answer(&session, "version", "2").await;
    world.close(session).await;
}

async fn outside_later() {
    let world = restricted();
    put(&world, "lib.mjs", "export default 1;");
    world.extension("mighty", &importing("../../../lib.mjs"));
    let session = world.open(world.options()).await;
    put(&world, "lib.mjs", "export default 2;");
    patiently("the session ends", session.end(EndReason::Complete)).await;
    drop(session);
    // Also where nothing restricted runs any more, and where the person reviews what is in the folder.
    world.config("[trust]\nreview = true\n");
    let store = TrustStore::of(&world.home());
    let session = world.open(world.options()).await;
    let waits = info(&session, "mighty").unwrap();
    assert_eq!(waits.status, Status::Untrusted);
    let held = store.held(&world.folder("mighty")).unwrap().unwrap();
    assert_eq!(held.outside.keys().collect::<Vec<_>>(), [&world.cwd().join("lib.mjs")]);
    approve(&world, "mighty");
    patiently("a refresh", session.refresh()).await;
    assert_eq!(answer(&session, "version").await, "2");
    world.close(session).await;
}

async fn scaffolded() {
    let world = restricted();
    let session = world.live().await;
    let args = json!({ "operation": "scaffold", "name": "made", "description": "x" });
    call_with(&session, "extensions_manage", args).await.unwrap();
    until_info(&session, "made", "it runs", |info| info.status == Status::Running).await;
    // What the agent makes of it is asked about: nobody can tell who wrote it.
    world.replace("made", &versioned("version", 1));
    until_waiting(&session, "made").await;
    world.close(session).await;
}
