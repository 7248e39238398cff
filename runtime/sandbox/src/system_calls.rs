//! seccomp: a filter on system calls, for this process and all it starts.
//!
//! It names what is refused. To name what is allowed would break programs that nobody here knows, and
//! the other layers limit what the rest can reach.

use std::collections::BTreeMap;

use seccompiler::BackendError;
use seccompiler::BpfProgram;
use seccompiler::SeccompAction;
use seccompiler::SeccompCmpArgLen;
use seccompiler::SeccompCmpOp;
use seccompiler::SeccompCondition;
use seccompiler::SeccompFilter;
use seccompiler::SeccompRule;
use seccompiler::TargetArch;
use seccompiler::sock_filter;

use crate::error::SandboxError;
use crate::layers::Layer;
use crate::plan::Network;

/// What the filter depends on.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// Programs may be started.
    pub run: bool,
    /// Something may be written.
    pub write: bool,
    /// The network.
    pub network: Network,
}

/// Refused always.
const DANGEROUS: &[libc::c_long] = &[
    // Into other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // Memory and messages shared by a number, which is no file: no rule on files is about them.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_mq_timedsend,
    libc::SYS_mq_timedreceive,
    libc::SYS_mq_notify,
    libc::SYS_mq_getsetattr,
    // Large parts of the kernel that programs seldom need and attacks often use.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // It does what other calls do, past this filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Mounts and namespaces: with one of its own a process has powers in it.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_fsconfig,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    // A file by its number, whatever is above it.
    libc::SYS_open_by_handle_at,
    // The machine as a whole.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    QUOTACTL_FD,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    libc::SYS_lookup_dcookie,
    // The machine's ports.
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// Their first argument is a process or thread, with zero for the caller. What they change belongs to it: limits, processors,
/// urgency, the place of its memory. Programs do this to themselves, or not at all; to ask stays allowed.
const OF_A_PROCESS: &[libc::c_long] = &[
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_get_robust_list,
];

/// `PR_SCHED_CORE`: which processes may run beside which others, by number.
const PR_SCHED_CORE: u64 = 62;

/// `IOPRIO_WHO_PROCESS`, from `<linux/ioprio.h>`.
const IOPRIO_WHO_PROCESS: u64 = 1;

// Newer than the C library's crate; the same number on every machine.
const QUOTACTL_FD: libc::c_long = 443;
const FCHMODAT2: libc::c_long = 452;
const SETXATTRAT: libc::c_long = 463;
const REMOVEXATTRAT: libc::c_long = 466;
const OPEN_TREE_ATTR: libc::c_long = 467;
const FILE_SETATTR: libc::c_long = 469;

/// Changes to what a file has beside its content, for which Landlock has no rule. Refused if nothing may
/// be written; the mounts refuse it outside the writable folders.
const FILE_ATTRIBUTES: &[libc::c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];

/// Refused where no program may be started.
const STARTING: &[libc::c_long] = &[libc::SYS_execve, libc::SYS_execveat];

/// Refused where there is no network. Reading and writing go on: the session's socket is open already.
const CONNECTING: &[libc::c_long] = &[
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
];

/// Flags of `clone` that are refused. Namespaces, but not time: its bit is part of the signal's number there. And to start a
/// process as a child of one's own parent, which is the zygote for an extension's process: it would not be found among the
/// extension's.
const CLONE_FLAGS: &[libc::c_int] = &[
    libc::CLONE_PARENT,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Commands by which a terminal takes text for typed: whoever shares it with a shell would type there.
const TYPING: &[u64] = &[libc::TIOCSTI, libc::TIOCLINUX];

/// The families of sockets where the whole network is allowed. Others are rarely used, seldom checked
/// parts of the kernel, or lead to the machine (packets, virtual machines, its crypto).
const FAMILIES: &[libc::c_int] = &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// The same, where some hosts are. Sockets with a path lead to agents and daemons that do as they are told.
const FAMILIES_TO_HOSTS: &[libc::c_int] = &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// The kinds of pairs that send nowhere but to each other: a datagram may name another recipient.
const CLOSED_PAIRS: &[libc::c_int] = &[libc::SOCK_STREAM, libc::SOCK_SEQPACKET];

/// The part of a socket's type that is not flags, `SOCK_TYPE_MASK`.
const KIND: u64 = 0xf;

/// Set in the numbers of the x32 interface, which reaches every call by another number.
#[cfg(target_arch = "x86_64")]
const X32_BIT: u32 = 0x4000_0000;

/// How many instructions of each program check the machine: load, compare, refuse.
const MACHINE_CHECK: usize = 3;

/// For each system call: refused always (no rules), or if one of the rules matches.
type Refused = BTreeMap<i64, Vec<SeccompRule>>;

/// Puts the filter in force.
pub fn apply(policy: &Policy) -> Result<(), SandboxError> {
    let failed = |action, error: String| {
        SandboxError::failed(Layer::SystemCalls, action, std::io::Error::other(error))
    };
    let program = program(policy).map_err(|error| failed("make the filter", error.to_string()))?;
    seccompiler::apply_filter(&program)
        .map_err(|error| failed("install the filter", error.to_string()))
}

/// What takes the network from a process that is confined already, and from all it starts.
pub fn without_network() -> Result<BpfProgram, SandboxError> {
    let filter = || {
        let machine: TargetArch = std::env::consts::ARCH.try_into()?;
        let answer = SeccompAction::Errno(libc::EACCES as u32);
        let filter =
            SeccompFilter::new(all_of_the_network()?, SeccompAction::Allow, answer, machine)?;
        BpfProgram::try_from(filter)
    };
    filter().map_err(|error: BackendError| {
        let error = std::io::Error::other(error.to_string());
        SandboxError::failed(Layer::SystemCalls, "make the filter for programs", error)
    })
}

/// One program of three filters, because each of them knows one answer. A program of its own for each
/// would run at every call that is not always allowed.
fn program(policy: &Policy) -> Result<BpfProgram, BackendError> {
    let machine: TargetArch = std::env::consts::ARCH.try_into()?;
    let answers = [
        (dangerous()?, libc::EPERM),
        (beyond_the_grant(policy)?, libc::EACCES),
        // Its flags are in memory, where the filter cannot look. The C library uses `clone` instead.
        (BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS),
    ];
    let mut program = BpfProgram::new();
    for (refused, answer) in answers {
        // A filter without rules is all default, and would end the program too early.
        if refused.is_empty() {
            continue;
        }
        let answer = SeccompAction::Errno(answer as u32);
        let filter = SeccompFilter::new(refused, SeccompAction::Allow, answer, machine)?;
        let part = BpfProgram::try_from(filter)?;
        if program.is_empty() {
            program.extend_from_slice(&part[..MACHINE_CHECK]);
            program.extend(x32_check());
        } else {
            // Allowed so far: what the part before does at its end. No two parts have a call in common.
            program.pop();
        }
        program.extend_from_slice(&part[MACHINE_CHECK..]);
    }
    Ok(program)
}

/// Refuses all calls of the x32 interface.
fn x32_check() -> Vec<sock_filter> {
    #[cfg(target_arch = "x86_64")]
    {
        let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
        let at_least = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
        let answer = (libc::BPF_RET | libc::BPF_K) as u16;
        let refuse = SeccompAction::Errno(libc::EPERM as u32).into();
        vec![
            // The call's number is the first field.
            sock_filter { code: load, jt: 0, jf: 0, k: 0 },
            sock_filter { code: at_least, jt: 0, jf: 1, k: X32_BIT },
            sock_filter { code: answer, jt: 0, jf: 0, k: refuse },
        ]
    }
    #[cfg(not(target_arch = "x86_64"))]
    Vec::new()
}

fn dangerous() -> Result<Refused, BackendError> {
    let mut refused = always(DANGEROUS);
    let with_any = |flag: &libc::c_int| {
        let flag = *flag as u32 as u64;
        rule([(0, SeccompCmpOp::MaskedEq(flag), flag)])
    };
    let flags = CLONE_FLAGS.iter().map(with_any).collect::<Result<_, _>>()?;
    refused.insert(libc::SYS_clone, flags);
    for call in OF_A_PROCESS {
        refused.insert(*call, vec![rule([(0, SeccompCmpOp::Ne, 0)])?]);
    }
    // Of a group of processes, of all of a user's, or of another one.
    let own = [
        (libc::SYS_setpriority, libc::PRIO_PROCESS as u64),
        (libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS),
    ];
    for (call, process) in own {
        let rules = [rule([(0, SeccompCmpOp::Ne, process)])?, rule([(1, SeccompCmpOp::Ne, 0)])?];
        refused.insert(call, rules.into());
    }
    refused.insert(libc::SYS_prctl, vec![rule([(0, SeccompCmpOp::Eq, PR_SCHED_CORE)])?]);
    let typing = TYPING.iter().map(|command| rule([(1, SeccompCmpOp::Eq, *command)]));
    refused.insert(libc::SYS_ioctl, typing.collect::<Result<_, _>>()?);
    Ok(refused)
}

fn beyond_the_grant(policy: &Policy) -> Result<Refused, BackendError> {
    let mut refused = Refused::new();
    if !policy.run {
        refused.extend(always(STARTING));
    }
    if !policy.write {
        refused.extend(always(FILE_ATTRIBUTES));
    }
    let families = match policy.network {
        Network::Nothing => {
            refused.extend(all_of_the_network()?);
            return Ok(refused);
        }
        Network::SomeHosts => {
            refused.insert(libc::SYS_socketpair, open_pairs()?);
            FAMILIES_TO_HOSTS
        }
        Network::Everything => FAMILIES,
    };
    refused.insert(
        libc::SYS_socket,
        vec![
            none_of(0, SeccompCmpOp::Ne, families)?,
            // The kernel's other services behind this family: audit, firewall, devices. Names and addresses
            // of interfaces, for the resolver, are its protocol 0.
            rule([
                (0, SeccompCmpOp::Eq, libc::AF_NETLINK as u64),
                (2, SeccompCmpOp::Ne, libc::NETLINK_ROUTE as u64),
            ])?,
        ],
    );
    Ok(refused)
}

fn all_of_the_network() -> Result<Refused, BackendError> {
    let mut refused = always(CONNECTING);
    // Whom they name is in memory, where no filter looks, and the socket may have been passed on by who has the network.
    refused.extend(always(&[libc::SYS_sendmsg, libc::SYS_sendmmsg]));
    refused.insert(libc::SYS_socketpair, open_pairs()?);
    // A recipient that is named, on a socket that is not connected.
    refused.insert(libc::SYS_sendto, vec![named_recipient()?]);
    Ok(refused)
}

/// Pairs of sockets that could send to others than each other.
fn open_pairs() -> Result<Vec<SeccompRule>, BackendError> {
    let other_family = rule([(0, SeccompCmpOp::Ne, libc::AF_UNIX as u64)])?;
    // All kinds there are room for, but those that are closed: masks compare for equality only.
    let open = (0..=KIND).filter(|kind| !CLOSED_PAIRS.contains(&(*kind as libc::c_int)));
    let open = open.map(|kind| rule([(1, SeccompCmpOp::MaskedEq(KIND), kind)]));
    std::iter::once(Ok(other_family)).chain(open).collect()
}

fn named_recipient() -> Result<SeccompRule, BackendError> {
    let named = SeccompCondition::new(4, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    SeccompRule::new(vec![named])
}

fn none_of(
    argument: u8,
    differs: SeccompCmpOp,
    values: &[libc::c_int],
) -> Result<SeccompRule, BackendError> {
    let condition = |value: &libc::c_int| {
        SeccompCondition::new(
            argument,
            SeccompCmpArgLen::Dword,
            differs.clone(),
            *value as u32 as u64,
        )
    };
    SeccompRule::new(values.iter().map(condition).collect::<Result<_, _>>()?)
}

/// Matches if all conditions do. The kernel takes these arguments as 32 bits, so the rest must not count.
fn rule<const N: usize>(
    conditions: [(u8, SeccompCmpOp, u64); N],
) -> Result<SeccompRule, BackendError> {
    let condition = |(argument, operator, value)| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
    };
    SeccompRule::new(conditions.into_iter().map(condition).collect::<Result<_, _>>()?)
}

fn always(calls: &[libc::c_long]) -> Refused {
    calls.iter().map(|call| (*call, Vec::new())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_has_two_answers() {
        for (run, write) in [(false, false), (true, true)] {
            for network in [Network::Nothing, Network::SomeHosts, Network::Everything] {
                let more = beyond_the_grant(&Policy { run, write, network }).unwrap();
                let dangerous = dangerous().unwrap();
                assert!(more.keys().all(|call| !dangerous.contains_key(call)));
                assert!(!more.contains_key(&libc::SYS_clone3));
            }
        }
    }

    #[test]
    fn the_program_is_one_that_ends_with_allow() {
        let policy = Policy { run: false, write: false, network: Network::Nothing };
        let program = program(&policy).unwrap();
        let last = program.last().unwrap();
        assert_eq!(last.k, libc::SECCOMP_RET_ALLOW);
        let kills = program.iter().filter(|step| step.k == libc::SECCOMP_RET_KILL_PROCESS).count();
        assert_eq!(kills, 1, "one check of the machine");
        assert!(program.len() < 1000, "{} instructions", program.len());
    }
}
