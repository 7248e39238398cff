//! The cases: what is asked for, what is tried then, and what comes of it.

use std::fs;
use std::io::Read;
use std::io::Write;
use std::net::ToSocketAddrs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::net::UnixStream;

use tenon_protocol::message::Access;
use tenon_sandbox::Layers;
use tenon_sandbox::Mode;

use crate::asked::Asked;
use crate::asked::all_hosts;
use crate::asked::all_hosts_and_programs;
use crate::asked::all_hosts_but_one_and_programs;
use crate::asked::files;
use crate::asked::hidden_home;
use crate::asked::home;
use crate::asked::home_by_a_link;
use crate::asked::home_in_the_workspace;
use crate::asked::plain;
use crate::asked::programs;
use crate::asked::programs_and_protected;
use crate::asked::protected;
use crate::asked::protected_by_links;
use crate::asked::read_only;
use crate::asked::repository;
use crate::asked::secrets;
use crate::asked::some_hosts;
use crate::asked::some_hosts_and_programs;
use crate::asked::unrestricted;
use crate::asked::with;
use crate::asked::without;
use crate::attempts;
use crate::attempts::called;
use crate::attempts::shown;
use crate::world::World;

/// How the same attempt ends without any confinement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unconfined {
    /// Otherwise: the layer makes the difference.
    Differs,
    /// Otherwise for root; any other user has no right to it anyway.
    DiffersForRoot,
    /// In the same way: what is allowed goes on to work.
    Same,
    /// That depends on the machine.
    Unknown,
}

use Unconfined::Differs;
use Unconfined::DiffersForRoot;
use Unconfined::Same;
use Unconfined::Unknown;

pub type Attempt = Box<dyn FnOnce(&World, Option<Layers>) -> String>;

#[derive(Clone)]
pub struct Case {
    pub name: &'static str,
    pub asked: fn(&World) -> Asked,
    /// Gets ready before the process is confined, and returns what is tried after.
    pub prepare: fn(&World) -> Attempt,
    /// One of these.
    pub expected: &'static [&'static str],
    pub unconfined: Unconfined,
}

fn parent(file: &str) -> String {
    // SAFETY: cannot fail.
    format!("/proc/{}/{file}", unsafe { libc::getppid() })
}

/// A list of cases, one line of what is asked and one of what is tried each.
macro_rules! cases {
    ($($name:ident: $asked:expr, $expected:expr, $unconfined:ident, $prepare:expr;)*) => {
        vec![$(Case {
            name: stringify!($name),
            asked: $asked,
            prepare: $prepare,
            expected: &$expected,
            unconfined: $unconfined,
        }),*]
    };
}

/// Nothing to get ready.
macro_rules! then {
    ($attempt:expr) => {
        |_| {
            Box::new(|world, _| {
                let attempt: fn(&World) -> String = $attempt;
                attempt(world)
            })
        }
    };
}

pub fn all() -> Vec<Case> {
    let mut all = inside_and_outside();
    all.extend(protected_paths());
    all.extend(denied_paths());
    all.extend(places_of_ours());
    all.extend(other_processes());
    all.extend(what_belongs_to_other_processes());
    all.extend(shared_by_number());
    all.extend(network());
    all.extend(starting_programs());
    all.extend(system_calls());
    all.extend(the_sandbox_itself());
    all
}

fn inside_and_outside() -> Vec<Case> {
    cases! {
        reads_inside: plain, ["ok"], Same, then!(|world| attempts::read(world.path("ws/notes.txt")));
        reads_its_own_folder: plain, ["ok"], Same,
            then!(|world| attempts::read(world.path("ext/main.js")));
        writes_inside: plain, ["ok"], Same, then!(|world| attempts::append(world.path("ws/notes.txt")));
        works_inside: plain, ["ok"], Same, then!(|world| attempts::work_in(&world.workspace()));
        works_inside_with_mounts: protected, ["ok"], Same,
            then!(|world| attempts::work_in(&world.workspace()));
        works_beside_what_is_protected: protected, ["ok"], Same,
            then!(|world| attempts::work_in(&world.path("ws/.git")));
        reads_nothing_outside: plain, ["EACCES"], Differs,
            then!(|world| attempts::read(world.path("outside/secret.txt")));
        lists_nothing_outside: plain, ["EACCES"], Differs,
            then!(|world| shown(fs::read_dir(world.path("outside"))));
        writes_nothing_outside: plain, ["EACCES"], Differs,
            then!(|world| attempts::append(world.path("outside/secret.txt")));
        truncates_nothing_outside: plain, ["EACCES"], Differs, then!(|world| {
            let path = world.text("outside/secret.txt") + "\0";
            // SAFETY: the path ends with a null byte.
            called(unsafe { libc::truncate(path.as_ptr().cast(), 0) }.into())
        });
        writes_nothing_in_its_own_folder: plain, ["EACCES"], Differs,
            then!(|world| attempts::append(world.path("ext/main.js")));
        follows_no_link_out: plain, ["EACCES"], Differs,
            then!(|world| attempts::append(world.path("ws/way-out")));
        follows_no_link_out_with_mounts: protected, ["EACCES", "EROFS"], Differs,
            then!(|world| attempts::append(world.path("ws/way-out")));
        moves_nothing_in: plain, ["EXDEV", "EACCES"], Differs, then!(|world| {
            shown(fs::rename(world.path("outside/secret.txt"), world.path("ws/mine")))
        });
        links_nothing_in: plain, ["EXDEV", "EACCES"], Differs, then!(|world| {
            shown(fs::hard_link(world.path("outside/secret.txt"), world.path("ws/mine")))
        });
        changes_no_mode_outside_with_mounts: protected, ["EROFS"], Differs, then!(|world| {
            let mode = fs::Permissions::from_mode(0o777);
            shown(fs::set_permissions(world.path("outside/secret.txt"), mode))
        });
        changes_no_mode_if_nothing_is_writable: read_only, ["EACCES"], Differs, then!(|world| {
            let mode = fs::Permissions::from_mode(0o777);
            shown(fs::set_permissions(world.path("ws/notes.txt"), mode))
        });
        changes_modes_inside: protected, ["ok"], Same, then!(|world| {
            let mode = fs::Permissions::from_mode(0o700);
            shown(fs::set_permissions(world.path("ws/notes.txt"), mode))
        });
        makes_no_device: plain, ["EACCES", "EPERM"], DiffersForRoot, then!(|world| {
            let path = world.text("ws/memory") + "\0";
            // SAFETY: the path ends with a null byte.
            let made = unsafe { libc::mknod(path.as_ptr().cast(), libc::S_IFCHR, libc::makedev(1, 1)) };
            called(made.into())
        });
        writes_to_the_null_device: plain, ["ok"], Same, then!(|_| shown(fs::write("/dev/null", "x")));
        reads_no_other_device: programs, ["EACCES"], DiffersForRoot,
            then!(|_| shown(fs::File::open("/dev/kmsg")));
        what_does_not_exist_yet_stays_closed: |world| {
            let later = Access::only([world.text("later")]);
            with(plain(world), |grant| grant.write = later)
        }, ["EACCES 1"], Differs, |_| Box::new(|world, layers| {
            let notes = layers.map_or(0, |layers| layers.notes.len());
            format!("{} {notes}", shown(fs::create_dir(world.path("later"))))
        });
    }
}

