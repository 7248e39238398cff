//! Start-up where the system refuses something: each command works, or says in one line why not, and ends.

use std::io::Error;
use std::os::unix::process::CommandExt;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use seccompiler::BpfProgram;
use seccompiler::SeccompAction;
use seccompiler::SeccompFilter;
use tenon_tests::Run;
use tenon_tests::Workspace;

/// How long a command may take that should take a second: longer means that it hangs.
const HANGS_AFTER: Duration = Duration::from_secs(120);

/// Users that nobody is, one for each process under test: the system counts the processes of a user, not of a program.
static NEXT_USER: AtomicU32 = AtomicU32::new(50_000);

const COMMANDS: [&[&str]; 5] =
    [&["call", "ping"], &["ext", "list"], &["run", "-a", "demo", "hello"], &["doctor"], &["mcp"]];

/// What the system refuses.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    Limit(libc::__rlimit_resource_t, u64),
    /// Processes and threads of the user; the superuser has no such limit.
    Processes(u64),
    /// A system call, which fails with this error.
    Call(libc::c_long, i32),
    /// `/proc` is empty.
    NoProc,
}

/// How a command fares where something is refused.
#[derive(Clone, Copy, Debug)]
enum Expected {
    /// It works.
    Works,
    /// It says this, and fails.
    Says(&'static str),
    /// One or the other: it depends on what else needs the same thing.
    Either,
}

fn limited(mut command: Command, refusal: Refusal) -> Command {
    let filter: Option<BpfProgram> = match refusal {
        Refusal::Call(number, error) => Some(refusing(number, error)),
        _ => None,
    };
    let user = NEXT_USER.fetch_add(1, Ordering::Relaxed) + (std::process::id() % 1000) * 4;
    let prepare = move || {
        match refusal {
            Refusal::Limit(resource, most) => set_limit(resource, most)?,
            Refusal::Processes(most) => {
                // SAFETY: these take integers, and a length of zero with no list.
                let became = unsafe {
                    libc::setgroups(0, std::ptr::null()) == 0
                        && libc::setgid(user) == 0
                        && libc::setuid(user) == 0
                };
                if !became {
                    return Err(Error::last_os_error());
                }
                set_limit(libc::RLIMIT_NPROC, most)?;
            }
            Refusal::NoProc => hide_proc()?,
            Refusal::Call(..) => {}
        }
        match &filter {
            Some(filter) => seccompiler::apply_filter(filter).map_err(Error::other),
            None => Ok(()),
        }
    };
    // SAFETY: it makes system calls, and allocates nothing unless one of them fails.
    unsafe { command.pre_exec(prepare) };
    command
}

fn refusing(number: libc::c_long, error: i32) -> BpfProgram {
    let rules = [(number, Vec::new())].into_iter().collect();
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let denied = SeccompAction::Errno(error.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, arch).unwrap();
    filter.try_into().unwrap()
}

fn set_limit(resource: libc::__rlimit_resource_t, most: u64) -> std::io::Result<()> {
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: the structure is ours.
    if unsafe { libc::setrlimit(resource, &raw const limit) } != 0 {
        return Err(Error::last_os_error());
    }
    Ok(())
}

fn hide_proc() -> std::io::Result<()> {
    // SAFETY: the strings are constants that end with a zero.
    let hidden = unsafe {
        let none = c"none".as_ptr();
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(
                none,
                c"/".as_ptr(),
                std::ptr::null(),
                libc::MS_REC | libc::MS_PRIVATE,
                std::ptr::null(),
            ) == 0
            && libc::mount(none, c"/proc".as_ptr(), c"tmpfs".as_ptr(), 0, std::ptr::null()) == 0
    };
    if hidden { Ok(()) } else { Err(Error::last_os_error()) }
}

fn workspace() -> Workspace {
    let workspace = Workspace::new().tool("ping", "return 'pong';");
    std::fs::create_dir_all(workspace.home()).unwrap();
    // Other users work in it, too.
    let root = workspace.cwd().parent().unwrap().to_owned();
    let opened = Command::new("chmod").args(["-R", "a+rwX"]).arg(root).status().unwrap();
    assert!(opened.success());
    workspace
}

/// Waits for a process; one that hangs is killed, and the test fails.
fn ends(mut child: Child, what: &str) -> Run {
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > HANGS_AFTER {
            child.kill().unwrap();
            panic!("{what} hangs: {:#?}", Run::new(child.wait_with_output().unwrap()));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Run::new(child.wait_with_output().unwrap())
}

/// The command with a program that every user can reach, wherever the one under test is.
fn reachable(workspace: &Workspace, command: &Command) -> Command {
    let program = tenon_tests::reachable_tenon(workspace.cwd().parent().unwrap());
    let mut other = Command::new(program);
    other.args(command.get_args()).current_dir(workspace.cwd()).env_clear();
    other.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    other
}

fn started(workspace: &Workspace, args: &[&str], refusal: Refusal, stdin: Stdio) -> Child {
    let command = workspace.command(args);
    let command = match refusal {
        Refusal::Processes(_) => reachable(workspace, &command),
        _ => command,
    };
    let mut command = limited(command, refusal);
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Plays all commands, and both signals to one that stays.
fn try_all(refusal: Refusal, expected: Expected) {
    // Changing the user and mounting needs the superuser.
    // SAFETY: it only returns a number.
    let is_superuser = unsafe { libc::geteuid() } == 0;
    if !is_superuser && matches!(refusal, Refusal::Processes(_) | Refusal::NoProc) {
        return;
    }
    for args in COMMANDS {
        let workspace = workspace();
        let what = format!("{args:?} with {refusal:?}");
        let run = ends(started(&workspace, args, refusal, Stdio::null()), &what);
        is_in_order(&run, &what);
        // It looks for what is wrong; and an agent works without extensions.
        let says_otherwise = args == ["doctor"] || args[0] == "run";
        match expected {
            Expected::Works => assert_eq!(run.code, 0, "{what}: {run:#?}"),
            Expected::Says(text) if !says_otherwise => {
                assert_ne!(run.code, 0, "{what}: {run:#?}");
                assert!(run.stderr.contains(text), "{what}: {run:#?}");
            }
            Expected::Says(_) | Expected::Either => {}
        }
    }
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let workspace = workspace();
        let what = format!("signal {signal} to mcp with {refusal:?}");
        let mut child = started(&workspace, &["mcp"], refusal, Stdio::piped());
        let input = child.stdin.take();
        until_it_listens(&mut child, signal);
        // SAFETY: the process is ours and has not been waited for.
        unsafe { libc::kill(child.id().cast_signed(), signal) };
        let run = ends(child, &what);
        drop(input);
        assert!(!run.stderr.contains("panicked"), "{what}: {run:#?}");
    }
}

/// Waits until a process handles a signal, or has ended. Before that the signal ends every program.
fn until_it_listens(child: &mut Child, signal: libc::c_int) {
    let status = format!("/proc/{}/status", child.id());
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        if caught.is_some_and(|mask| mask & (1 << (signal - 1)) != 0) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// It did not crash, and whatever is wrong was said.
fn is_in_order(run: &Run, what: &str) {
    assert!(!run.stderr.contains("panicked"), "{what}: {run:#?}");
    assert!(run.code >= 0, "{what} was ended by a signal: {run:#?}");
    let has_failed = run.code != 0;
    assert!(
        !has_failed || run.stderr.contains("error: ") || run.stdout.contains("FAIL"),
        "{what}: {run:#?}"
    );
}

#[test]
fn address_space() {
    for gigabytes in [4, 8] {
        // QuickJS reserves none.
        let expected = match tenon_tests::ENGINE {
            "v8" => Expected::Says("address space"),
            _ => Expected::Works,
        };
        try_all(Refusal::Limit(libc::RLIMIT_AS, gigabytes << 30), expected);
    }
}

#[test]
fn processes() {
    for most in [1, 2, 5, 10] {
        try_all(Refusal::Processes(most), Expected::Says("threads that tenon needs"));
    }
    for most in [14, 17] {
        try_all(Refusal::Processes(most), Expected::Either);
    }
    try_all(Refusal::Processes(60), Expected::Works);
}

#[test]
fn open_files() {
    for most in [8, 16] {
        try_all(Refusal::Limit(libc::RLIMIT_NOFILE, most), Expected::Says("can be opened"));
    }
    try_all(Refusal::Limit(libc::RLIMIT_NOFILE, 32), Expected::Either);
    try_all(Refusal::Limit(libc::RLIMIT_NOFILE, 128), Expected::Works);
}

#[test]
fn file_size() {
    try_all(Refusal::Limit(libc::RLIMIT_FSIZE, 0), Expected::Either);
}

#[test]
fn no_files_in_memory() {
    try_all(Refusal::Call(libc::SYS_memfd_create, libc::ENOSYS), Expected::Works);
}

#[test]
fn no_pairs_of_sockets() {
    try_all(Refusal::Call(libc::SYS_socketpair, libc::EPERM), Expected::Says("pair of sockets"));
}

#[test]
fn no_proc() {
    try_all(Refusal::NoProc, Expected::Says("/proc"));
}

#[test]
fn no_landlock() {
    let no_landlock = Refusal::Call(libc::SYS_landlock_create_ruleset, libc::ENOSYS);
    let restricted = "[extensions.ping]\nprofile = \"workspace\"\n";
    let call = |config: &str, refusal| {
        let workspace = workspace();
        workspace.home_file("config.toml", config);
        let what = format!("{config:?} with {refusal:?}");
        let run = ends(started(&workspace, &["call", "ping"], refusal, Stdio::null()), &what);
        is_in_order(&run, &what);
        run
    };
    // The usual is to do without, and to say so where somebody asks.
    let run = call(restricted, no_landlock);
    assert_eq!((run.code, run.stdout.trim()), (0, "pong"), "{run:#?}");
    // Whoever demands all that the kernel can do gets nothing less.
    let run = call(&format!("{restricted}sandbox = \"required\"\n"), no_landlock);
    assert_ne!(run.code, 0, "{run:#?}");
    assert!(run.stderr.contains("Landlock is not available"), "{run:#?}");
}
