//! What must not be the same in two processes that were forked from one, and what must work after a fork.

use std::collections::BTreeSet;
use std::process::Command;

use libtest_mimic::Trial;
use serde_json::Value;
use tenon_host::Session;
use tenon_host::Status;
use tenon_host::isolates::Isolates;
use tenon_tests::trial;

use crate::without_memory;
use crate::world::World;
use crate::world::answer;
use crate::world::patiently;
use crate::world::until;
use crate::world::until_answer;
use crate::world::until_generation;
use crate::world::until_info;
use crate::world::versioned;
use crate::world::with_tools;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("forks::random_numbers_differ_between_extensions", random_numbers),
        trial("forks::an_extension_has_its_own_number_parent_and_clock", identity),
        trial("forks::an_extension_has_no_descriptor_of_another", descriptors),
        trial("forks::a_heap_of_another_size_is_made_in_the_fork", another_heap),
        trial("forks::what_the_engine_puts_off_is_done", put_off),
        trial("forks::what_is_collected_is_finalized", finalization),
        trial("forks::a_booted_zygote_has_nothing_that_forks_would_share", booted),
        trial("forks::an_extension_at_rest_is_not_woken", rest),
        trial("forks::an_extension_at_rest_holds_little_of_the_machine", footprint),
        trial("forks::nothing_is_left_of_many_starts", many_starts),
        trial("forks::nothing_is_left_of_very_many_starts", very_many_starts)
            .with_ignored_flag(true),
        trial("forks::the_zygote_survives_that_the_system_gives_no_process", no_more_processes),
        trial("forks::the_zygote_survives_that_the_system_has_no_memory_for_a_process", no_memory),
    ]
}

const NAMES: [&str; 3] = ["one", "two", "three"];

/// One value of each source of random numbers.
const RANDOM: &str = "async () => {
    const [crypto, fs, sqlite] = ['crypto', 'fs', 'sqlite'].map((name) => process.getBuiltinModule(`node:${name}`));
    const pair = (...kind) => crypto.generateKeyPairSync(...kind).publicKey.export({ type: 'spki', format: 'der' }).toString('hex');
    // In a folder of its own: a name that is taken would be drawn anew.
    const folder = `drawn-by-${process.pid}`;
    fs.mkdirSync(folder);
    const database = new sqlite.DatabaseSync(':memory:');
    const drawn = database.prepare('SELECT CAST(random() AS TEXT) AS number, hex(randomblob(16)) AS blob').get();
    const key = await globalThis.crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, true, ['encrypt']);
    return JSON.stringify([
        Math.random(), Math.random(),
        globalThis.crypto.randomUUID(), crypto.randomUUID(),
        Buffer.from(globalThis.crypto.getRandomValues(new Uint8Array(16))).toString('hex'),
        crypto.randomBytes(16).toString('hex'), crypto.randomInt(2 ** 47),
        crypto.randomFillSync(Buffer.alloc(16)).toString('hex'),
        crypto.generateKeySync('aes', { length: 256 }).export().toString('hex'),
        pair('ed25519'), pair('ec', { namedCurve: 'P-256' }),
        fs.mkdtempSync(`${folder}/`).slice(folder.length),
        drawn.number, drawn.blob,
        ...await inWorker(),
        Buffer.from(await globalThis.crypto.subtle.exportKey('raw', key)).toString('hex'),
    ]);
}";

/// The same in a worker.
const RANDOM_IN_WORKER: &str = "() => new Promise((resolve, reject) => {
    const code = `
        const crypto = require('node:crypto');
        require('node:worker_threads').parentPort.postMessage([
            Math.random(), globalThis.crypto.randomUUID(), crypto.randomUUID(), crypto.randomBytes(16).toString('hex'),
            crypto.randomFillSync(Buffer.alloc(16)).toString('hex'),
        ]);
    `;
    const worker = new (process.getBuiltinModule('node:worker_threads').Worker)(code, { eval: true });
    worker.once('message', resolve);
    worker.once('error', reject);
})";