fn protected_paths() -> Vec<Case> {
    cases! {
        creates_nothing_in_protected: protected, ["EROFS"], Differs,
            then!(|world| attempts::create(world.path("ws/.github/extensions/new.js")));
        writes_nothing_in_protected: protected, ["EROFS"], Differs,
            then!(|world| attempts::append(world.path("ws/.git/hooks/pre-commit")));
        writes_nothing_to_a_protected_file: protected, ["EROFS"], Differs,
            then!(|world| attempts::append(world.path("ws/.git/config")));
        writes_nothing_by_a_relative_path: protected, ["EROFS"], Differs,
            then!(|_| attempts::create(".git/hooks/post-commit"));
        writes_nothing_by_way_of_proc: |world| Asked { protected: protected(world).protected, ..files(world) },
            ["EROFS"], Differs, then!(|_| attempts::create("/proc/self/cwd/.git/hooks/post-commit"));
        writes_nothing_in_protected_where_all_is_writable:
            |world| Asked { protected: protected(world).protected, ..files(world) },
            ["EROFS"], Differs, then!(|_| attempts::create(".git/hooks/post-commit"));
        writes_beside_protected_where_all_is_writable:
            |world| Asked { protected: protected(world).protected, ..files(world) },
            ["ok"], Same, then!(|world| attempts::append(world.path("outside/secret.txt")));
        renames_no_workspace_where_all_is_writable:
            |world| Asked { protected: protected(world).protected, ..files(world) },
            ["EBUSY"], Differs, then!(|world| shown(fs::rename(world.path("ws"), world.path("ws2"))));
        replaces_no_protected_file: protected, ["EBUSY"], Differs, then!(|world| {
            fs::write(world.path("ws/.git/config.lock"), "[core]").unwrap();
            shown(fs::rename(world.path("ws/.git/config.lock"), world.path("ws/.git/config")))
        });
        removes_no_protected_file: protected, ["EBUSY"], Differs,
            then!(|world| shown(fs::remove_file(world.path("ws/.git/config"))));
        renames_no_protected_folder: protected, ["EBUSY"], Differs, then!(|world| {
            shown(fs::rename(world.path("ws/.git/hooks"), world.path("ws/.git/old")))
        });
        renames_nothing_above_protected: protected, ["EBUSY"], Differs,
            then!(|world| shown(fs::rename(world.path("ws/.github"), world.path("ws/old"))));
        links_no_protected_file_to_write_it: protected, ["EXDEV"], Differs, then!(|world| {
            let link = world.path("ws/mine");
            let linked = fs::hard_link(world.path("ws/.git/hooks/pre-commit"), &link);
            if linked.is_ok() { attempts::append(link) } else { shown(linked) }
        });
        removes_no_link_to_what_is_protected: protected_by_links, ["EBUSY"], Differs,
            then!(|world| shown(fs::remove_file(world.path("ws/to-secret"))));
        replaces_no_link_to_what_is_protected: protected_by_links, ["EBUSY"], Differs, then!(|world| {
            std::os::unix::fs::symlink("elsewhere", world.path("ws/other")).unwrap();
            shown(fs::rename(world.path("ws/other"), world.path("ws/to-secret")))
        });
        renames_nothing_above_a_link_to_what_is_protected: protected_by_links, ["EBUSY"], Differs,
            then!(|world| shown(fs::rename(world.path("ws/sub"), world.path("ws/old"))));
        renames_nothing_above_what_is_protected_and_absent: |world| Asked {
            protected: vec![world.path("ws/sub/deep/absent/hooks")], ..plain(world)
        }, ["EBUSY EBUSY ok"], Differs, then!(|world| {
            let moves = [("ws/sub", "ws/old"), ("ws/sub/deep", "ws/sub/old")];
            let moved = moves.map(|(from, to)| shown(fs::rename(world.path(from), world.path(to))));
            format!("{} {}", moved.join(" "), attempts::create(world.path("ws/sub/deep/secret/new")))
        });
        follows_a_link_to_what_is_protected: protected_by_links, ["ok EROFS"], Differs, then!(|world| {
            let read = attempts::read(world.path("ws/to-secret/key.txt"));
            format!("{read} {}", attempts::create(world.path("ws/sub/to-hooks/post-commit")))
        });
        reads_what_is_protected: protected, ["ok"], Same,
            then!(|world| attempts::read(world.path("ws/.git/config")));
    }
}

