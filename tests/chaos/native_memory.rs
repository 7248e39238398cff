//! Native code that takes memory and does not return.

use std::time::Duration;

use libtest_mimic::Trial;
use tenon_tests::trial;

use crate::world::GENEROUS;
use crate::world::World;
use crate::world::call;
use crate::world::info;
use crate::world::is_dead;
use crate::world::with_tools;

/// What the calls would take, in megabytes.
const WANTED: u64 = 1_024;

/// The limit, in megabytes.
const LIMIT: u64 = 256;

/// The most that the process may have, in megabytes: less than what the call would take, and so much above the limit because the
/// watchdog may wait for a processor.
const MOST: u64 = 800;

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(5);

pub fn trials() -> Vec<Trial> {
    let derive = format!(
        "const crypto = await import('node:crypto'); \
         await new Promise((resolve) => crypto.scrypt('a', 'b', 64, {{ N: {WANTED} * 1024, r: 8, maxmem: 4e9 }}, resolve));"
    );
    let insert = format!(
        "const {{ DatabaseSync }} = await import('node:sqlite'); \
         const database = new DatabaseSync(':memory:'); database.exec('CREATE TABLE t (x BLOB)'); \
         database.exec('WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {WANTED}) \
           INSERT INTO t SELECT randomblob(1048576) FROM n');"
    );
    vec![
        trial("native_memory::on_another_thread_ends_the_process_at_once", || ends(derive)),
        trial("native_memory::on_the_extensions_thread_ends_the_process_at_once", || ends(insert)),
    ]
}

async fn ends(attack: String) {
    let world = World::new();
    let tool =
        format!("{{ name: \"attack\", handler: async () => {{ {attack} return 'done'; }} }}");
    world.extension("culprit", &with_tools("", &tool));
    world.config(&format!("[extensions.culprit]\nmemory-mb = {LIMIT}\n{GENEROUS}"));
    let session = world.open(world.options()).await;
    let process = info(&session, "culprit").unwrap().pid.unwrap();
    let peak = tokio::spawn(async move {
        let mut peak = 0;
        while !is_dead(process) {
            peak = peak.max(megabytes(process));
            tokio::time::sleep(LOOK).await;
        }
        peak
    });
    let said = call(&session, "attack").await.unwrap().text_result_for_llm;
    assert!(said.contains("limit memory-mb"), "{said}");
    let peak = peak.await.unwrap();
    assert!((LIMIT..MOST).contains(&peak), "{peak} MB");
    world.close(session).await;
}

/// The memory that a process has, or had until now.
fn megabytes(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}
