//! Control groups, where the system lets us make some: as root with a hierarchy of version 2, in a unit of systemd with
//! `Delegate=yes`, in a container of one's own. Elsewhere these tests say that they are skipped.

use std::path::PathBuf;

use libtest_mimic::Trial;
use tenon_host::Session;
use tenon_host::Status;
use tenon_host::session::EndReason;
use tenon_protocol::layers::ControlGroup;
use tenon_sandbox::control_groups;
use tenon_tests::trial;

use crate::world::GENEROUS;
use crate::world::World;
use crate::world::call;
use crate::world::info;
use crate::world::is_dead;
use crate::world::kill;
use crate::world::patiently;
use crate::world::pids;
use crate::world::until;
use crate::world::until_generation;
use crate::world::until_info;
use crate::world::versioned;
use crate::world::with_tools;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("control_groups::every_extension_has_its_own_and_none_remains", own),
        trial("control_groups::too_many_children_leave_nothing_behind", too_many),
        trial("control_groups::what_a_killed_extension_has_detached_ends", killed),
        trial("control_groups::what_a_dead_zygote_leaves_is_removed", dead_zygote),
        trial("control_groups::memory_of_programs_that_it_starts_counts", memory),
        trial("control_groups::processes_whose_parents_have_ended_count", orphans),
    ]
}

/// What groups can do here; `None`, and a word about it, if there are none.
#[allow(clippy::print_stderr, reason = "a test says that it is skipped")]
fn here() -> Option<ControlGroup> {
    match control_groups::survey(std::process::id()) {
        Ok(group) => Some(group),
        Err(missing) => {
            eprintln!("skipped: {missing}");
            None
        }
    }
}

/// The folder of the group that an extension's process is in.
fn group_of(session: &Session, name: &str) -> PathBuf {
    let info = info(session, name).unwrap();
    assert!(info.sandbox.unwrap().control_group.is_some(), "{name} has no group");
    let text = std::fs::read_to_string(format!("/proc/{}/cgroup", info.pid.unwrap())).unwrap();
    let own = text.lines().find_map(|line| line.strip_prefix("0::/")).unwrap();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 ")).unwrap();
    let folder = PathBuf::from(mount.split(' ').nth(4).unwrap()).join(own);
    assert!(folder.is_dir(), "{folder:?}");
    folder
}

/// JavaScript that runs a script of the shell.
fn shell(script: &str) -> String {
    format!(
        "(await import('node:child_process')).spawn('sh', ['-c', {script:?}], {{ stdio: 'ignore' }});"
    )
}

async fn own() {
    if here().is_none() {
        return;
    }
    let world = World::new();
    for name in ["one", "two"] {
        world.extension(name, &versioned(name, 1));
    }
    let session = world.open(world.options()).await;
    let groups = [group_of(&session, "one"), group_of(&session, "two")];
    assert_ne!(groups[0], groups[1]);
    let pid = info(&session, "one").unwrap().pid.unwrap();
    let inside = std::fs::read_to_string(groups[0].join("cgroup.procs")).unwrap();
    assert_eq!(inside.trim(), pid.to_string());
    patiently("a reload", session.reload()).await;
    until("the group of the first load is removed", || !groups[0].exists()).await;
    let of_zygote = group_of(&session, "one").parent().unwrap().to_owned();
    world.close(session).await;
    until("the groups are removed", || !of_zygote.exists()).await;
}

async fn too_many() {
    if here().is_none() {
        return;
    }
    let world = World::new();
    // The first is nobody's child when the others are too many.
    let orphan = shell("setsid sleep 1000 & echo $! >> pids");
    // Those that the extension starts itself are refused before they are too many.
    let others =
        "spawn('sh', ['-c', 'for i in 1 2 3 4; do sleep 1000 & done; wait'], { stdio: 'ignore' });";
    let attack = format!(
        "const {{ spawn }} = await import('node:child_process'); const first = {orphan} \
         await new Promise((resolve) => first.on('close', resolve)); {others} \
         await new Promise(() => {{}});"
    );
    let tool = format!("{{ name: \"attack\", handler: async () => {{ {attack} }} }}");
    world.extension("culprit", &with_tools("", &tool));
    world.config(&format!("[extensions.culprit]\nchildren = 3\n{GENEROUS}"));
    let session = world.open(world.options()).await;
    let said = call(&session, "attack").await.unwrap().text_result_for_llm;
    assert!(said.contains("more than 3 child processes"), "{said}");
    let orphan = pids(&world.cwd().join("pids"))[0];
    until("the child that nobody knew of ends", || is_dead(orphan)).await;
    world.close(session).await;
}