fn denied_paths() -> Vec<Case> {
    cases! {
        reads_nothing_denied: secrets, ["EACCES"], Differs,
            then!(|world| attempts::read(world.path("ws/sub/deep/secret/key.txt")));
        lists_nothing_denied: secrets, ["EACCES"], Differs,
            then!(|world| shown(fs::read_dir(world.path("ws/sub/deep/secret"))));
        reads_no_denied_file: secrets, ["EACCES"], Differs,
            then!(|world| attempts::read(world.path("ws/sub/token.txt")));
        reads_nothing_denied_by_another_spelling: secrets, ["EACCES"], Differs,
            then!(|_| attempts::read("sub/../sub/./deep//secret/key.txt"));
        reads_nothing_denied_by_a_link: secrets, ["EACCES"], Differs,
            then!(|world| attempts::read(world.path("ws/to-secret/key.txt")));
        reads_nothing_denied_by_way_of_proc: secrets, ["EACCES"], Differs,
            then!(|world| attempts::read(format!("/proc/self/root{}", world.text("ws/sub/token.txt"))));
        renames_nothing_above_denied: secrets, ["EBUSY EACCES"], Differs, then!(|world| {
            let renamed = shown(fs::rename(world.path("ws/sub"), world.path("ws/moved")));
            let folder = if renamed == "ok" { "ws/moved" } else { "ws/sub" };
            let read = attempts::read(world.path(folder).join("deep/secret/key.txt"));
            format!("{renamed} {read}")
        });
        removes_no_link_to_what_is_denied: secrets, ["EBUSY"], Differs,
            then!(|world| shown(fs::remove_file(world.path("ws/to-secret"))));
        links_no_denied_file_to_read_it: secrets, ["EXDEV"], Differs, then!(|world| {
            shown(fs::hard_link(world.path("ws/sub/token.txt"), world.path("ws/mine")))
        });
        writes_nothing_denied: |world| with(plain(world), |grant| {
            grant.write.deny.push(world.text("ws/sub/deep"));
        }), ["EROFS"], Differs, then!(|world| attempts::create(world.path("ws/sub/deep/secret/new")));
        reads_all_else: secrets, ["ok"], Same,
            then!(|world| attempts::read(world.path("outside/secret.txt")));
        hides_a_folder_around_its_own: hidden_home, ["ok EACCES ENOENT EACCES"], Differs, then!(|world| {
            let own = attempts::read(world.path("ext/main.js"));
            let list = shown(fs::read_dir(world.base()));
            let other = attempts::read(world.path("outside/secret.txt"));
            let write = attempts::append(world.path("ext/main.js"));
            let write = if write == "EROFS" { "EACCES".to_owned() } else { write };
            format!("{own} {list} {other} {write}")
        });
    }
}

