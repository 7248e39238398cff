//! What extensions leave behind, where no control group ends it.

use std::path::PathBuf;

use libtest_mimic::Trial;
use tenon_host::Session;
use tenon_tests::trial;

use crate::world::GENEROUS;
use crate::world::World;
use crate::world::answer;
use crate::world::call;
use crate::world::info;
use crate::world::is_dead;
use crate::world::kill;
use crate::world::patiently;
use crate::world::pids;
use crate::world::send;
use crate::world::until;
use crate::world::until_generation;
use crate::world::with_tools;

/// How an extension ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Reload,
    Exit,
    Limit,
    Killed,
    Crashed,
    Session,
}

/// Makes an extension one that something is denied to.
const RESTRICTED: &str = "deny-write = [\"secret\"]\n";

pub fn trials() -> Vec<Trial> {
    let restricted = |name: &str, end| {
        trial(&format!("leftovers::nothing_of_a_restricted_extension_{name}"), move || {
            everything_ends(RESTRICTED, end)
        })
    };
    let full = |name: &str, end| {
        trial(&format!("leftovers::nothing_of_a_full_extension_{name}"), move || {
            everything_ends("", end)
        })
    };
    vec![
        restricted("that_is_reloaded", End::Reload),
        restricted("that_exits", End::Exit),
        restricted("beyond_a_limit", End::Limit),
        restricted("that_is_killed", End::Killed),
        restricted("that_crashes", End::Crashed),
        restricted("that_ends_with_its_session", End::Session),
        full("that_is_killed", End::Killed),
        full("that_crashes", End::Crashed),
        trial("leftovers::what_a_full_extension_detached_goes_on_after_its_end", goes_on),
        trial(
            "leftovers::what_a_full_extension_detached_goes_on_after_it_exits",
            goes_on_after_exit,
        ),
        trial("leftovers::programs_whose_parents_have_ended_count", orphans_count),
        trial("leftovers::adopted_programs_are_reaped_and_no_others", exit_codes),
    ]
}

/// An extension with a tool that starts two programs, out of its group of processes, and another's children. It writes their
/// numbers to a file.
fn detaching(name: &str, file: &str) -> String {
    let script = format!(
        "setsid sh -c 'echo $$ >> {file}; sleep 1000 & echo $! >> {file}; wait' & \
         until [ \"$(cat {file} 2>&1 | grep -c '^[0-9]*$')\" = 2 ]; do sleep 0.01; done"
    );
    let detach = format!(
        "const {{ spawn }} = await import('node:child_process');\
         const shell = spawn('sh', ['-c', {script:?}], {{ stdio: 'ignore' }});\
         await new Promise((resolve) => shell.on('close', resolve)); return 'detached';"
    );
    with_tools(
        "",
        &format!(
            "{{ name: \"detach_{name}\", handler: async () => {{ {detach} }} }},\
             {{ name: \"spin_{name}\", handler: () => {{ for (;;); }} }},\
             {{ name: \"exit_{name}\", handler: () => process.exit(0) }},\
             {{ name: \"exit_while_reading_{name}\", handler: async () => {{ {EXIT_WHILE_READING} }} }}"
        ),
    )
}

/// Exits while a thread for files waits for somebody to open the other end of a pipe, which nobody does.
const EXIT_WHILE_READING: &str = "\
    const { spawnSync } = await import('node:child_process'); spawnSync('mkfifo', ['pipe']);\
    const { readFile } = await import('node:fs/promises'); readFile('pipe').catch(() => {});\
    await new Promise((resolve) => setTimeout(resolve, 50)); process.exit(0);";

/// How often an extension exits: the session must not have its process killed meanwhile, which it did nearly always.
const EXITS: usize = 20;

/// Has an extension start its programs; their numbers.
async fn detach(world: &World, session: &Session, name: &str, file: &str) -> Vec<u32> {
    assert_eq!(answer(session, &format!("detach_{name}")).await, "detached");
    let pids = pids(&world.cwd().join(file));
    assert_eq!(pids.len(), 2);
    assert!(!pids.iter().any(|&pid| is_dead(pid)));
    pids
}

/// A world whose extension has no group, if that can be arranged.
fn world(extensions: &[(&str, &str)], config: &str) -> World {
    let mut world = World::new();
    for (name, source) in extensions {
        world.extension(name, source);
    }
    world.config(config);
    world.without_groups();
    world
}

async fn everything_ends(config: &str, end: End) {
    let config = format!("[extensions.culprit]\ncpu-ms = 300\n{config}{GENEROUS}");
    let world = world(&[("culprit", &detaching("it", "pids"))], &config);
    let session = world.open(world.options()).await;
    let programs = detach(&world, &session, "it", "pids").await;
    let process = info(&session, "culprit").unwrap().pid.unwrap();
    match end {
        End::Reload => drop(patiently("a reload", session.reload()).await),
        End::Exit => drop(call(&session, "exit_it").await),
        End::Limit => {
            let said = call(&session, "spin_it").await.unwrap().text_result_for_llm;
            assert!(said.contains("limit cpu-ms"), "{said}");
        }
        End::Killed => kill(process, "KILL").await,
        End::Crashed => kill(process, "SEGV").await,
        // `close` looks whether they have ended.
        End::Session => return world.close(session).await,
    }
    for program in programs {
        until(&format!("{program} ends"), || is_dead(program)).await;
    }
    world.close(session).await;
}

