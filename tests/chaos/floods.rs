//! What an extension has the session write down, faster than anybody reads it.

use libtest_mimic::Trial;
use tenon_host::SessionOptions;

use crate::world::World;
use crate::world::answer;
use crate::world::with_tools;
use tenon_tests::trial;

/// Lines of one megabyte.
const LINES: u64 = 300;

/// What the session may take for them, in megabytes: a session that is not recorded remembers 32 MB of events, and an event is
/// there as its text and as what was read of it.
const MOST_MB: u64 = 150;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("floods::long_log_lines_are_not_kept_in_memory", || log_lines(false)),
        trial("floods::long_log_lines_are_not_kept_in_memory_if_recorded", || log_lines(true)),
    ]
}

async fn log_lines(record: bool) {
    let world = World::new();
    let flood = format!(
        "{{ name: \"flood\", handler: async () => {{ \
            const line = 'x'.repeat(1024 * 1024); \
            for (let count = 0; count < {LINES}; count += 1) {{ \
                await session.log(line, {{ ephemeral: count % 3 === 2 }}); \
            }} \
            return 'flooded'; }} }}"
    );
    world.extension("culprit", &with_tools("", &flood));
    world.extension("bystander", &with_tools("", "{ name: \"ping\", handler: () => \"pong\" }"));
    let session = world.open(SessionOptions { record, ..world.options() }).await;
    assert_eq!(answer(&session, "ping").await, "pong");
    let before = memory_mb("VmRSS:");
    assert_eq!(answer(&session, "flood").await, "flooded");
    let peak = memory_mb("VmHWM:");
    assert!(peak < before + MOST_MB, "{before} MB before, {peak} MB at most");
    assert_eq!(answer(&session, "ping").await, "pong");
    world.close(session).await;
}

/// Memory of this process, which is the session's.
fn memory_mb(what: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() / 1024
}
