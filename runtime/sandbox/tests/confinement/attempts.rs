//! What is tried, each with a short text as its result: `ok`, or the name of the system's error.

use std::fs;
use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

/// The result of something that may fail.
pub fn shown<T>(result: io::Result<T>) -> String {
    match result {
        Ok(_) => "ok".to_owned(),
        Err(error) => error.raw_os_error().map_or_else(|| error.to_string(), name),
    }
}

/// The result of a system call.
pub fn called(result: libc::c_long) -> String {
    shown(if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) })
}

fn name(number: i32) -> String {
    let names = [
        (libc::EPERM, "EPERM"),
        (libc::ENOENT, "ENOENT"),
        (libc::EBADF, "EBADF"),
        (libc::EACCES, "EACCES"),
        (libc::EFAULT, "EFAULT"),
        (libc::EBUSY, "EBUSY"),
        (libc::EXDEV, "EXDEV"),
        (libc::EINVAL, "EINVAL"),
        (libc::EROFS, "EROFS"),
        (libc::ENOSYS, "ENOSYS"),
        (libc::ECONNREFUSED, "ECONNREFUSED"),
        (libc::ENOTTY, "ENOTTY"),
    ];
    let known = names.into_iter().find(|(known, _)| *known == number);
    known.map_or_else(|| format!("error {number}"), |(_, name)| name.to_owned())
}

pub fn read(path: impl AsRef<Path>) -> String {
    shown(fs::read(path))
}

pub fn append(path: impl AsRef<Path>) -> String {
    shown(File::options().append(true).open(path).and_then(|mut file| file.write_all(b"more")))
}

pub fn create(path: impl AsRef<Path>) -> String {
    shown(File::options().write(true).create_new(true).open(path))
}

/// The usual life of files and folders.
pub fn work_in(folder: &Path) -> String {
    shown((|| {
        let (one, two) = (folder.join("one"), folder.join("two"));
        fs::create_dir(&one)?;
        fs::create_dir(&two)?;
        fs::write(one.join("file"), "content")?;
        fs::rename(one.join("file"), two.join("file"))?;
        fs::hard_link(two.join("file"), one.join("again"))?;
        std::os::unix::fs::symlink("again", one.join("link"))?;
        fs::write(one.join("link"), "shorter")?;
        File::options().write(true).open(two.join("file"))?.set_len(1)?;
        let mut content = String::new();
        File::open(two.join("file"))?.read_to_string(&mut content)?;
        assert_eq!(content, "s");
        fs::remove_dir_all(one)?;
        fs::remove_dir_all(two)
    })())
}

pub fn socket(family: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> String {
    // SAFETY: numbers only.
    called(unsafe { libc::socket(family, kind, protocol) }.into())
}

pub fn pair(kind: libc::c_int) -> String {
    let mut pair = [0; 2];
    // SAFETY: the kernel fills two numbers.
    called(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) }.into())
}

/// Bytes both ways over a socket that was there before.
pub fn talk(mut one: &UnixStream, mut other: &UnixStream) -> String {
    shown((|| {
        one.write_all(b"question")?;
        // SAFETY: the text is as long as the call is told.
        let sent =
            unsafe { libc::send(one.as_raw_fd(), b"!".as_ptr().cast(), 1, libc::MSG_NOSIGNAL) };
        assert_eq!(sent, 1);
        let mut bytes = [0; 9];
        other.read_exact(&mut bytes)?;
        other.write_all(b"answer")?;
        one.read_exact(&mut bytes[..6])
    })())
}

/// Connects to a socket with an address that is not a path.
pub fn abstract_listener() -> impl Fn() -> String {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;
    let name = format!("tenon-sandbox-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(name).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    move || {
        let result = shown(UnixStream::connect_addr(&address));
        drop(listener.local_addr());
        result
    }
}

/// The exit code and the first words of what a program says.
pub fn run(program: &str, arguments: &[&str]) -> String {
    said(Command::new(program).args(arguments).output())
}

fn said(output: io::Result<std::process::Output>) -> String {
    match output {
        Ok(output) if output.status.success() => "ok".to_owned(),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            said.trim().rsplit(": ").next().unwrap_or_default().to_owned()
        }
        Err(error) => shown::<()>(Err(error)),
    }
}

/// The same of a program that is started by a fork.
pub fn run_forked(program: &str, arguments: &[&str]) -> String {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(program);
    // SAFETY: it does nothing; because of it the library forks.
    unsafe { command.pre_exec(|| Ok(())) };
    said(command.args(arguments).output())
}

/// A connection of a program to a port of this machine.
pub fn connect_by_program(port: u16) -> String {
    run_forked("/bin/bash", &["-c", &format!("exec 3<>/dev/tcp/127.0.0.1/{port}")])
}

