//! Agents come and go, some of them because the program is killed: nothing may remain.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use libtest_mimic::Trial;
use tenon_tests::Workspace;
use tenon_tests::trial;

use crate::client::PATIENCE;
use crate::client::patiently;

/// Carried by every process that descends from a test.
pub const MARK: &str = "CYCLES_MARK";

/// How many cycles, unless `$TENON_CYCLES` says otherwise. Half of them are killed.
const CYCLES: u64 = 10;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("cycles::nothing_remains_of_agents_that_end_and_agents_that_are_killed", cycles),
        trial("cycles::a_killed_editor_front_takes_everything_along", killed_front),
        trial("cycles::a_killed_program_takes_the_agents_terminals_along", killed_terminal),
    ]
}

/// The processes that carry the mark.
pub fn marked(mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let path = entry.path();
        let Ok(environment) = std::fs::read(path.join("environ")) else { continue };
        let carries = environment.split(|&byte| byte == 0).any(|it| it == wanted.as_bytes());
        let state = std::fs::read_to_string(path.join("stat")).unwrap_or_default();
        if carries && !state.contains(") Z ") {
            let command = std::fs::read(path.join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            found.push(format!("{}: {command}", entry.file_name().to_string_lossy()));
        }
    }
    found
}

/// Waits until no process carries the mark.
pub async fn nothing_remains(mark: &str) {
    let gone = async {
        while !marked(mark).is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, gone).await.is_err() {
        panic!("these remain: {:#?}", marked(mark));
    }
}

/// Waits until so many processes carry the mark. One that is being started may not show it yet.
pub async fn are_there(mark: &str, least: usize) {
    let there = async {
        while marked(mark).len() < least {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, there).await.is_err() {
        panic!("only these are there: {:#?}", marked(mark));
    }
}

fn files_below(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

async fn cycles() {
    let cycles = std::env::var("TENON_CYCLES").ok().and_then(|text| text.parse().ok());
    let cycles: u64 = cycles.unwrap_or(CYCLES);
    let mark = format!("cycles-{}", std::process::id());
    let workspace = Workspace::new().tool("echo", "return args.text;").env(MARK, &mark);
    let temporary = workspace.cwd().join("../tmp");
    std::fs::create_dir(&temporary).unwrap();
    let workspace = workspace.env("TMPDIR", &temporary);
    let prompt =
        "@say begun\n@spawn-orphan\n@call echo {\"text\":\"x\"}\n@run sleep 0.05\n@say done";
    // The time a whole run takes once files and caches are there; kills are spread over it.
    let mut whole = Duration::ZERO;
    for _ in 0..2 {
        let begun = std::time::Instant::now();
        let run = workspace.run(&["run", "-a", "demo", "--permissions", "approve-all", prompt]);
        assert_eq!(run.code, 0, "{run:#?}");
        whole = begun.elapsed();
        nothing_remains(&mark).await;
    }
    let mut killed = 0;
    for cycle in 0..cycles {
        let mut command =
            workspace.command(&["run", "-a", "demo", "--permissions", "approve-all", prompt]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = tokio::process::Command::from(command).spawn().unwrap();
        if cycle % 2 == 0 {
            let status = patiently("a run ends", child.wait()).await.unwrap();
            assert!(status.success(), "{status}");
        } else {
            // A different moment each time: the golden ratio spreads them.
            let share = (cycle as f64 * 0.618_034).fract();
            tokio::time::sleep(whole.mul_f64(share)).await;
            child.start_kill().unwrap();
            killed += u64::from(child.wait().await.unwrap().signal().is_some());
        }
    }
    assert!(killed > 0, "every run was over before it could be killed");
    nothing_remains(&mark).await;
    assert_eq!(files_below(&temporary), [""; 0], "temporary files remain");
    // What a killed program could not remove, the next one does.
    let run = workspace.run(&["run", "-a", "demo", "--permissions", "approve-all", "@say last"]);
    assert_eq!(run.code, 0, "{run:#?}");
    assert_eq!(files_below(&workspace.home().join("run")), [""; 0], "sockets remain");
    nothing_remains(&mark).await;
}

async fn killed_terminal() {
    let mark = format!("terminal-{}", std::process::id());
    let workspace = Workspace::new().env(MARK, &mark);
    workspace.home_file("config.toml", "[agents.demo]\nclient-terminal = true\n");
    let prompt = "@client-run touch started; sleep 1000; true";
    let mut command =
        workspace.command(&["run", "-a", "demo", "--permissions", "approve-all", prompt]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = tokio::process::Command::from(command).spawn().unwrap();
    patiently("the command runs", async {
        while !workspace.cwd().join("started").exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert!(marked(&mark).iter().any(|it| it.contains("sleep")), "{:#?}", marked(&mark));
    child.kill().await.unwrap();
    nothing_remains(&mark).await;
}

async fn killed_front() {
    let mark = format!("front-{}", std::process::id());
    let workspace = Workspace::new().tool("echo", "return args.text;").env(MARK, &mark);
    let client = crate::client::Client::with_demo(&workspace).await;
    let session = client.open(&workspace).await;
    client.prompt(&session, "@spawn-orphan\n@say begun").await.unwrap();
    are_there(&mark, 4).await;
    // SAFETY: the process is ours and has not been waited for.
    unsafe { libc::kill(client.pid() as i32, libc::SIGKILL) };
    nothing_remains(&mark).await;
}
