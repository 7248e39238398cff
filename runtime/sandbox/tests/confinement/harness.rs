//! Starts the cases, plays them, and compares.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::process::ExitCode;

use libtest_mimic::Arguments;
use libtest_mimic::Failed;
use libtest_mimic::Trial;
use tenon_sandbox::Request;

use crate::attempts;
use crate::cases;
use crate::cases::Case;
use crate::cases::Unconfined;
use crate::cost;
use crate::world::World;

/// The first argument of a process that plays a case: then the case, where, as whom, confined or not.
const PLAY: &str = "--play";
/// The first argument of a process that measures.
const COST: &str = "--cost";

/// A user with no files and no rights, on every system.
const NOBODY: u32 = 65534;

pub fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some(PLAY) => {
            play(&arguments[2..]);
            return ExitCode::SUCCESS;
        }
        Some(COST) => {
            cost::measure();
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    // SAFETY: cannot fail.
    let me = unsafe { libc::geteuid() };
    let users = if me == 0 { vec![0, NOBODY] } else { vec![me] };
    let mut trials = vec![Trial::test("the_probe_changes_nothing", the_probe_changes_nothing)];
    for case in cases::all() {
        for user in &users {
            let (case, user) = (case.clone(), *user);
            let whom = if user == 0 { "root" } else { "user" };
            trials.push(Trial::test(format!("{}::{whom}", case.name), move || check(&case, user)));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn the_probe_changes_nothing() -> Result<(), Failed> {
    let status = || {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let kept = |line: &&str| {
            ["Uid", "Cap", "NoNew", "Seccomp"].iter().any(|name| line.starts_with(name))
        };
        status.lines().filter(kept).collect::<Vec<_>>().join("\n")
    };
    let namespace = || std::fs::read_link("/proc/thread-self/ns/mnt").unwrap();
    let before = (status(), namespace());
    let layers = tenon_sandbox::available();
    assert_eq!(before, (status(), namespace()));
    assert!(layers.seccomp && layers.no_new_privs, "{layers:?}");
    Ok(())
}

/// Plays a case confined and unconfined, and compares.
fn check(case: &Case, user: u32) -> Result<(), Failed> {
    let confined = start(case.name, user, true)?;
    if !case.expected.iter().any(|expected| confined == *expected) {
        return Err(format!("expected {:?}, got {confined:?}", case.expected).into());
    }
    let unconfined = start(case.name, user, false)?;
    let right = match case.unconfined {
        // If nothing changes by confining, the case shows nothing.
        Unconfined::Differs => confined != unconfined,
        Unconfined::DiffersForRoot => user != 0 || confined != unconfined,
        Unconfined::Same => confined == unconfined,
        Unconfined::Unknown => true,
    };
    if !right {
        return Err(format!("confined: {confined:?}, unconfined: {unconfined:?}").into());
    }
    Ok(())
}

fn start(case: &str, user: u32, confined: bool) -> Result<String, Failed> {
    let place = tempfile::tempdir()?;
    let world = World::make(place.path(), user)?;
    let output = Command::new(std::env::current_exe()?)
        .arg(PLAY)
        .args([case, &user.to_string(), &confined.to_string()])
        .arg(world.base())
        .env("TENON_SECRET", "in the parent's environment")
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {text} {errors}", output.status).into());
    }
    Ok(text)
}

/// Becomes the user, and lets a child be confined and try.
fn play(arguments: &[String]) {
    let [case, user, confined, base] = arguments else {
        panic!("usage: {PLAY} case user confined base");
    };
    let case = cases::all().into_iter().find(|known| known.name == case).expect("a known case");
    let user: u32 = user.parse().unwrap();
    // SAFETY: numbers only, in a process with one thread.
    unsafe {
        if libc::geteuid() != user {
            assert_eq!(libc::setgroups(0, std::ptr::null()), 0);
            assert_eq!(libc::setresgid(user, user, user), 0);
            assert_eq!(libc::setresuid(user, user, user), 0);
        }
        // Whoever changes users is hidden from others, itself included.
        libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0);
    }
    let world = World::at(Path::new(base));
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let result = act(&case, &world, confined == "true");
        let written = std::io::stdout().write_all(result.as_bytes());
        std::process::exit(i32::from(written.is_err()));
    }
    let status = attempts::wait(child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "child ended with {status}");
}

fn act(case: &Case, world: &World, confined: bool) -> String {
    std::env::set_current_dir(world.workspace()).unwrap();
    let asked = (case.asked)(world);
    let attempt = (case.prepare)(world);
    if !confined {
        return attempt(world, None);
    }
    let folder = world.extension();
    let request = Request {
        grant: &asked.grant,
        folder: &folder,
        readable: &[],
        protected: &asked.protected,
        mode: asked.mode,
    };
    match tenon_sandbox::confine_within(&request, &asked.usable) {
        Ok(layers) => attempt(world, Some(layers)),
        Err(error) => {
            assert!(!error.hint().is_empty());
            // Where the files are is another place each time.
            let base = world.workspace().display().to_string();
            let error = error.to_string();
            match error.split_once(&base) {
                Some((reason, _)) => format!("not confined: {reason}a folder"),
                None => format!("not confined: {error}"),
            }
        }
    }
}