fn places_of_ours() -> Vec<Case> {
    cases! {
        writes_nothing_in_our_home: home, ["EROFS EROFS EBUSY"], Differs, then!(in_home);
        writes_nothing_in_our_home_in_the_workspace: home_in_the_workspace, ["EROFS EROFS EBUSY"], Differs,
            then!(in_home);
        writes_its_own_part_of_our_home: home, ["ok ok"], Same, then!(in_own_part);
        writes_its_own_part_of_our_home_in_the_workspace: home_in_the_workspace, ["ok ok"], Same,
            then!(in_own_part);
        replaces_no_link_to_our_home: home_by_a_link, ["EBUSY EROFS"], Differs, then!(|world| {
            let removed = shown(fs::remove_file(world.path("ws/to-home")));
            format!("{removed} {}", attempts::append(world.path("outside/home/config.toml")))
        });
        writes_its_own_part_of_our_home_by_a_link: home_by_a_link, ["ok"], Same,
            then!(|world| attempts::work_in(&world.path("ws/to-home/data")));
        writes_no_setting_of_ours_that_is_elsewhere: |world| with(home_by_a_link(world), |grant| {
            grant.guarded.frozen.push(world.text("ws/to-home/trust.json"));
        }), ["EROFS"], Differs, then!(|world| attempts::append(world.path("ws/sub/trust.json")));
        reads_our_home: home, ["ok"], Same, then!(|world| attempts::read(world.path("ws/home/config.toml")));
        makes_nothing_in_a_repository_that_git_runs: repository, ["EROFS EROFS EROFS"], Differs, then!(|world| {
            let made = ["commondir", "config.worktree", "hooks/post-commit"];
            made.map(|name| attempts::create(world.path("ws/.git").join(name))).join(" ")
        });
        writes_what_runs_nothing_in_a_repository: repository, ["ok ok"], Same, then!(|world| {
            let refs = world.path("ws/.git/refs");
            format!("{} {}", attempts::append(refs.join("heads/main")), attempts::work_in(&refs))
        });
        connects_to_no_socket_of_ours: home, ["EACCES"], Differs, |world| {
            let path = world.path("ws/home/run/session.sock");
            let listener = UnixListener::bind(&path).unwrap();
            Box::new(move |_, _| {
                let result = shown(UnixStream::connect(path));
                assert!(listener.as_raw_fd() >= 0);
                result
            })
        };
        is_served_by_nobody_who_is_not_confined: all_hosts, ["refused"], Differs, |world| {
            let path = world.path("outside/zygote.sock");
            let listener = UnixListener::bind(&path).unwrap();
            let server = attempts::forked(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let answer: &[u8] = match tenon_protocol::peer::check(&stream) {
                    Ok(()) => b"served",
                    Err(tenon_protocol::peer::Refused::Confined) => b"refused",
                    Err(_) => b"in doubt",
                };
                stream.write_all(answer).map_or(1, |()| 0)
            });
            Box::new(move |_, _| {
                let mut answer = String::new();
                let read = UnixStream::connect(path).and_then(|mut it| it.read_to_string(&mut answer));
                attempts::wait(server);
                read.map_or_else(|error| error.to_string(), |_| answer)
            })
        };
    }
}

/// A setting of ours is changed, a new file is made, and the folder is renamed.
fn in_home(world: &World) -> String {
    let changed = attempts::append(world.path("ws/home/config.toml"));
    let made = attempts::create(world.path("ws/home/trust.json"));
    format!("{changed} {made} {}", shown(fs::rename(world.path("ws/home"), world.path("ws/home2"))))
}

fn in_own_part(world: &World) -> String {
    let data = world.path("ws/home/data");
    format!("{} {}", attempts::append(data.join("kept.txt")), attempts::work_in(&data))
}

/// Limits, urgency, processors: of another process, and of its own.
fn what_belongs_to_other_processes() -> Vec<Case> {
    cases! {
        limits_no_parent: plain, ["EPERM"], Differs, then!(|_| attempts::limit(parent_number()));
        limits_itself: plain, ["ok"], Same, then!(|_| attempts::limit(0));
        slows_no_parent: plain, ["EPERM EPERM EPERM EPERM"], Differs,
            then!(|_| attempts::slow(parent_number()));
        slows_itself: plain, ["ok ok ok ok"], Same, then!(|_| attempts::slow(0));
        slows_no_group: plain, ["EPERM EPERM"], DiffersForRoot, then!(|_| {
            // SAFETY: numbers only. Its group is this test's.
            let group = called(unsafe { libc::setpriority(libc::PRIO_PGRP, 0, attempts::nice()) }.into());
            // SAFETY: as above. The second kind of owner is a group.
            format!("{group} {}", called(unsafe { libc::syscall(libc::SYS_ioprio_set, 2, 0, 4 | 2 << 13) }))
        });
        a_program_lowers_its_urgency: programs, ["ok"], Same,
            then!(|_| attempts::run("/usr/bin/nice", &["/bin/true"]));
        signals_no_parent_by_descriptor: plain, ["EPERM"], Differs, then!(|_| {
            // SAFETY: numbers and no pointer; signal 0 only asks.
            unsafe {
                let process = libc::syscall(libc::SYS_pidfd_open, parent_number(), 0);
                called(libc::syscall(libc::SYS_pidfd_send_signal, process, 0, 0, 0))
            }
        });
        changes_nothing_of_its_parent_with_all_files: files, ["EACCES"], Differs,
            then!(|_| shown(fs::File::options().write(true).open(parent("oom_score_adj"))));
        changes_nothing_in_its_own_folder_either: files, ["EACCES"], Differs,
            then!(|_| shown(fs::File::options().write(true).open("/proc/self/oom_score_adj")));
        a_program_writes_nothing_into_the_memory_of_its_extension: files, ["EACCES"], Differs, then!(|_| {
            attempts::status_of(attempts::in_child(|| {
                attempts::number(fs::File::options().write(true).open(parent("mem")))
            }))
        });
        changes_no_setting_of_the_kernel: files, ["EACCES", "EROFS"], Unknown,
            then!(|_| shown(fs::File::options().write(true).open("/proc/sys/kernel/core_pattern")));
        changes_no_setting_of_the_machine: files, ["EACCES", "EROFS", "ENOENT"], Unknown,
            then!(|_| shown(fs::File::options().write(true).open("/sys/kernel/mm/transparent_hugepage/enabled")));
    }
}

fn parent_number() -> libc::pid_t {
    // SAFETY: cannot fail.
    unsafe { libc::getppid() }
}

