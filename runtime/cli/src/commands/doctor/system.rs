//! What the system allows.

use std::path::Path;
use std::path::PathBuf;

use super::Check;

/// Open files that a program with many extensions needs: each has some, and so have its servers.
const ENOUGH_OPEN_FILES: u64 = 1024;

/// Folders that can be watched for changes; a repository with packages in its extensions has thousands.
const ENOUGH_WATCHES: u64 = 8192;

/// Watchers that all programs of a user may have together; editors have some of their own.
const ENOUGH_WATCHERS: u64 = 64;

/// Whether files can be made in a folder, or the folder itself where it is not there yet.
pub fn writable(name: &'static str, folder: &Path) -> Check {
    let there = folder.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(folder);
    // The file has no name and is gone at once.
    match tempfile::tempfile_in(there) {
        Ok(_) if there == folder => Check::ok(name, format!("{} is writable", folder.display())),
        Ok(_) => Check::ok(name, format!("{} will be made when needed", folder.display())),
        Err(error) => Check::fail(
            name,
            format!("{} cannot be written: {error}", there.display()),
            "give yourself the right to write there, or choose another folder with --home or \
             TENON_HOME",
        ),
    }
}

/// Whether a program is installed.
pub fn program(name: &'static str, hint: &str) -> Check {
    match locate(name) {
        Some(path) => Check::ok(name, path.display().to_string()),
        None => Check::warn(name, "is not in PATH", hint),
    }
}

fn locate(program: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::var_os("PATH")?;
    let is_program = |file: &PathBuf| {
        std::fs::metadata(file)
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(is_program)
}

/// How many files a process may have open.
pub fn open_files() -> Check {
    const NAME: &str = "open files";
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call fills in the structure it is given, and keeps nothing of it.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        let error = std::io::Error::last_os_error();
        return Check::warn(NAME, format!("the limit is not known: {error}"), "see ulimit -n");
    }
    let words = |number: libc::rlim_t| match number {
        libc::RLIM_INFINITY => "no limit".to_owned(),
        number => number.to_string(),
    };
    let text = format!("{} (at most {})", words(limit.rlim_cur), words(limit.rlim_max));
    if limit.rlim_cur < ENOUGH_OPEN_FILES {
        let hint = format!("ulimit -n {ENOUGH_OPEN_FILES} before tenon is started gives it more");
        return Check::warn(NAME, text, hint);
    }
    Check::ok(NAME, text)
}

/// How much can be watched for changes on disk.
pub fn inotify() -> Vec<Check> {
    let limits = [
        ("watches", "max_user_watches", ENOUGH_WATCHES),
        ("watchers", "max_user_instances", ENOUGH_WATCHERS),
    ];
    limits.into_iter().map(|(name, file, enough)| inotify_limit(name, file, enough)).collect()
}

fn inotify_limit(name: &'static str, file: &str, enough: u64) -> Check {
    let path = Path::new("/proc/sys/fs/inotify").join(file);
    let read = std::fs::read_to_string(&path).ok().and_then(|text| text.trim().parse::<u64>().ok());
    match read {
        Some(limit) if limit >= enough => Check::ok(name, format!("inotify/{file} is {limit}")),
        Some(limit) => Check::warn(
            name,
            format!("inotify/{file} is {limit}"),
            format!("sysctl fs.inotify.{file}={enough} gives more; else changes are seen late"),
        ),
        None => Check::warn(
            name,
            format!("{} cannot be read", path.display()),
            "the system does not say what changes; tenon looks again and again instead",
        ),
    }
}
