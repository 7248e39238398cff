//! Very many starts of which half are ended midway.

use libtest_mimic::Trial;
use tenon_host::Session;
use tenon_host::Status;

use crate::world::World;
use crate::world::answer;
use crate::world::patiently;
use crate::world::until_generation;
use crate::world::until_info;
use crate::world::with_tools;
use tenon_tests::trial;

/// Extensions that are started at once; every other is a culprit.
const EXTENSIONS: usize = 100;

/// How often all are started.
const ROUNDS: u32 = 3;

/// Ways in which a start ends before the extension has joined, each with what its error says.
const WAYS: [(&str, &str); 7] = [
    ("process.kill(process.pid, 'SIGKILL');", "process.exit(137)"),
    (
        "(await import('node:child_process')).execFileSync('kill', ['-KILL', String(process.pid)]);",
        "SIGKILL",
    ),
    ("process.exit(3);", "process.exit(3)"),
    ("throw new Error('thrown at load');", "thrown at load"),
    ("for (;;) {}", "cpu-ms"),
    (
        "await new Promise((resolve) => setTimeout(resolve, 2 ** 30));",
        "joinSession was not called within",
    ),
    ("await import('./missing.mjs');", "missing.mjs"),
];

pub fn trials() -> Vec<Trial> {
    vec![trial("starts::of_many_that_are_ended_midway_only_these_fail", ended_midway)]
}

/// How the start of this one ends; `None`: it joins.
fn way(number: usize) -> Option<(&'static str, &'static str)> {
    (number % 2 == 1).then(|| WAYS[number / 2 % WAYS.len()])
}

async fn ended_midway() {
    let world = World::new();
    let mut config = String::new();
    for number in 0..EXTENSIONS {
        let name = format!("e{number}");
        let tool = format!("{{ name: \"ping_{number}\", handler: () => \"pong\" }}");
        let before = way(number).map_or("", |(code, _)| code);
        world.extension(&name, &with_tools(before, &tool));
        if way(number).is_some() {
            config += &format!("[extensions.{name}]\ncpu-ms = 100\nstart-deadline-s = 1\n");
        }
    }
    world.config(&config);
    let session = world.open(world.options()).await;
    let zygote = world.isolates.pids()[0];
    for round in 1..=ROUNDS {
        for number in 0..EXTENSIONS {
            check(&session, number, round).await;
        }
        assert_eq!(world.isolates.pids()[0], zygote, "the zygote has died");
        patiently("all are loaded again", session.reload()).await;
    }
    world.close(session).await;
}

/// Whether one has come of its start what must.
async fn check(session: &Session, number: usize, round: u32) {
    let name = format!("e{number}");
    let Some((_, why)) = way(number) else {
        let info = until_generation(session, &name, round).await;
        assert_eq!(answer(session, &format!("ping_{number}")).await, "pong");
        let state = (info.status, info.generation, info.failures);
        assert_eq!(state, (Status::Running, round, 0), "{:?}", info.last_error);
        return;
    };
    let failed = until_info(session, &name, "failed", |info| info.error.is_some()).await;
    let message = failed.error.map(|error| error.what.message).unwrap_or_default();
    assert!(message.contains(why), "{name}: {message}");
}