/// Memory and messages that processes find by a number, or in a file system of their own.
fn shared_by_number() -> Vec<Case> {
    cases! {
        shares_no_memory_by_number: plain, ["EPERM EPERM EPERM"], Differs, then!(attempts::shared);
        a_mount_namespace_has_its_own_shared_memory: protected, ["another"], Differs, |_| {
            let space = || fs::read_link("/proc/self/ns/ipc").unwrap();
            let before = space();
            Box::new(move |_, _| if space() == before { "the same" } else { "another" }.to_owned())
        };
        opens_no_message_queue: plain, ["EPERM"], Differs, then!(|_| {
            let name = format!("/tenon-sandbox-{}\0", std::process::id());
            let flags = libc::O_CREAT | libc::O_RDWR;
            // SAFETY: the name ends with a null byte.
            unsafe {
                let none = std::ptr::null::<u8>();
                let opened = called(libc::mq_open(name.as_ptr().cast(), flags, 0o600, none).into());
                libc::mq_unlink(name.as_ptr().cast());
                opened
            }
        });
        makes_no_shared_file: plain, ["EACCES"], Differs, then!(shared_file);
        makes_shared_files_where_they_are_granted: |world| with(plain(world), |grant| {
            grant.write.allow.iter_mut().for_each(|paths| paths.push("/dev/shm".to_owned()));
        }), ["ok"], Same, then!(shared_file);
    }
}

fn shared_file(_: &World) -> String {
    let file = format!("/dev/shm/tenon-sandbox-{}", std::process::id());
    let made = attempts::create(&file);
    let _ = fs::remove_file(file);
    made
}

fn other_processes() -> Vec<Case> {
    cases! {
        reads_about_itself: plain, ["ok"], Same, then!(|_| attempts::read("/proc/self/maps"));
        reads_about_the_machine: plain, ["ok ok"], Same, then!(|_| {
            format!("{} {}", attempts::read("/proc/meminfo"), attempts::read("/proc/cpuinfo"))
        });
        reads_nothing_of_its_parent: plain, ["EACCES EACCES EACCES EACCES"], Differs, then!(of_parent);
        reads_no_secret_of_its_parent_with_programs: programs, ["EACCES EACCES EACCES ok"], Differs,
            then!(of_parent);
        reads_nothing_of_its_parent_with_all_files: files, ["EACCES EACCES EACCES EACCES"], Differs,
            then!(of_parent);
        reads_about_itself_with_all_files: files, ["ok ok ok"], Same, then!(|_| {
            let files = ["/proc/self/maps", "/proc/meminfo", "/etc/passwd"];
            files.map(attempts::read).join(" ")
        });
        reads_no_secret_of_its_parent_with_mounts: programs_and_protected,
            ["EACCES EACCES EACCES ok"], Differs, then!(of_parent);
        a_program_reads_no_secret_of_others: programs, ["Permission denied"], Differs,
            then!(|_| attempts::run("/bin/cat", &[&parent("environ")]));
        signals_no_parent: plain, ["EPERM"], Differs, then!(|_| {
            // SAFETY: numbers only; signal 0 only asks.
            called(unsafe { libc::kill(libc::getppid(), 0) }.into())
        });
        signals_its_children: plain, ["ok"], Same, then!(|_| {
            // SAFETY: this process has one thread; the child waits to be ended.
            unsafe {
                let child = libc::fork();
                if child == 0 {
                    libc::pause();
                }
                let result = called(libc::kill(child, libc::SIGKILL).into());
                attempts::wait(child);
                result
            }
        });
        a_child_is_confined_too: plain, ["13"], Differs, |_| Box::new(|world, _| {
            let path = world.path("outside/secret.txt");
            let status = attempts::in_child(|| {
                fs::read(path).err().and_then(|error| error.raw_os_error()).unwrap_or(0)
            });
            libc::WEXITSTATUS(status).to_string()
        });
    }
}

/// Its environment, its files by way of its root, its open files, its arguments.
fn of_parent(_: &World) -> String {
    let arguments = attempts::read(parent("cmdline"));
    let secrets = ["environ", "root/etc/passwd", "fd/0"].map(|file| attempts::read(parent(file)));
    format!("{} {arguments}", secrets.join(" "))
}