/// What a copy of this process gets for sockets that reach a network, and for one that is connected already.
pub fn sockets_in_a_copy() -> String {
    let (one, other) = UnixStream::pair().unwrap();
    let families = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK, libc::AF_PACKET];
    let of = |family| {
        let status = in_child(|| {
            // SAFETY: numbers only.
            let socket = unsafe { libc::socket(family, libc::SOCK_RAW, 0) };
            if socket < 0 { io::Error::last_os_error().raw_os_error().unwrap() } else { 0 }
        });
        status_of(status)
    };
    let results = families.map(of).join(" ");
    format!(
        "{results} {}",
        if in_child(|| libc::c_int::from(talk(&one, &other) != "ok")) == 0 {
            "talks"
        } else {
            "is cut off"
        }
    )
}

/// Messages to an address that only the memory of this process names, by both of the calls for that.
pub fn send_messages(socket: &std::net::UdpSocket) -> String {
    let std::net::SocketAddr::V4(address) = socket.local_addr().unwrap() else { unreachable!() };
    let mut name = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
        sin_zero: [0; 8],
    };
    let mut part = libc::iovec { iov_base: (&raw mut name).cast(), iov_len: 1 };
    // SAFETY: all-zero is a valid message; its parts are ours and outlive the calls.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_name = (&raw mut name).cast();
        message.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        let one = called(libc::sendmsg(socket.as_raw_fd(), &raw const message, 0) as libc::c_long);
        let mut many = libc::mmsghdr { msg_hdr: message, msg_len: 0 };
        format!("{one} {}", called(libc::sendmmsg(socket.as_raw_fd(), &raw mut many, 1, 0).into()))
    }
}

/// The number of an error, or zero.
pub fn number<T>(result: io::Result<T>) -> libc::c_int {
    result.err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EINVAL))
}

/// The error whose number a child ended with.
pub fn status_of(status: libc::c_int) -> String {
    match libc::WEXITSTATUS(status) {
        0 => "ok".to_owned(),
        number => name(number),
    }
}

/// What a child that is not another program gets.
pub fn in_child(attempt: impl FnOnce() -> libc::c_int) -> libc::c_int {
    wait(forked(attempt))
}

/// A child that does this and ends.
pub fn forked(work: impl FnOnce() -> libc::c_int) -> libc::pid_t {
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let code = work();
        // SAFETY: ends the child.
        unsafe { libc::_exit(code) };
    }
    child
}

/// Asks for a limit of a process: the call that would also set it.
pub fn limit(process: libc::pid_t) -> String {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills one pair of numbers.
    let asked =
        unsafe { libc::prlimit(process, libc::RLIMIT_NOFILE, std::ptr::null(), &raw mut limit) };
    called(asked.into())
}

/// How urgent this process is.
pub fn nice() -> libc::c_int {
    // SAFETY: numbers only.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

/// Sets a process's urgency, on processors and disks, its processors and its way of being scheduled, to what they are.
pub fn slow(process: libc::pid_t) -> String {
    // SAFETY: numbers, and structures of ours that the kernel fills or reads; all-zero is valid for both.
    unsafe {
        let mut processors: libc::cpu_set_t = std::mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        assert_eq!(libc::sched_getaffinity(0, size, &raw mut processors), 0);
        let usual: libc::sched_param = std::mem::zeroed();
        let results = [
            libc::setpriority(libc::PRIO_PROCESS, process.cast_unsigned(), nice()).into(),
            libc::sched_setaffinity(process, size, &raw const processors).into(),
            libc::syscall(libc::SYS_ioprio_set, 1, process, 4 | 2 << 13),
            libc::sched_setscheduler(process, libc::SCHED_OTHER, &raw const usual).into(),
        ];
        // The last error is of the last call only, and all fail for the same reason if one does.
        results.map(called).join(" ")
    }
}

/// Memory, semaphores and messages, of nobody else's and removed at once.
pub fn shared(_: &crate::world::World) -> String {
    // SAFETY: numbers only, and no pointer.
    unsafe {
        let memory = libc::shmget(libc::IPC_PRIVATE, 4096, 0o600);
        let got = [called(memory.into())];
        libc::shmctl(memory, libc::IPC_RMID, std::ptr::null_mut());
        let semaphores = libc::semget(libc::IPC_PRIVATE, 1, 0o600);
        let got = [got.concat(), called(semaphores.into())];
        libc::semctl(semaphores, 0, libc::IPC_RMID);
        let messages = libc::msgget(libc::IPC_PRIVATE, 0o600);
        let got = [got.join(" "), called(messages.into())];
        libc::msgctl(messages, libc::IPC_RMID, std::ptr::null_mut());
        got.join(" ")
    }
}

pub fn wait(child: libc::pid_t) -> libc::c_int {
    let mut status = 0;
    // SAFETY: the kernel fills one number.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

/// Some lines of what the system says about this process.
pub fn status(names: &[&str]) -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let chosen = status.lines().filter(|line| names.iter().any(|name| line.starts_with(name)));
    chosen.map(|line| line.replace('\t', " ")).collect::<Vec<_>>().join(", ")
}
