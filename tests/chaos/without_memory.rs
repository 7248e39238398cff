//! This test program as another one: it becomes `tenon` where the system has no memory for another process.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Error;
use std::os::unix::process::CommandExt;
use std::process::Command;

use seccompiler::BpfProgram;
use seccompiler::SeccompAction;
use seccompiler::SeccompCmpArgLen;
use seccompiler::SeccompCmpOp;
use seccompiler::SeccompCondition;
use seccompiler::SeccompFilter;
use seccompiler::SeccompRule;

/// Says that it is to do so, and where `tenon` is.
pub const VARIABLE: &str = "CHAOS_WITHOUT_MEMORY";

/// Becomes `tenon`. Threads can be started, processes cannot.
pub fn become_tenon(tenon: &OsStr) -> Error {
    if let Err(error) = refuse_processes() {
        return error;
    }
    Command::new(tenon).arg0("tenon").args(std::env::args_os().skip(1)).env_remove(VARIABLE).exec()
}

fn refuse_processes() -> Result<(), Error> {
    // A thread shares its memory with its program; a process does not.
    let shares = libc::CLONE_VM as u64;
    let operator = SeccompCmpOp::MaskedEq(shares);
    let is_process = SeccompCondition::new(0, SeccompCmpArgLen::Qword, operator, 0);
    let is_process = is_process.and_then(|condition| SeccompRule::new(vec![condition]));
    let is_process = is_process.map_err(Error::other)?;
    // A filter does not see what this call is asked for. The C library does without it.
    apply(libc::SYS_clone3, Vec::new(), libc::ENOSYS)?;
    apply(libc::SYS_clone, vec![is_process], libc::ENOMEM)
}

fn apply(call: libc::c_long, rules: Vec<SeccompRule>, error: i32) -> Result<(), Error> {
    let arch = std::env::consts::ARCH.try_into().map_err(Error::other)?;
    let denied = SeccompAction::Errno(error.cast_unsigned());
    let rules = BTreeMap::from([(call, rules)]);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, arch);
    let program: BpfProgram = filter.map_err(Error::other)?.try_into().map_err(Error::other)?;
    seccompiler::apply_filter(&program).map_err(Error::other)
}