fn network() -> Vec<Case> {
    cases! {
        makes_no_socket: plain, ["EACCES EACCES EACCES"], Differs, then!(|_| {
            let families = [libc::AF_INET, libc::AF_INET6, libc::AF_UNIX];
            families.map(|family| attempts::socket(family, libc::SOCK_STREAM, 0)).join(" ")
        });
        listens_without_binding_never: plain, ["EACCES"], Differs, |_| {
            // SAFETY: numbers only.
            let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) };
            // SAFETY: as above.
            Box::new(move |_, _| called(unsafe { libc::listen(socket, 1) }.into()))
        };
        connects_nowhere: plain, ["EACCES"], Differs, |_| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            Box::new(move |_, _| shown(std::net::TcpStream::connect(address)))
        };
        connects_nowhere_without_seccomp: |world| Asked {
            mode: Mode::BestEffort, ..without(plain(world), |layers| layers.seccomp = false)
        }, ["EACCES"], Differs, |_| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            Box::new(move |_, _| shown(std::net::TcpStream::connect(address)))
        };
        accepts_nobody: plain, ["EACCES"], Differs, |_| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            Box::new(move |_, _| {
                let result = shown(listener.accept());
                drop(client);
                result
            })
        };
        sends_to_nobody_by_name: plain, ["EACCES"], Differs, |_| {
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let address = socket.local_addr().unwrap();
            Box::new(move |_, _| shown(socket.send_to(b"x", address)))
        };
        sends_no_message_by_name: plain, ["EACCES EACCES"], Differs, |_| {
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            Box::new(move |_, _| attempts::send_messages(&socket))
        };
        programs_send_nothing_over_a_socket_that_they_were_given: some_hosts_and_programs, ["EACCES"], Differs, |_| {
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            Box::new(move |_, _| {
                attempts::status_of(attempts::in_child(|| match attempts::send_messages(&socket).as_str() {
                    "EACCES EACCES" => libc::EACCES,
                    "ok ok" => 0,
                    _ => libc::EINVAL,
                }))
            })
        };
        connects_to_no_path: plain, ["EACCES"], Differs, to_path_socket;
        connects_to_no_path_with_some_hosts: some_hosts, ["EACCES"], Differs, to_path_socket;
        connects_to_paths_with_the_whole_network: all_hosts, ["ok"], Same, to_path_socket;
        connects_to_no_abstract_socket: all_hosts, ["EPERM"], Differs, |_| {
            let connect = attempts::abstract_listener();
            Box::new(move |_, _| connect())
        };
        makes_pairs_of_streams: plain, ["ok ok"], Same, then!(|_| {
            let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
            [libc::SOCK_STREAM, libc::SOCK_SEQPACKET | flags].map(attempts::pair).join(" ")
        });
        makes_no_pair_that_sends_to_others: some_hosts, ["EACCES EACCES"], Differs, then!(|_| {
            [libc::SOCK_DGRAM, libc::SOCK_RAW | libc::SOCK_CLOEXEC].map(attempts::pair).join(" ")
        });
        talks_over_an_open_socket: plain, ["ok"], Same, |_| {
            let (one, other) = UnixStream::pair().unwrap();
            Box::new(move |_, _| attempts::talk(&one, &other))
        };
        makes_sockets_with_some_hosts: some_hosts, ["ok ok ok"], Same, then!(|_| {
            let netlink = attempts::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE);
            let inet = [libc::AF_INET, libc::AF_INET6];
            format!("{} {netlink}", inet.map(|family| attempts::socket(family, libc::SOCK_STREAM, 0)).join(" "))
        });
        resolves_names_with_some_hosts: some_hosts, ["ok"], Same,
            then!(|_| shown(("localhost", 80).to_socket_addrs()));
        programs_have_no_sockets_with_some_hosts: some_hosts_and_programs,
            ["EACCES EACCES EACCES EACCES talks"], Differs, then!(|_| attempts::sockets_in_a_copy());
        programs_have_no_sockets_with_all_hosts_but_one: all_hosts_but_one_and_programs,
            ["EACCES EACCES EACCES EACCES talks"], Differs, then!(|_| attempts::sockets_in_a_copy());
        programs_connect_nowhere_with_some_hosts: some_hosts_and_programs, ["Permission denied"], Differs, program_that_connects;
        programs_connect_nowhere_without_a_network: programs, ["Permission denied"], Differs, program_that_connects;
        programs_connect_with_all_hosts: all_hosts_and_programs, ["ok"], Same, program_that_connects;
        connects_itself_after_a_program_could_not: some_hosts_and_programs, ["ok"], Same, |_| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            Box::new(move |_, _| {
                attempts::sockets_in_a_copy();
                shown(std::net::TcpStream::connect(listener.local_addr().unwrap()))
            })
        };
        makes_no_unusual_socket: all_hosts, ["EACCES EACCES"], Differs, then!(|_| {
            let uevent = attempts::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_KOBJECT_UEVENT);
            format!("{} {uevent}", attempts::socket(libc::AF_PACKET, libc::SOCK_RAW, 0))
        });
    }
}

fn program_that_connects(_: &World) -> Attempt {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    Box::new(move |_, _| attempts::connect_by_program(listener.local_addr().unwrap().port()))
}

fn to_path_socket(world: &World) -> Attempt {
    let path = world.path("outside/agent.sock");
    let listener = UnixListener::bind(&path).unwrap();
    Box::new(move |_, _| {
        let result = shown(UnixStream::connect(path));
        assert!(listener.as_raw_fd() >= 0);
        result
    })
}

fn starting_programs() -> Vec<Case> {
    cases! {
        starts_no_program: plain, ["EACCES"], Differs, then!(|_| attempts::run("/bin/true", &[]));
        starts_no_program_where_all_is_readable: files, ["EACCES"], Differs,
            then!(|_| attempts::run("/bin/true", &[]));
        starts_programs: programs, ["ok"], Same, then!(|world| attempts::run("/bin/ls", &[&world.text("ws")]));
        starts_programs_with_mounts: programs_and_protected, ["ok"], Same,
            then!(|world| attempts::run("/bin/ls", &[&world.text("ws")]));
        git_commits: programs_and_protected, ["ok", "not found"], Same, then!(|_| {
            // A global configuration that exists but cannot be read would end git.
            let command = "export GIT_CONFIG_GLOBAL=/dev/null; git init -q fresh && cd fresh \
                && echo x > x && git add x \
                && git -c user.name=x -c user.email=x@x commit -qm x && git status";
            attempts::run("/bin/sh", &["-c", command])
        });
        a_program_reads_nothing_outside: programs, ["Permission denied"], Differs,
            then!(|world| attempts::run("/bin/cat", &[&world.text("outside/secret.txt")]));
        a_program_of_a_program_reads_nothing_outside: programs, ["Permission denied"], Differs, then!(|world| {
            let command = format!("sh -c 'cat {}'; exit $?", world.text("outside/secret.txt"));
            attempts::run("/bin/sh", &["-c", &command])
        });
        a_program_writes_nothing_in_protected: programs_and_protected, ["Read-only file system"], Differs,
            then!(|_| attempts::run("/usr/bin/touch", &[".git/hooks/post-commit"]));
        a_program_gains_no_power: programs_and_protected, ["ok"], Differs, then!(|_| {
            attempts::run("/bin/grep", &["-q", "CapEff:.0000000000000000$", "/proc/self/status"])
                + if attempts::status(&["NoNewPrivs"]) == "NoNewPrivs: 1" { "" } else { " but may" }
        });
    }
}

