//! Where an extension is installed from: a folder, or a git repository.

use std::fmt;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::ExitStatus;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use super::InstallError;

/// The transports that git may use. `ext::` and other helpers would run whatever the address says.
const PROTOCOLS: &str = "https:http:ssh:git:file";

/// How addresses of repositories begin.
const SCHEMES: [&str; 5] = ["https://", "http://", "ssh://", "git://", "file://"];

/// Variables that would lead git to another repository than the one it is told.
const MISLEADING: [&str; 6] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
];

/// The lines of git's complaint that are passed on; before them it tells what it did.
const COMPLAINT_LINES: usize = 5;

/// How often git is looked after: whether it has ended, and whether it should.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How long git has to end itself and its helpers; it deletes what it had begun.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// The signals by which people and systems end programs.
const END_SIGNALS: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Where an extension comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A folder on this machine.
    Folder(PathBuf),
    /// A git repository.
    Git {
        /// Its address, as git takes it.
        url: String,
        /// A branch, a tag or a full commit; the repository's default branch if there is none.
        reference: Option<String>,
    },
}

impl Source {
    /// Reads what a person typed: a path, or the address of a git repository with an optional `#reference`.
    pub fn parse(text: &str) -> Result<Self, InstallError> {
        // A repository without a working tree is a folder too, but has no files to copy.
        if !text.ends_with(".git") && Path::new(text).exists() {
            let path = std::path::absolute(text)
                .map_err(|source| InstallError::Io { path: text.into(), source })?;
            return Ok(Self::Folder(path));
        }
        let (url, reference) = match text.split_once('#') {
            Some((url, reference)) => (url, Some(reference)),
            None => (text, None),
        };
        let bad =
            |why: &str| Err(InstallError::BadSource { text: hide_secrets(text), why: why.into() });
        if url.starts_with('-') {
            return bad("an address does not begin with \"-\"");
        }
        if names_helper(url) {
            return bad("transport helpers are not used; give an https, ssh or file address");
        }
        if !is_repository(url) {
            return bad(
                "it is neither a folder nor the address of a git repository (https://, ssh://, \
                 git@host:path, file://, or ending in .git)",
            );
        }
        if let Some(reference) = reference
            && !is_reference(reference)
        {
            return bad("what follows \"#\" is not the name of a branch or tag, nor a commit");
        }
        Ok(Self::Git { url: url.to_owned(), reference: reference.map(str::to_owned) })
    }

    /// The name that an extension has by its source.
    pub(super) fn name(&self) -> Option<String> {
        match self {
            Self::Folder(path) => {
                let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
                Some(real.file_name()?.to_string_lossy().into_owned())
            }
            Self::Git { url, .. } => {
                let url = url.trim_end_matches('/');
                let last = url.rsplit(['/', ':']).next()?;
                Some(last.strip_suffix(".git").unwrap_or(last).to_owned())
            }
        }
    }
}

impl fmt::Display for Source {
    /// For people and records: without passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(f),
            Self::Git { url, .. } => f.write_str(&hide_secrets(url)),
        }
    }
}

fn is_repository(url: &str) -> bool {
    let by_scheme = SCHEMES.iter().any(|scheme| {
        url.strip_prefix(scheme).is_some_and(|rest| !rest.trim_matches('/').is_empty())
    });
    // user@host:path
    let by_host = url.split_once(':').is_some_and(|(host, path)| {
        host.contains('@') && !host.contains('/') && !path.is_empty() && !path.starts_with("//")
    });
    by_scheme || by_host || (url.ends_with(".git") && url != ".git")
}

/// `helper::address`.
fn names_helper(url: &str) -> bool {
    url.split_once("::").is_some_and(|(helper, _)| {
        helper.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+' | '.'))
    })
}

/// Only what branches, tags and commits consist of: git reads more into `:`, `^`, `+` and the like.
fn is_reference(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/' | '-' | '@');
    !text.is_empty() && text.chars().all(plain) && !text.starts_with(['-', '/', '.'])
}

/// An address without the user and password that may stand before its host.
fn hide_secrets(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let host_end = rest.find('/').unwrap_or(rest.len());
    match rest[..host_end].rsplit_once('@') {
        // The user of ssh is part of the address, and no secret.
        Some((user, _)) if scheme == "ssh" && !user.contains(':') => url.to_owned(),
        Some((_, host)) => format!("{scheme}://{host}{}", &rest[host_end..]),
        None => url.to_owned(),
    }
}

/// Gets the files of one commit into `folder`, which is made; returns the commit. What git says is put
/// beside it for as long.
pub(super) fn check_out(
    url: &str,
    reference: Option<&str>,
    folder: &Path,
    is_stopped: &dyn Fn() -> bool,
) -> Result<String, InstallError> {
    let git = |args: &[&str]| run_git(url, folder, args, is_stopped);
    std::fs::create_dir(folder)
        .map_err(|source| InstallError::Io { path: folder.to_owned(), source })?;
    // A template may bring hooks.
    git(&["init", "--quiet", "--template="])?;
    let wanted = reference.unwrap_or("HEAD");
    // Not a clone: this takes a commit as well as a branch or a tag, and one commit is all that is needed.
    git(&[
        "fetch",
        "--quiet",
        "--depth=1",
        "--no-tags",
        "--no-recurse-submodules",
        "--",
        url,
        wanted,
    ])?;
    git(&["checkout", "--quiet", "--detach", "FETCH_HEAD"])?;
    git(&["rev-parse", "HEAD"])
}

