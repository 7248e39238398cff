//! Processes die, and the session goes on; or the session's own dies, and nothing is left.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::json;
use tenon_host::Session;
use tenon_host::SessionOptions;
use tenon_host::Status;
use tenon_host::session::EndReason;
use tenon_host::tool::ResultType;
use tenon_tests::Workspace;
use tenon_tests::trial;

use crate::world::GENEROUS;
use crate::world::World;
use crate::world::answer;
use crate::world::call;
use crate::world::call_with;
use crate::world::is_dead;
use crate::world::kill;
use crate::world::patiently;
use crate::world::pids;
use crate::world::send;
use crate::world::until;
use crate::world::until_answer;
use crate::world::until_info;
use crate::world::versioned;
use crate::world::with_tools;

/// How often a process is killed in the middle of calls.
const KILLS: usize = 10;

/// Extensions that live in it.
const NAMES: [&str; 3] = ["one", "two", "three"];

/// Calls of each that are under way then.
const CALLS: usize = 3;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("killing::the_zygote_by_sigkill", || during_calls(Target::Zygote, "KILL")),
        trial("killing::the_zygote_by_sigsegv", || during_calls(Target::Zygote, "SEGV")),
        trial("killing::the_extensions_by_sigkill", || during_calls(Target::Extensions, "KILL")),
        trial("killing::the_extensions_by_sigsegv", || during_calls(Target::Extensions, "SEGV")),
        trial("killing::the_zygote_while_it_starts_extensions", while_starting),
        trial("killing::the_zygote_while_an_extension_loads", while_loading),
        trial("killing::an_extension_that_kills_itself_while_it_loads", kills_itself),
        trial("killing::a_zygote_that_stands_still_does_not_hold_up_the_end", stopped),
        trial("killing::one_extension_leaves_the_others_alone", one_of_two),
        trial("killing::the_program_while_it_calls", program),
    ]
}

/// An extension with a child, a tool that never answers and one that does.
fn worker(name: &str) -> String {
    let before = "import fs from \"node:fs\";\nimport { spawn } from \"node:child_process\";\n\
        fs.appendFileSync(\"pids\", `${spawn(\"sleep\", [\"300\"]).pid}\\n`);";
    let hangs = "({ mark }) => { fs.writeFileSync(mark, \"\"); return new Promise(() => {}); }";
    with_tools(
        before,
        &format!(
            "{{ name: \"hang_{name}\", handler: {hangs} }},\
             {{ name: \"work_{name}\", handler: () => \"done\" }}"
        ),
    )
}

/// What is killed.
#[derive(Clone, Copy, PartialEq)]
enum Target {
    Zygote,
    Extensions,
}

async fn during_calls(target: Target, signal: &'static str) {
    let world = World::new();
    for name in NAMES {
        world.extension(name, &worker(name));
    }
    let session = world.open(forgiving(&world)).await;
    let enough = Arc::new(AtomicBool::new(false));
    // Calls at any moment, also the worst. Each is answered, or `call` panics.
    let caller = tokio::spawn({
        let (session, enough) = (session.clone(), enough.clone());
        async move {
            while !enough.load(Ordering::Relaxed) {
                for name in NAMES {
                    let _ = call(&session, &format!("work_{name}")).await;
                }
                tokio::task::yield_now().await;
            }
        }
    });
    for round in 0..KILLS {
        kill_during_calls(&world, &session, round, target, signal).await;
    }
    enough.store(true, Ordering::Relaxed);
    caller.await.unwrap();
    // Of all children that there ever were, only those of the extensions that run now are left.
    let file = world.cwd().join("pids");
    assert!(pids(&file).len() > NAMES.len() * KILLS);
    until("the children of extensions that died are gone", || {
        pids(&file).into_iter().filter(|&pid| !is_dead(pid)).count() == NAMES.len()
    })
    .await;
    world.close(session).await;
}

/// The zygote reports deaths. While it is stopped there are no reports, and the session must not wait for one for ever.
async fn stopped() {
    let world = World::new();
    world.extension("one", &worker("one"));
    let session = world.open(world.options()).await;
    let zygote = world.isolates.pids()[0];
    send(zygote, "STOP");
    assert_eq!(answer(&session, "work_one").await, "done");
    patiently("the session ends", session.end(EndReason::Complete)).await;
    send(zygote, "CONT");
    world.close(session).await;
}

/// Dying is nobody's fault here: an extension that runs is well at once.
fn forgiving(world: &World) -> SessionOptions {
    let mut options = world.options();
    options.timing.healthy_after = Duration::from_millis(1);
    options
}

async fn kill_during_calls(
    world: &World,
    session: &Session,
    round: usize,
    target: Target,
    signal: &str,
) {
    let mut calls = Vec::new();
    for name in NAMES {
        for number in 0..CALLS {
            let mark = format!("hangs-{round}-{name}-{number}");
            let (session, args) = (session.clone(), json!({ "mark": mark }));
            let tool = format!("hang_{name}");
            calls.push((mark, tokio::spawn(async move { call_with(&session, &tool, args).await })));
        }
    }
    for (mark, _) in &calls {
        world.marked(mark).await;
    }
    let all = world.isolates.pids();
    let (zygote, extensions) = all.split_first().unwrap();
    match target {
        Target::Zygote => kill(*zygote, signal).await,
        Target::Extensions => {
            for &process in extensions {
                kill(process, signal).await;
            }
        }
    }
    let named = if target == Target::Zygote { "zygote".to_owned() } else { format!("SIG{signal}") };
    for (_, call) in calls {
        let result = call.await.unwrap().unwrap();
        assert_eq!(result.result_type, ResultType::Failure, "{result:?}");
        let text = result.text_result_for_llm;
        assert!(text.contains("project:") && text.contains(&named), "{text}");
    }
    for name in NAMES {
        until_info(session, name, "well again", |info| {
            info.status == Status::Running && info.pid.is_some_and(|pid| !all.contains(&pid))
        })
        .await;
        assert_eq!(answer(session, &format!("work_{name}")).await, "done");
    }
}