/// Starts a process with a flag.
fn clone_with(flag: libc::c_int) -> String {
    // SAFETY: as a fork, in a process with one thread; the child ends at once.
    unsafe {
        let child = libc::syscall(libc::SYS_clone, flag | libc::SIGCHLD, 0, 0, 0, 0);
        if child == 0 {
            libc::_exit(0);
        }
        called(child)
    }
}

fn system_calls() -> Vec<Case> {
    let mut all = cases! {
        traces_nothing: plain, ["EPERM"], Differs, then!(|_| {
            // SAFETY: numbers only.
            called(unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) })
        });
        makes_no_namespace: plain, ["EPERM"], Differs, then!(|_| {
            // SAFETY: numbers only.
            called(unsafe { libc::unshare(libc::CLONE_NEWUSER) }.into())
        });
        clones_into_no_namespace: plain, ["EPERM"], Differs, then!(|_| clone_with(libc::CLONE_NEWUSER));
        starts_no_child_of_its_parent: plain, ["EPERM"], Differs, then!(|_| clone_with(libc::CLONE_PARENT));
        mounts_nothing: plain, ["EPERM"], DiffersForRoot, then!(mount);
        mounts_nothing_in_its_namespace: protected, ["EPERM"], DiffersForRoot, then!(mount);
        unmounts_nothing_in_its_namespace: protected, ["EPERM"], DiffersForRoot, then!(|world| {
            let path = world.text("ws/.git/config") + "\0";
            // SAFETY: the path ends with a null byte.
            called(unsafe { libc::umount2(path.as_ptr().cast(), libc::MNT_DETACH) }.into())
        });
        makes_no_call_that_attacks_use: plain, ["EPERM"], Differs, then!(|_| {
            let calls = [
                libc::SYS_bpf,
                libc::SYS_perf_event_open,
                libc::SYS_userfaultfd,
                libc::SYS_keyctl,
                libc::SYS_add_key,
                libc::SYS_request_key,
                libc::SYS_kexec_load,
                libc::SYS_kexec_file_load,
                libc::SYS_process_vm_readv,
                libc::SYS_process_vm_writev,
                libc::SYS_process_madvise,
                libc::SYS_pidfd_getfd,
                libc::SYS_kcmp,
                libc::SYS_open_by_handle_at,
                libc::SYS_init_module,
                libc::SYS_finit_module,
                libc::SYS_delete_module,
                libc::SYS_swapon,
                libc::SYS_acct,
                libc::SYS_setns,
            ];
            // SAFETY: no argument is valid, so each fails in any case.
            let call = |number| unsafe { libc::syscall(number, -1, -1, -1, -1, -1, -1) };
            let answers: std::collections::BTreeSet<_> = calls.map(|it| called(call(it))).into();
            answers.into_iter().collect::<Vec<_>>().join(" ")
        });
        makes_no_ring: plain, ["EPERM"], Differs, then!(|_| {
            // SAFETY: no address is valid, so the call fails in any case.
            called(unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, 0) })
        });
        types_nothing_into_a_terminal: plain, ["EPERM"], Differs, then!(|_| {
            // SAFETY: the descriptor is not valid, so the call fails in any case. The upper half of the
            // command does not count.
            called(unsafe { libc::syscall(libc::SYS_ioctl, -1, libc::TIOCSTI | (1 << 32), c"x".as_ptr()) })
        });
        knows_no_clone3: plain, ["ENOSYS"], Differs, then!(|_| {
            // SAFETY: no address is valid, so the call fails in any case.
            called(unsafe { libc::syscall(libc::SYS_clone3, 0, 0) })
        });
        starts_threads: plain, ["ok"], Same, then!(|_| {
            let thread = std::thread::Builder::new().spawn(|| attempts::read("/proc/thread-self/stat"));
            thread.map_or_else(|error| error.to_string(), |thread| thread.join().unwrap())
        });
    };
    #[cfg(target_arch = "x86_64")]
    all.extend(cases! {
        makes_no_call_of_x32: plain, ["EPERM"], Differs, then!(|_| {
            // SAFETY: asks for the process's number.
            called(unsafe { libc::syscall(libc::SYS_getpid | 0x4000_0000) })
        });
        makes_no_call_of_32_bits: plain, ["signal 31"], Differs, then!(|_| {
            let status = attempts::in_child(|| {
                let answer: i64;
                // SAFETY: getpid of the 32-bit interface, which changes one register.
                unsafe { std::arch::asm!("int 0x80", inlateout("rax") 20_i64 => answer) };
                i32::from(answer < 0)
            });
            format!("signal {}", libc::WTERMSIG(status))
        });
    });
    all
}