async fn killed() {
    if here().is_none() {
        return;
    }
    let world = World::new();
    let orphan = shell("setsid sleep 1000 & echo $! >> pids");
    let detach = format!(
        "const shell = {orphan} await new Promise((resolve) => shell.on('close', resolve)); return 'ok';"
    );
    let tool = format!("{{ name: \"detach\", handler: async () => {{ {detach} }} }}");
    world.extension("culprit", &with_tools("", &tool));
    let session = world.open(world.options()).await;
    assert_eq!(call(&session, "detach").await.unwrap().text_result_for_llm, "ok");
    let orphan = pids(&world.cwd().join("pids"))[0];
    assert!(!is_dead(orphan));
    kill(info(&session, "culprit").unwrap().pid.unwrap(), "KILL").await;
    until("the child that it has detached ends", || is_dead(orphan)).await;
    world.close(session).await;
}

async fn dead_zygote() {
    if here().is_none() {
        return;
    }
    let world = World::new();
    world.extension("one", &versioned("one", 1));
    let session = world.open(world.options()).await;
    let old = group_of(&session, "one").parent().unwrap().to_owned();
    kill(world.isolates.pids()[0], "KILL").await;
    until_generation(&session, "one", 2).await;
    let new = group_of(&session, "one").parent().unwrap().to_owned();
    assert_ne!(old, new);
    // It may have looked before the system had done with what was in it; then the next one does it.
    kill(world.isolates.pids()[0], "KILL").await;
    until_generation(&session, "one", 3).await;
    // Another zygote beside this one may be about to remove it.
    until("the groups of the dead zygote are removed", || !old.exists()).await;
    patiently("the session ends", session.end(EndReason::Complete)).await;
    world.close(session).await;
}

#[allow(clippy::print_stderr, reason = "a test says that it is skipped")]
async fn memory() {
    if !here().is_some_and(|group| group.memory) {
        eprintln!("skipped: memory cannot be limited here");
        return;
    }
    let world = World::new();
    // It reads one block, which is as large.
    let attack = shell("dd if=/dev/zero of=/dev/null bs=600M count=1");
    let tool = format!(
        "{{ name: \"attack\", handler: async () => {{ {attack} await new Promise(() => {{}}); }} }}"
    );
    world.extension("culprit", &with_tools("", &tool));
    world.extension("other", &versioned("other", 1));
    world.config(&format!("[extensions.culprit]\nmemory-mb = 300\n{GENEROUS}"));
    let session = world.open(world.options()).await;
    let said = call(&session, "attack").await.unwrap().text_result_for_llm;
    assert!(said.contains("300 MB of memory together"), "{said}");
    let culprit = until_info(&session, "culprit", "it is back", |info| {
        info.status == Status::Running && info.generation == 2
    });
    let error = culprit.await.last_error.unwrap().what.message;
    assert!(error.contains("limit memory-mb"), "{error}");
    assert_eq!(info(&session, "other").unwrap().generation, 1);
    world.close(session).await;
}

#[allow(clippy::print_stderr, reason = "a test says that it is skipped")]
async fn orphans() {
    if !here().is_some_and(|group| group.tasks) {
        eprintln!("skipped: processes cannot be limited here");
        return;
    }
    let world = World::new();
    // Each is nobody's child at once. They are not many more than one child may have threads.
    let attack = shell("while :; do (setsid sleep 1000 & echo $! >> pids); done");
    let tool = format!(
        "{{ name: \"attack\", handler: async () => {{ {attack} await new Promise(() => {{}}); }} }}"
    );
    world.extension("culprit", &with_tools("", &tool));
    world.config(&format!("[extensions.culprit]\nchildren = 4\n{GENEROUS}"));
    let session = world.open(world.options()).await;
    let said = call(&session, "attack").await.unwrap().text_result_for_llm;
    assert!(said.contains("processes and threads"), "{said}");
    // All that it started ends.
    world.close(session).await;
}
