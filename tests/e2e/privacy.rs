//! What other processes of the same user see of a session and a zygote: neither memory nor environment, which have secrets of
//! all extensions. For the superuser, as whom these tests often run, nothing is hidden; so somebody else is asked.

use std::os::unix::process::CommandExt;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use tenon_tests::Workspace;

/// A user who has nothing else.
const USER: u32 = 64_127;

/// How long something that must happen may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// Ends the process when a test is over, however.
struct Session(Child);

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn session_and_zygote_are_not_looked_into_by_processes_of_their_user() {
    // SAFETY: it only returns a number.
    if unsafe { libc::geteuid() } != 0 {
        return;
    }
    let workspace = Workspace::new().tool("ping", "return 'pong';");
    std::fs::create_dir_all(workspace.home()).unwrap();
    let root = workspace.cwd().parent().unwrap().to_owned();
    assert!(Command::new("chmod").args(["-R", "a+rwX"]).arg(&root).status().unwrap().success());
    let command = workspace.command(&["mcp"]);
    let mut other = Command::new(tenon_tests::reachable_tenon(&root));
    other.args(command.get_args()).current_dir(workspace.cwd()).env_clear();
    other.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    other.uid(USER).gid(USER).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let session = Session(other.spawn().unwrap());
    let zygote = child_of(session.0.id());
    let extension = child_of(zygote);
    // Whether a process that is not confined may look into it, as a debugger of the user would.
    let is_open = |process: u32| {
        let file = format!("/proc/{process}/environ");
        let looked = Command::new("cat").arg(file).uid(USER).gid(USER).output().unwrap();
        looked.status.success()
    };
    // Nothing is denied to it, so it hides nothing.
    until("the extension can be looked into", || is_open(extension));
    assert!(!is_open(session.0.id()), "the session");
    assert!(!is_open(zygote), "the zygote");
}

/// The first child of a process, once there is one.
fn child_of(process: u32) -> u32 {
    let mut child = None;
    until(&format!("{process} has a child"), || {
        let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
        let children = threads.flatten().filter_map(|thread| {
            let list = std::fs::read_to_string(thread.path().join("children")).ok()?;
            list.split_whitespace().next()?.parse().ok()
        });
        child = children.into_iter().next();
        child.is_some()
    });
    child.unwrap()
}

pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "this never came: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