async fn values(session: &Session, tool: &str) -> Vec<Value> {
    let text = answer(session, tool).await;
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

async fn random_numbers() {
    let world = World::new();
    // QuickJS has no worker threads.
    let in_worker = if tenon_tests::ENGINE == "v8" { RANDOM_IN_WORKER } else { "() => []" };
    for name in NAMES {
        let tools = format!("{{ name: \"random_{name}\", handler: {RANDOM} }}");
        world.extension(name, &with_tools(&format!("const inWorker = {in_worker};"), &tools));
    }
    let session = world.open(world.options()).await;
    let mut seen = BTreeSet::new();
    let mut drawn = 0;
    for name in NAMES {
        for value in values(&session, &format!("random_{name}")).await {
            drawn += 1;
            seen.insert(value.to_string());
        }
    }
    assert_eq!(seen.len(), drawn, "{seen:#?}");
    world.close(session).await;
}

async fn identity() {
    let world = World::new();
    let about = "() => JSON.stringify([process.pid, (process.getBuiltinModule('node:process')).pid, process.ppid, performance.timeOrigin, \
        process.uptime(), Date.now()])";
    let tools = |name: &str| format!("{{ name: \"about_{name}\", handler: {about} }}");
    world.extension("first", &with_tools("", &tools("first")));
    let session = world.open(world.options()).await;
    let _ = values(&session, "about_first").await;
    let before = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    world.extension("second", &with_tools("", &tools("second")));
    session.refresh().await;
    let zygote = world.isolates.pids()[0];
    for name in ["first", "second"] {
        let about = values(&session, &format!("about_{name}")).await;
        let pid = session.find(name)[0].pid.unwrap();
        assert_ne!(pid, zygote);
        assert_eq!((about[0].as_u64(), about[1].as_u64()), (Some(pid.into()), Some(pid.into())));
        assert_eq!(about[2].as_u64(), Some(zygote.into()));
    }
    let about = values(&session, "about_second").await;
    // The clock of the second began after the first had answered; the zygote's began long before.
    let origin = about[3].as_f64().unwrap();
    assert!(origin > before.as_secs_f64() * 1000.0 - 1.0, "{about:?} before {before:?}");
    let age = (about[5].as_f64().unwrap() - origin) / 1000.0;
    assert!((about[4].as_f64().unwrap() - age).abs() < 0.1, "{about:?}");
    world.close(session).await;
}

/// The kernel's tables of a process's pages, in kB: they grow when its memory is scattered. V8 alone would take 0.4 MB.
const MOST_PAGE_TABLES: u64 = 450;

/// Its own thread and the one in the background. V8's have nothing left to do.
const THREADS_AT_REST: u64 = 2;

async fn footprint() {
    let world = World::new();
    world.extension("idle", &with_tools("", ""));
    let session = world.open(world.options()).await;
    let pid = until_info(&session, "idle", "it runs", |info| info.pid.is_some()).await.pid.unwrap();
    let figure = |name: &str| -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    };
    until("V8's threads to end", || figure("Threads:") == THREADS_AT_REST).await;
    let tables = figure("VmPTE:");
    assert!(tables < MOST_PAGE_TABLES, "{tables} kB");
    world.close(session).await;
}

async fn descriptors() {
    let world = World::new();
    let list = "() => { const fs = process.getBuiltinModule('node:fs'); \
        const kinds = fs.readdirSync('/proc/self/fd').map((number) => { \
            try { return fs.readlinkSync(`/proc/self/fd/${number}`).replace(/\\d+/g, 'N'); } catch { return 'gone'; } \
        }).filter((kind) => kind !== 'gone'); \
        return JSON.stringify(kinds.sort()); }";
    let names: Vec<String> = (0..8).map(|number| format!("e{number}")).collect();
    for name in &names {
        let tools = format!("{{ name: \"list_{name}\", handler: {list} }}");
        world.extension(name, &with_tools("", &tools));
    }
    let session = world.open(world.options()).await;
    let first = values(&session, "list_e0").await;
    // Sockets: one to the session, in two descriptors, and what the engine makes for itself.
    for name in &names {
        assert_eq!(values(&session, &format!("list_{name}")).await, first, "{name}");
    }
    world.close(session).await;
}