fn mount(world: &World) -> String {
    let path = world.text("ws/sub") + "\0";
    let kind = c"tmpfs".as_ptr();
    // In a namespace of its own, so as to leave nothing behind without confinement.
    // SAFETY: all texts end with a null byte.
    unsafe {
        libc::unshare(libc::CLONE_NEWNS);
        let flags = libc::MS_REC | libc::MS_PRIVATE;
        libc::mount(kind, c"/".as_ptr(), std::ptr::null(), flags, std::ptr::null());
        called(libc::mount(kind, path.as_ptr().cast(), kind, 0, std::ptr::null()).into())
    }
}

fn the_sandbox_itself() -> Vec<Case> {
    cases! {
        changes_nothing_for_an_unrestricted_grant: unrestricted, ["NoNewPrivs: 0, Seccomp: 0 true"], Same,
            |_| Box::new(|_, layers| {
                let unrestricted = layers.is_none_or(|layers| layers.unrestricted);
                format!("{} {unrestricted}", attempts::status(&["NoNewPrivs", "Seccomp:"]))
            });
        says_what_is_in_force: protected, ["Some(true) true true true false 0"], Differs, |_| Box::new(said);
        uses_no_namespace_if_nothing_needs_it: plain, ["Some(true) false true true false 0"], Differs,
            |_| Box::new(said);
        keeps_no_power_of_its_namespace: protected, ["CapPrm: 0000000000000000, CapEff: 0000000000000000"],
            DiffersForRoot, then!(|_| attempts::status(&["CapPrm", "CapEff"]));
        keeps_no_power_without_a_namespace: plain, ["CapPrm: 0000000000000000, CapEff: 0000000000000000"],
            DiffersForRoot, then!(|_| attempts::status(&["CapPrm", "CapEff"]));
        stays_the_same_user: protected, ["true"], Same, then!(|world| {
            use std::os::unix::fs::MetadataExt;
            // SAFETY: cannot fail.
            let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
            let owner = fs::metadata(world.workspace()).unwrap();
            ((user, group) == (owner.uid(), owner.gid())).to_string()
        });
        leaves_no_core_dump: plain, ["0"], Unknown, then!(|_| {
            let mut limit = libc::rlimit { rlim_cur: 1, rlim_max: 1 };
            // SAFETY: the kernel fills one pair of numbers.
            unsafe { libc::getrlimit(libc::RLIMIT_CORE, &raw mut limit) };
            limit.rlim_max.to_string()
        });
        requires_landlock: |world| without(plain(world), |layers| layers.landlock_abi = None),
            ["not confined: Landlock is not available: this system has none"], Differs,
            then!(|_| String::new());
        requires_all_of_landlock: |world| without(plain(world), |layers| layers.landlock_abi = Some(5)),
            ["not confined: Landlock is not available: version 5 of it is here, version 6 is needed"], Differs,
            then!(|_| String::new());
        requires_seccomp: |world| without(plain(world), |layers| layers.seccomp = false),
            ["not confined: seccomp is not available: this system has none"], Differs, then!(|_| String::new());
        requires_a_namespace_for_what_is_protected:
            |world| without(protected(world), |layers| layers.mount_namespace = false),
            ["not confined: mount namespace is not available: this system has none"], Differs,
            then!(|_| String::new());
        does_what_it_can: |world| Asked { mode: Mode::BestEffort, ..without(protected(world), |layers| {
            (layers.landlock_abi, layers.mount_namespace) = (Some(1), false);
        }) }, ["Some(false) false true true false 1"], Differs, |_| Box::new(said);
        does_what_it_can_without_landlock: |world| Asked {
            mode: Mode::BestEffort, ..without(plain(world), |layers| layers.landlock_abi = None)
        }, ["ok EACCES"], Differs, then!(|world| {
            let socket = attempts::socket(libc::AF_INET, libc::SOCK_STREAM, 0);
            format!("{} {socket}", attempts::read(world.path("outside/secret.txt")))
        });
        confines_no_process_with_threads: plain,
            ["not confined: 2 threads run in this process, but only one can be confined"], Differs, |_| {
                std::thread::spawn(std::thread::park);
                Box::new(|_, _| String::new())
            };
        needs_open_folders_to_be_closed: protected,
            ["not confined: mount namespace is not available: a folder"], Differs, |world| {
            let folder = fs::File::open(world.workspace()).unwrap();
            std::mem::forget(folder);
            Box::new(|_, _| String::new())
        };
        notes_what_is_protected_and_absent: |world| Asked {
            protected: vec![world.path("ws/absent")], ..plain(world)
        }, ["Some(true) false true true false 1"], Differs, |_| Box::new(said);
        notes_no_link_that_is_held: protected_by_links, ["Some(true) true true true false 0"], Differs,
            |_| Box::new(said);
    }
}

/// The layers in short: whether Landlock is complete, and so on, and how many notes there are.
fn said(_: &World, layers: Option<Layers>) -> String {
    let Some(layers) = layers else { return "nothing".to_owned() };
    let Layers {
        landlock_abi, mount_namespace, seccomp, no_new_privs, unrestricted, notes, ..
    } = layers;
    let complete = landlock_abi.map(|version| version >= 6);
    format!(
        "{complete:?} {mount_namespace} {seccomp} {no_new_privs} {unrestricted} {}",
        notes.len()
    )
}
