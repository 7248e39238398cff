//! Very many changes, or changes under load.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use libtest_mimic::Trial;
use tenon_host::Session;
use tenon_host::Status;
use tenon_host::tool::ResultType;
use tenon_tests::trial;

use crate::world::World;
use crate::world::answer;
use crate::world::call;
use crate::world::patiently;
use crate::world::until_answer;
use crate::world::until_info;
use crate::world::versioned;
use crate::world::with_tools;

/// Extensions in the storm.
const EXTENSIONS: usize = 20;

/// Files of each beside its entry.
const MODULES: usize = 14;

/// Every so manieth of them really changes.
const CHANGED_EVERY: usize = 4;

/// Reloads under load.
const RELOADS: u32 = 30;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("storm::of_rewritten_files_only_what_changed_is_loaded_again", rewritten),
        trial("storm::a_repository_that_is_replaced_is_consistent_in_the_end", replaced),
        trial("storm::no_call_is_lost_while_one_of_five_is_reloaded_again_and_again", under_load),
    ]
}

/// A way to write a file of an extension: its name, the file, the text.
type Write = fn(&World, &str, &str, &str);

/// Writes all files of an extension: its tool adds up what its modules export.
fn write_extension(world: &World, number: usize, value: usize, write: Write) {
    let imports: Vec<String> = (0..MODULES)
        .map(|module| format!("import {{ value as v{module} }} from \"./lib/{module}.mjs\";"))
        .collect();
    let sum: Vec<String> = (0..MODULES).map(|module| format!("v{module}")).collect();
    let tool = format!("{{ name: \"sum_{number}\", handler: () => String({}) }}", sum.join(" + "));
    let name = format!("storm-{number}");
    for module in 0..MODULES {
        // One module says what is new; the rest is what it was.
        let value = if module == 0 { value } else { 0 };
        let text = format!("export const value = {value};\n");
        write(world, &name, &format!("lib/{module}.mjs"), &text);
    }
    write(world, &name, "extension.mjs", &with_tools(&imports.join("\n"), &tool));
}

/// Removes a file and makes it again, as git does when it checks out.
fn check_out(world: &World, name: &str, file: &str, text: &str) {
    // There is none the first time.
    let _ = std::fs::remove_file(world.folder(name).join(file));
    world.write(name, file, text);
}

async fn storm_session(world: &World) -> Session {
    let mut options = world.options();
    options.watch = true;
    // Long enough that most of what is written is looked at together.
    options.timing.debounce = Duration::from_millis(300);
    world.open(options).await
}

async fn rewritten() {
    let world = World::new();
    (0..EXTENSIONS).for_each(|number| write_extension(&world, number, 1, check_out));
    let session = storm_session(&world).await;
    let value = |number: usize| 1 + usize::from(number.is_multiple_of(CHANGED_EVERY));
    // At one go: on a busy machine a file that is removed first could be missed for long enough to be looked at.
    let write: Write = World::replace_file;
    (0..EXTENSIONS).for_each(|number| write_extension(&world, number, value(number), write));
    for number in 0..EXTENSIONS {
        until_answer(&session, &format!("sum_{number}"), &value(number).to_string()).await;
    }
    let report = patiently("a refresh", session.refresh()).await;
    assert_eq!(report.reloaded, Vec::<String>::new());
    for number in 0..EXTENSIONS {
        let info = &session.find(&format!("storm-{number}"))[0];
        let generation = value(number) as u32;
        assert_eq!((info.status, info.generation), (Status::Running, generation), "{}", info.id);
    }
    world.close(session).await;
}

async fn replaced() {
    let world = World::new();
    (0..EXTENSIONS).for_each(|number| write_extension(&world, number, 1, check_out));
    let session = storm_session(&world).await;
    // Another branch: some extensions are not there, some are new, all others differ.
    for number in 0..EXTENSIONS / 2 {
        std::fs::remove_dir_all(world.folder(&format!("storm-{number}"))).unwrap();
    }
    for number in EXTENSIONS / 2..EXTENSIONS * 3 / 2 {
        write_extension(&world, number, 2, check_out);
    }
    for number in EXTENSIONS / 2..EXTENSIONS * 3 / 2 {
        let name = format!("storm-{number}");
        until_answer(&session, &format!("sum_{number}"), "2").await;
        until_info(&session, &name, "running", |info| {
            info.status == Status::Running && info.error.is_none()
        })
        .await;
    }
    patiently("a refresh", session.refresh()).await;
    let mut names: Vec<String> =
        session.tools().iter().map(|listing| listing.tool.name.clone()).collect();
    names.retain(|name| name.starts_with("sum_"));
    assert_eq!(names.len(), EXTENSIONS, "{names:?}");
    world.close(session).await;
}

/// What callers have seen.
#[derive(Default)]
struct Count {
    sent: AtomicU64,
    answered: AtomicU64,
    enough: AtomicBool,
}

async fn under_load() {
    const TOOLS: usize = 5;
    let world = World::new();
    for number in 0..TOOLS {
        world.extension(&format!("extension-{number}"), &versioned(&format!("tool_{number}"), 1));
    }
    let session = world.live().await;
    let count = Arc::new(Count::default());
    let callers: Vec<_> = (0..3)
        .map(|first| {
            let (session, count) = (session.clone(), count.clone());
            tokio::spawn(async move {
                let mut number = first;
                while !count.enough.load(Ordering::Relaxed) {
                    number = (number + 1) % TOOLS;
                    count.sent.fetch_add(1, Ordering::Relaxed);
                    let result = call(&session, &format!("tool_{number}")).await.unwrap();
                    assert_eq!(result.result_type, ResultType::Success, "{result:?}");
                    count.answered.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for version in 2..2 + RELOADS {
        world.extension("extension-0", &versioned("tool_0", version));
        until_answer(&session, "tool_0", &version.to_string()).await;
    }
    count.enough.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
    let (sent, answered) = (&count.sent, &count.answered);
    assert_eq!(sent.load(Ordering::Relaxed), answered.load(Ordering::Relaxed));
    for number in 1..TOOLS {
        assert_eq!(session.find(&format!("extension-{number}"))[0].generation, 1);
    }
    assert_eq!(answer(&session, "tool_0").await, (1 + RELOADS).to_string());
    world.close(session).await;
}