async fn another_heap() {
    let world = World::new();
    world.extension(
        "small",
        &with_tools("", "{ name: \"random_small\", handler: () => `${process.pid} ${[1, 2, 3].map((x) => x * 2)}` }"),
    );
    world.config("[extensions.small]\nheap-mb = 96\nstart-deadline-s = 600\n");
    let session = world.open(world.options()).await;
    let pid = session.find("small")[0].pid.unwrap();
    assert_eq!(answer(&session, "random_small").await, format!("{pid} 2,4,6"));
    world.close(session).await;
}

async fn put_off() {
    let world = World::new();
    let wait = "async () => { \
        const waiting = Atomics.waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20); \
        return waiting.async ? await waiting.value : waiting.value; }";
    let compile = "async () => { \
        const bytes = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 127, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0, 10, 6, 1, 4, 0, 65, 42, 11]); \
        const { instance } = await WebAssembly.instantiate(bytes); return String(instance.exports.f()); }";
    let tools = format!(
        "{{ name: \"waits\", handler: {wait} }}, {{ name: \"compiles\", handler: {compile} }},\
         {{ name: \"worker\", handler: () => new Promise((resolve, reject) => {{ \
            const code = `const {{ parentPort }} = require('node:worker_threads'); \
                Promise.all([({wait})(), ({compile})()]).then((both) => parentPort.postMessage(both + ' ' + Math.random()));`; \
            const worker = new (process.getBuiltinModule('node:worker_threads').Worker)(code, {{ eval: true }}); \
            worker.on('message', resolve); worker.on('error', reject); }}) }}"
    );
    world.extension("late", &with_tools("", &tools));
    let session = world.open(world.options()).await;
    assert_eq!(answer(&session, "waits").await, "timed-out");
    assert_eq!(answer(&session, "compiles").await, "42");
    // QuickJS has no worker threads.
    if tenon_tests::ENGINE == "v8" {
        let first = answer(&session, "worker").await;
        assert!(first.starts_with("timed-out,42 0."), "{first}");
        assert_ne!(answer(&session, "worker").await, first);
    }
    world.close(session).await;
}

async fn finalization() {
    let world = World::new();
    // Large arrays fill the heap until garbage is collected.
    let collect = "async () => {
        let collected;
        const registry = globalThis.kept = new FinalizationRegistry((held) => { collected = held; });
        (() => { for (let number = 0; number < 100; number += 1) registry.register({}, 'collected'); })();
        while (!collected) {
            new Array(1_000_000).fill(number());
            await new Promise((resolve) => setTimeout(resolve, 0));
        }
        return collected;
    }";
    let before = "const number = () => 0.5;";
    let in_worker = format!(
        "() => new Promise((resolve, reject) => {{
            const code = `{before} ({collect})().then((said) => require('node:worker_threads').parentPort.postMessage(said));`;
            const worker = new (process.getBuiltinModule('node:worker_threads').Worker)(code, {{ eval: true }});
            worker.once('message', resolve);
            worker.once('error', reject);
        }})"
    );
    let tools = format!(
        "{{ name: \"collects\", handler: {collect} }}, {{ name: \"worker_collects\", handler: {in_worker} }}"
    );
    world.extension("collecting", &with_tools(before, &tools));
    let session = world.open(world.options()).await;
    assert_eq!(answer(&session, "collects").await, "collected");
    // QuickJS has no worker threads.
    if tenon_tests::ENGINE == "v8" {
        assert_eq!(answer(&session, "worker_collects").await, "collected");
    }
    world.close(session).await;
}

/// The zygote's own thread, and the one that V8's platform insists on.
const THREADS_OF_ZYGOTE: usize = 2;

async fn booted() {
    let world = World::new();
    world.extension("idle", &with_tools("", ""));
    let session = world.open(world.options()).await;
    let zygote = world.isolates.pids()[0];
    let threads = std::fs::read_dir(format!("/proc/{zygote}/task")).unwrap().count();
    assert!(threads <= THREADS_OF_ZYGOTE, "{threads} threads");
    let files = std::fs::read_dir(format!("/proc/{zygote}/fd")).unwrap().flatten();
    let kinds: Vec<String> = files
        .filter_map(|file| {
            Some(std::fs::read_link(file.path()).ok()?.to_string_lossy().into_owned())
        })
        .collect();
    // Whoever waits there would be woken by what concerns another process.
    let shared = |kind: &&String| ["[eventpoll]", "[eventfd]"].iter().any(|it| kind.contains(it));
    assert_eq!(kinds.iter().find(shared), None, "{kinds:?}");
    assert!(kinds.iter().any(|kind| kind.starts_with("socket:")), "{kinds:?}");
    world.close(session).await;
}