async fn goes_on() {
    let extensions =
        [("full", detaching("full", "kept")), ("restricted", detaching("restricted", "pids"))];
    let extensions = extensions.each_ref().map(|(name, source)| (*name, source.as_str()));
    let world = world(&extensions, &format!("[extensions.restricted]\n{RESTRICTED}{GENEROUS}"));
    let session = world.open(world.options()).await;
    let kept = detach(&world, &session, "full", "kept").await;
    let ended = detach(&world, &session, "restricted", "pids").await;
    patiently("a reload", session.reload()).await;
    until("the restricted one's programs end", || ended.iter().all(|&pid| is_dead(pid))).await;
    // Another end, not in order, is none of theirs.
    kill(info(&session, "restricted").unwrap().pid.unwrap(), "KILL").await;
    until_generation(&session, "restricted", 3).await;
    assert!(!kept.iter().any(|&pid| is_dead(pid)), "{kept:?}");
    // The zygote waits for them.
    for pid in kept {
        send(pid, "KILL");
        let folder = PathBuf::from(format!("/proc/{pid}"));
        until(&format!("{pid} is reaped"), || !folder.exists()).await;
    }
    world.close(session).await;
}

async fn goes_on_after_exit() {
    let world = world(&[("full", &detaching("full", "kept"))], "");
    let session = world.open(world.options()).await;
    let mut kept = Vec::new();
    for round in 0..EXITS {
        kept.extend(detach(&world, &session, "full", "kept").await);
        std::fs::remove_file(world.cwd().join("kept")).unwrap();
        let process = info(&session, "full").unwrap().pid.unwrap();
        let tool = if round % 2 == 0 { "exit_full" } else { "exit_while_reading_full" };
        drop(call(&session, tool).await);
        until("the process ends", || is_dead(process)).await;
        patiently("a reload", session.reload()).await;
        assert!(!kept.iter().any(|&pid| is_dead(pid)), "round {round}, {tool}: {kept:?}");
    }
    for pid in kept {
        send(pid, "KILL");
        until(&format!("{pid} ends"), || is_dead(pid)).await;
    }
    world.close(session).await;
}

async fn orphans_count() {
    // Each is nobody's child at once.
    let script =
        "i=0; while [ $i -lt 200 ]; do setsid sleep 1000 & echo $! >> pids; i=$((i + 1)); done";
    let attack = format!(
        "(await import('node:child_process')).spawn('sh', ['-c', {script:?}], {{ stdio: 'ignore' }}); \
         await new Promise(() => {{}});"
    );
    let tool = format!("{{ name: \"attack\", handler: async () => {{ {attack} }} }}");
    let config = format!("[extensions.culprit]\nchildren = 20\n{GENEROUS}");
    let world = world(&[("culprit", &with_tools("", &tool))], &config);
    let session = world.open(world.options()).await;
    let said = call(&session, "attack").await.unwrap().text_result_for_llm;
    assert!(said.contains("more than 20 child processes"), "{said}");
    let file = world.cwd().join("pids");
    until("all that it started ends", || pids(&file).into_iter().all(is_dead)).await;
    assert!(pids(&file).len() > 20);
    world.close(session).await;
}

async fn exit_codes() {
    // Each shell leaves a program behind that ends at once, or a little later.
    let work = "\
        const { spawn, spawnSync } = await import('node:child_process');\
        const script = 'true & sleep 0.05 & exit 7';\
        const codes = new Set();\
        for (let round = 0; round < 30; round += 1) {\
          const all = [];\
          for (let i = 0; i < 10; i += 1) {\
            all.push(new Promise((resolve) => spawn('sh', ['-c', script], { stdio: 'ignore' }).on('close', resolve)));\
          }\
          codes.add(spawnSync('sh', ['-c', script], { stdio: 'ignore' }).status);\
          for (const code of await Promise.all(all)) codes.add(code);\
        }\
        return JSON.stringify([...codes]);";
    let tool = format!("{{ name: \"work\", handler: async () => {{ {work} }} }}");
    let world = world(&[("busy", &with_tools("", &tool))], "");
    let session = world.open(world.options()).await;
    assert_eq!(answer(&session, "work").await, "[7]");
    let process = info(&session, "busy").unwrap().pid.unwrap();
    let children = PathBuf::from(format!("/proc/{process}/task/{process}/children"));
    until("all that it has adopted is reaped", || {
        std::fs::read_to_string(&children).unwrap().trim().is_empty()
    })
    .await;
    assert_eq!(info(&session, "busy").unwrap().generation, 1);
    world.close(session).await;
}
