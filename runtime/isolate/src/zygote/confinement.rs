//! Confines a new process before it runs any code of its extension: its environment, resource limits, and the sandbox.

use std::path::Path;
use std::path::PathBuf;

use tenon_protocol::layers::Layers;
use tenon_protocol::message::LoadSpec;
use tenon_sandbox::Mode;
use tenon_sandbox::Request;

use crate::limits::MAX_DESCRIPTORS;
use crate::limits::MEMORY_SLACK_BYTES;

/// Files that the C library and the platform read for every extension: time zones, name resolution, certificates.
const ALWAYS_READABLE: [&str; 8] = [
    "/etc/localtime",
    "/usr/share/zoneinfo",
    "/etc/hosts",
    "/etc/resolv.conf",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/ssl",
    "/usr/share/ca-certificates",
];

/// Confines the process irrevocably, or says why that is impossible. The process must have one thread.
pub fn confine(spec: &LoadSpec) -> Result<Layers, String> {
    take_name(&spec.id);
    take_environment(spec);
    limit_memory(spec.limits.memory_bytes);
    limit_descriptors()?;
    let folder = spec.entry.parent().unwrap_or(Path::new("/"));
    let readable = readable(&spec.entry);
    let mode = if spec.sandbox_required { Mode::Required } else { Mode::BestEffort };
    let request = Request { grant: &spec.grant, folder, readable: &readable, protected: &[], mode };
    tenon_sandbox::confine(&request)
        .map_err(|error| format!("the sandbox cannot be set up: {error}; {}", error.hint()))
}

/// Shows the extension's name where processes are listed; the system cuts it to 15 bytes.
fn take_name(id: &str) {
    let name = id.rsplit(':').next().unwrap_or(id);
    if let Ok(name) = std::ffi::CString::new(name) {
        // SAFETY: the string ends with a zero and outlives the call, which copies it.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    }
}

/// Makes the extension's environment the process's own. Some of the platform reads it there, such as proxies.
fn take_environment(spec: &LoadSpec) {
    let names: Vec<_> = std::env::vars_os().map(|(name, _)| name).collect();
    // SAFETY: the process has one thread, so no other thread reads the environment.
    unsafe {
        names.iter().for_each(|name| std::env::remove_var(name));
        for (name, value) in &spec.env {
            // The system cannot represent other names and values.
            if !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0') {
                std::env::set_var(name, value);
            }
        }
    }
}

/// Bounds all memory that the process can allocate. The watchdog ends an extension at its limit and says where it stood;
/// this is for one that allocates too fast for the watchdog. The system counts writable memory whether it was touched or
/// not, so this limit is larger.
fn limit_memory(bytes: usize) {
    let most = (bytes + MEMORY_SLACK_BYTES) as libc::rlim_t;
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: the structure is ours. If it fails, a lower limit holds already.
    unsafe { libc::setrlimit(libc::RLIMIT_DATA, &raw const limit) };
}

/// Bounds how much the process, and each that it starts, can have open. The zygote has taken all that the system gives, for
/// itself, and this process has inherited that.
fn limit_descriptors() -> Result<(), String> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is ours; the call writes to nothing else.
    let mut done = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    if done == 0 {
        let most = limit.rlim_max.min(MAX_DESCRIPTORS);
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: as above.
        done = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    }
    if done != 0 {
        let error = std::io::Error::last_os_error();
        return Err(format!("the process cannot limit how many files it opens: {error}"));
    }
    Ok(())
}

/// What is read to find the extension's packages: its own folder is not enough, because packages are looked for in the
/// folders above it, too.
fn readable(entry: &Path) -> Vec<PathBuf> {
    let above = entry.ancestors().skip(1);
    let packages =
        above.flat_map(|folder| ["node_modules", "package.json"].map(|name| folder.join(name)));
    ALWAYS_READABLE.iter().map(PathBuf::from).chain(packages).filter(|path| path.exists()).collect()
}