/// How often all threads of a process have given up the processor to wait.
fn waits(pid: u32) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let one = |thread: std::fs::DirEntry| {
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    threads.filter_map(one).sum()
}

async fn rest() {
    let world = World::new();
    world.extension("idle", &with_tools("", "{ name: \"ping\", handler: () => \"pong\" }"));
    let session = world.open(world.options()).await;
    assert_eq!(answer(&session, "ping").await, "pong");
    let all = world.isolates.pids();
    assert_eq!(all.len(), 2);
    // It comes to rest after a while; from then on nothing wakes it.
    for pid in all {
        let mut last = waits(pid);
        let mut quiet = false;
        while !quiet {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            let now = waits(pid);
            quiet = now == last;
            last = now;
        }
    }
    assert_eq!(answer(&session, "ping").await, "pong");
    world.close(session).await;
}

/// Starts and stops in the usual run.
const STARTS: usize = 200;

/// Starts and stops in the long run, unless `TENON_STARTS` says otherwise.
const LONG_STARTS: usize = 10_000;

/// Extensions that are started at once.
const AT_ONCE: usize = 10;

/// Memory by which a process may grow from one measurement to another without having leaked any, in KiB: allocators
/// keep what they think they need.
const SLACK_KB: u64 = 8 * 1024;

async fn many_starts() {
    starts_and_stops(STARTS).await;
}

async fn very_many_starts() {
    let wanted = std::env::var("TENON_STARTS").ok().and_then(|text| text.parse().ok());
    starts_and_stops(wanted.unwrap_or(LONG_STARTS)).await;
}

/// What a process uses.
#[derive(Debug, Clone, Copy)]
struct Usage {
    descriptors: usize,
    children: usize,
    memory_kb: u64,
}

fn usage(pid: u32) -> Usage {
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let of = |thread: std::fs::DirEntry| {
        let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        children.split_whitespace().count()
    };
    let children = threads.map(of).sum();
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    // A share of what is shared would fall and rise with zygotes of other tests, which have the same program.
    let own = rollup.lines().find(|line| line.starts_with("Anonymous:")).unwrap();
    let memory_kb = own.split_whitespace().nth(1).unwrap().parse().unwrap();
    Usage { descriptors, children, memory_kb }
}

#[allow(clippy::print_stdout, reason = "a long run shows how far it is")]
async fn starts_and_stops(starts: usize) {
    let world = World::new();
    let names: Vec<String> = (0..AT_ONCE).map(|number| format!("again{number}")).collect();
    for name in &names {
        let pid = format!("{{ name: \"pid_{name}\", handler: () => String(process.pid) }}");
        world.extension(name, &with_tools("", &pid));
    }
    let session = world.open(world.options()).await;
    let zygote = world.isolates.pids()[0];
    let rounds = starts.div_ceil(AT_ONCE) as u32;
    // What grows at first, such as tables and the pools of allocators, has grown by then.
    let warm = rounds / 4 + 2;
    let mut first = None;
    let mut last = Vec::new();
    for generation in 2..=rounds + 1 {
        last.clear();
        for name in &names {
            last.push(answer(&session, &format!("pid_{name}")).await.parse::<u32>().unwrap());
        }
        session.reload().await;
        for name in &names {
            until_generation(&session, name, generation).await;
        }
        for pid in &last {
            // Waited for, too: a dead child that nobody waits for still has its number.
            let entry = format!("/proc/{pid}");
            until("the process is gone", || !std::path::Path::new(&entry).exists()).await;
        }
        if generation == warm {
            first = Some(settled(&world, zygote).await);
        }
        if generation % 100 == 0 {
            println!(
                "{} starts: {:?}",
                generation as usize * AT_ONCE,
                (usage(zygote), usage(std::process::id()))
            );
        }
    }
    assert_eq!(world.isolates.pids()[0], zygote, "the zygote has died on the way");
    let first = first.unwrap();
    // Of a process that has ended, the session lets go a moment later, so a few were open at the first count, too.
    until("no more is open than after the first starts", || {
        usage(zygote).descriptors <= first.0.descriptors
            && usage(std::process::id()).descriptors <= first.1.descriptors
    })
    .await;
    let last = settled(&world, zygote).await;
    println!(
        "zygote and session after {} starts: {first:?}, after {starts}: {last:?}",
        warm as usize * AT_ONCE
    );
    for (who, before, after) in [("zygote", first.0, last.0), ("session", first.1, last.1)] {
        assert_eq!(after.children, before.children, "{who}: {before:?} {after:?}");
        assert!(after.memory_kb <= before.memory_kb + SLACK_KB, "{who}: {before:?} {after:?}");
    }
    world.close(session).await;
}

