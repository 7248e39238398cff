//! Programs of one user share a zygote, which ends when nobody uses it.

use std::collections::BTreeSet;
use std::process::Child;
use std::process::Stdio;

use serde_json::json;
use tenon_tests::Workspace;

use crate::privacy::until;

/// Programs that are started at once.
const AT_ONCE: usize = 4;

/// Longer than any test takes: a zygote that is idle for so long is ended by the test itself.
const FOR_EVER_S: &str = "600";

/// Extensions whose parent is the zygote: one says which it is, and one writes it down when it is loaded.
fn workspace(idle_s: &str) -> Workspace {
    let noting = "import { appendFileSync } from 'node:fs'; appendFileSync('zygotes', `${process.ppid}\\n`);\n\
        const { joinSession } = await import('@github/copilot-sdk/extension'); await joinSession();\n";
    Workspace::new()
        .env("TENON_ZYGOTE_IDLE_S", idle_s)
        .tool("zygote", "return String(process.ppid);")
        .extension("noting", noting)
}

/// A program with a session, until it is dropped. It ends in order.
struct Program(Child);

impl Program {
    fn start(workspace: &Workspace) -> Self {
        let mut command = workspace.command(&["mcp"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Which zygotes have been written down, one for each program.
fn noted(workspace: &Workspace) -> Vec<i32> {
    let text = std::fs::read_to_string(workspace.cwd().join("zygotes")).unwrap_or_default();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

/// The zygote of one more program, which ends at once.
fn ask(workspace: &Workspace) -> i32 {
    workspace.answer("zygote", &json!({})).parse().unwrap()
}

fn is_alive(process: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat"))
        .is_ok_and(|stat| !stat.contains(") Z "))
}

/// Ends a zygote that would go on for longer than the test.
struct Ended(i32);

impl Drop for Ended {
    fn drop(&mut self) {
        // SAFETY: it takes two integers. The process was alive and is nobody's but this test's.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
    }
}

#[test]
fn two_programs_share_a_zygote_that_ends_with_the_last_of_them() {
    let workspace = workspace("0");
    let program = Program::start(&workspace);
    until("the first program has loaded its extensions", || noted(&workspace).len() == 1);
    let zygote = noted(&workspace)[0];
    assert_eq!(ask(&workspace), zygote);
    assert_eq!(ask(&workspace), zygote);
    assert!(is_alive(zygote));
    drop(program);
    until("the zygote ends", || !is_alive(zygote));
    // The next program has another one.
    assert_ne!(ask(&workspace), zygote);
}

#[test]
fn programs_that_start_at_once_end_with_one_zygote() {
    let workspace = workspace(FOR_EVER_S);
    let programs: Vec<Program> = (0..AT_ONCE).map(|_| Program::start(&workspace)).collect();
    until("all have loaded their extensions", || noted(&workspace).len() == AT_ONCE);
    let shared = ask(&workspace);
    let _ended = Ended(shared);
    drop(programs);
    let all: BTreeSet<i32> = noted(&workspace).into_iter().collect();
    // One that found the place taken serves its starter alone, and ends with it.
    let others = || all.iter().filter(|zygote| **zygote != shared && is_alive(**zygote));
    until("no other zygote is left", || others().count() == 0);
    assert!(is_alive(shared));
    assert_eq!(ask(&workspace), shared);
}