/// Runs git without a terminal, without hooks, and with plain transports only.
fn run_git(
    url: &str,
    folder: &Path,
    args: &[&str],
    is_stopped: &dyn Fn() -> bool,
) -> Result<String, InstallError> {
    let failed = |said| InstallError::Git { source_text: hide_secrets(url), said };
    // Files, and not pipes: those end only with the last helper that has them.
    let [answer, complaint] = ["answer", "complaint"].map(|name| folder.with_file_name(name));
    let make = |path: &Path| {
        File::create(path).map_err(|source| InstallError::Io { path: path.to_owned(), source })
    };
    let read = |path: &Path| {
        std::fs::read(path)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .map_err(|source| InstallError::Io { path: path.to_owned(), source })
    };
    let mut command = Command::new("git");
    for name in MISLEADING {
        command.env_remove(name);
    }
    // In our process group: what the terminal sends to the program reaches git and its helpers too, and
    // ssh may ask for a passphrase there.
    let mut child = command
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ALLOW_PROTOCOL", PROTOCOLS)
        .args(["-c", "core.hooksPath=/dev/null"])
        // A server that sends nothing for a minute will not send anything.
        .args(["-c", "http.lowSpeedLimit=1", "-c", "http.lowSpeedTime=60"])
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(make(&answer)?)
        .stderr(make(&complaint)?)
        .spawn()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => failed("git is not installed".to_owned()),
            _ => failed(format!("git could not be started: {error}")),
        })?;
    let ended = wait(&mut child, is_stopped)
        .map_err(|error| failed(format!("git cannot be waited for: {error}")))?;
    let Some(status) = ended else { return Err(InstallError::Interrupted) };
    if status.success() {
        return Ok(read(&answer)?.trim().to_owned());
    }
    // What ends us may have reached git first.
    if is_stopped() || status.signal().is_some_and(|signal| END_SIGNALS.contains(&signal)) {
        return Err(InstallError::Interrupted);
    }
    let said = read(&complaint)?.replace(url, &hide_secrets(url));
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    Err(failed(match lines.as_slice() {
        [] => format!("git ended with {status}"),
        lines => lines[lines.len().saturating_sub(COMPLAINT_LINES)..].join("\n"),
    }))
}

/// Waits for git to end; `None` if it was ended because somebody wants the program to end.
fn wait(child: &mut Child, is_stopped: &dyn Fn() -> bool) -> std::io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if is_stopped() {
            end(child);
            return Ok(None);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Ends git: the terminal's signal may have done so, but not every signal comes from a terminal.
fn end(child: &mut Child) {
    // SAFETY: the process is ours and was not waited for, so the number is still its own.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGTERM) };
    let told = Instant::now();
    while matches!(child.try_wait(), Ok(None)) {
        if told.elapsed() > END_PATIENCE {
            // Nothing more can be done about one that does not end even so.
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(url: &str, reference: Option<&str>) -> Source {
        Source::Git { url: url.into(), reference: reference.map(str::to_owned) }
    }

    #[test]
    fn a_path_that_is_there_is_a_folder() {
        let temp = tempfile::tempdir().unwrap();
        let text = temp.path().to_str().unwrap();
        assert_eq!(Source::parse(text).unwrap(), Source::Folder(temp.path().to_owned()));
    }

    #[test]
    fn addresses_are_told_by_their_form() {
        for (text, expected) in [
            ("https://example.org/a/b", git("https://example.org/a/b", None)),
            ("https://example.org/a.git#v1.2", git("https://example.org/a.git", Some("v1.2"))),
            ("git@example.org:a/b#feature/x", git("git@example.org:a/b", Some("feature/x"))),
            ("ssh://git@example.org/a", git("ssh://git@example.org/a", None)),
            ("ssh://[::1]/a", git("ssh://[::1]/a", None)),
            ("file:///srv/a", git("file:///srv/a", None)),
            ("no/where/a.git", git("no/where/a.git", None)),
        ] {
            assert_eq!(Source::parse(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_git_would_take_for_something_else_is_refused() {
        for text in [
            "",
            "/no/where",
            "https://",
            "--upload-pack=touch /tmp/x.git",
            "-oProxyCommand=x@h:p",
            "ext::sh -c touch% x .git",
            "fd::7.git",
            "https://example.org/a#",
            "https://example.org/a#--upload-pack=x",
            "https://example.org/a#a:refs/heads/b",
            "https://example.org/a#+main",
        ] {
            let error = Source::parse(text).unwrap_err();
            assert!(matches!(error, InstallError::BadSource { .. }), "{text}: {error}");
        }
    }

    #[test]
    fn a_name_is_found_in_the_source() {
        for (url, name) in [
            ("https://example.org/a/my-ext.git", "my-ext"),
            ("https://example.org/my-ext/", "my-ext"),
            ("git@example.org:my-ext.git", "my-ext"),
        ] {
            assert_eq!(git(url, None).name().unwrap(), name);
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        for (url, shown) in [
            ("https://me:token@example.org/a", "https://example.org/a"),
            ("https://token@example.org", "https://example.org"),
            ("https://example.org/a@b", "https://example.org/a@b"),
            ("ssh://git@example.org/a", "ssh://git@example.org/a"),
            ("git@example.org:a", "git@example.org:a"),
        ] {
            assert_eq!(git(url, None).to_string(), shown);
        }
    }
}