/// Loads the extensions of a session while the test goes on.
fn load_in_background(world: &World) -> tokio::task::JoinHandle<Session> {
    let options = forgiving(world);
    tokio::spawn(async move {
        let session = Session::new(options).unwrap();
        session.load().await;
        session
    })
}

async fn while_loading() {
    let world = World::new();
    world.extension("well", &versioned("version", 1));
    let before = "import fs from \"node:fs\";\nfs.appendFileSync(\"loads\", \"load\\n\");\n\
        while (!fs.existsSync(\"release\")) await new Promise((resolve) => setTimeout(resolve, 10));";
    world.extension("slow", &with_tools(before, "{ name: \"slow\", handler: () => \"here\" }"));
    let loading = load_in_background(&world);
    world.marked("loads").await;
    kill(world.isolates.pids()[0], "KILL").await;
    world.mark("release");
    let session = patiently("the session loads", loading).await.unwrap();
    until_info(&session, "well", "running", |info| info.status == Status::Running).await;
    assert_eq!(answer(&session, "version").await, "1");
    // Nobody has to ask for it: it was no fault of its own.
    until_answer(&session, "slow", "here").await;
    world.close(session).await;
}

async fn one_of_two() {
    let world = World::new();
    world.extension("alone", &worker("alone"));
    world.extension("shared", &versioned("version", 1));
    world.config(&format!("[extensions.alone]\n{GENEROUS}"));
    let session = world.open(forgiving(&world)).await;
    let pid_of = |name: &str| session.find(name)[0].pid.unwrap();
    let (alone, shared) = (pid_of("alone"), pid_of("shared"));
    assert_ne!(alone, shared);
    kill(alone, "KILL").await;
    assert_eq!(answer(&session, "version").await, "1");
    until_info(&session, "alone", "back", |info| {
        info.status == Status::Running && info.pid != Some(alone)
    })
    .await;
    assert_eq!(answer(&session, "work_alone").await, "done");
    assert_eq!((pid_of("shared"), session.find("shared")[0].generation), (shared, 1));
    world.close(session).await;
}

async fn program() {
    let workspace = Workspace::new().tool(
        "hangs",
        "const fs = await import(\"node:fs\"); const { spawn } = await import(\"node:child_process\");\n\
         fs.writeFileSync(\"pids.new\", `${spawn(\"sleep\", [\"300\"]).pid}\\n${process.pid}\\n`);\n\
         fs.renameSync(\"pids.new\", \"pids\"); await new Promise(() => {});",
    );
    let mut tenon = workspace.command(&["call", "hangs"]).spawn().unwrap();
    let file = workspace.cwd().join("pids");
    until("the tool is called", || file.exists()).await;
    // Of processes that nobody waits for, the program itself becomes one until we do.
    tenon.kill().unwrap();
    tenon.wait().unwrap();
    let left = pids(&file);
    assert_eq!(left.len(), 2);
    for pid in left {
        until("what the program had started is gone", || is_dead(pid)).await;
    }
}

/// How many extensions are started while the zygote is killed again and again.
const STARTS: usize = 100;

/// How often the zygote is killed meanwhile.
const ZYGOTE_KILLS: usize = 10;

async fn while_starting() {
    let world = World::new();
    for number in 0..STARTS {
        world.extension(&format!("e{number}"), &versioned(&format!("version{number}"), 1));
    }
    let loading = load_in_background(&world);
    for _ in 0..ZYGOTE_KILLS {
        until("there is a zygote with processes", || {
            world.isolates.pids().len() > 1 || loading.is_finished()
        })
        .await;
        if let Some(&zygote) = world.isolates.pids().first() {
            kill(zygote, "KILL").await;
        }
    }
    let session = patiently("the session loads", loading).await.unwrap();
    for number in 0..STARTS {
        until_answer(&session, &format!("version{number}"), "1").await;
    }
    world.close(session).await;
}

async fn kills_itself() {
    let world = World::new();
    let before = "import { execSync } from \"node:child_process\";\n\
        execSync(\"kill -9 $PPID; sleep 60\");";
    world.extension("kills-itself", &with_tools(before, ""));
    for name in NAMES {
        world.extension(name, &versioned(name, 1));
    }
    let session = world.open(forgiving(&world)).await;
    for name in NAMES {
        assert_eq!(session.find(name)[0].status, Status::Running, "{:?}", session.find(name)[0]);
        assert_eq!(answer(&session, name).await, "1");
    }
    // No other extension is affected.
    let failed = |info: &tenon_host::ExtensionInfo| info.failures > 0;
    until_info(&session, "kills-itself", "a failure of its own", failed).await;
    for name in NAMES {
        assert_eq!(answer(&session, name).await, "1");
    }
    world.close(session).await;
}