/// What zygote and session use, once the processes that were replaced are gone.
async fn settled(world: &World, zygote: u32) -> (Usage, Usage) {
    until("the zygote has one process for each extension", || {
        world.isolates.pids().len() == 1 + AT_ONCE && usage(zygote).children == AT_ONCE
    })
    .await;
    (usage(zygote), usage(std::process::id()))
}

/// A user that nobody is.
const NOBODY: u32 = 64_123;

/// Sets how many processes the user of a process may have, for that process; returns how many there were. That user
/// does it: the superuser of a container need not have the right to.
fn limit_processes(pid: u32, most: &str) -> String {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max processes")).unwrap();
    let before = line.split_whitespace().next().unwrap().to_owned();
    let user = NOBODY.to_string();
    let set = Command::new("setpriv")
        .args(["--reuid", &user, "--regid", &user, "--clear-groups"])
        .args(["prlimit", "--pid", &pid.to_string(), &format!("--nproc={most}:")])
        .status();
    assert!(set.unwrap().success());
    before
}

async fn no_more_processes() {
    // The superuser has no such limit, so the zygote is another user's; only the superuser can arrange that.
    // SAFETY: it only returns a number.
    if unsafe { libc::geteuid() } != 0 {
        return;
    }
    let mut world = World::new();
    world.isolates = Isolates::processes(world.as_user(NOBODY), None);
    world.extension("first", &versioned("first", 1));
    let session = world.open(world.options()).await;
    let zygote = world.isolates.pids()[0];
    assert_eq!(answer(&session, "first").await, "1");
    let before = limit_processes(zygote, "1");
    world.extension("second", &versioned("second", 1));
    session.refresh().await;
    let failed =
        until_info(&session, "second", "failed", |info| info.status == Status::Failed).await;
    let why = failed.error.unwrap().what.message;
    assert!(why.contains("limit of processes"), "{why}");
    // The others are not concerned, and nor is the zygote.
    assert_eq!(answer(&session, "first").await, "1");
    assert_eq!(world.isolates.pids()[0], zygote);
    limit_processes(zygote, &before);
    session.reload().await;
    until_answer(&session, "second", "1").await;
    assert_eq!(world.isolates.pids()[0], zygote);
    world.close(session).await;
}

async fn no_memory() {
    let mut world = World::new();
    let program = std::env::current_exe().unwrap();
    let script = format!(
        "#!/bin/sh\nexec env {}={} {} \"$@\"\n",
        without_memory::VARIABLE,
        tenon_tests::tenon().display(),
        program.display()
    );
    world.isolates = Isolates::processes(world.program("tenon-without-memory", &script), None);
    world.extension("first", &versioned("first", 1));
    let session = world.open(world.options()).await;
    let zygote = world.isolates.pids()[0];
    for name in ["first", "second"] {
        world.extension(name, &versioned(name, 1));
        session.refresh().await;
        let failed =
            until_info(&session, name, "failed", |info| info.status == Status::Failed).await;
        let why = failed.error.unwrap().what.message;
        assert!(why.contains("no memory for another process"), "{why}");
    }
    // It answers, and is the same.
    patiently("the zygote answers", world.isolates.probe()).await.unwrap();
    assert_eq!(world.isolates.pids(), [zygote]);
    world.close(session).await;
}
