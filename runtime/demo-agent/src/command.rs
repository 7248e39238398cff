//! What the demo agent starts: shell commands, which end with everything they have started, and a process that does not.

use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::process::Stdio;

use parking_lot::Mutex;
use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::kill_process_group;
use rustix::process::setsid;
use tokio::io::AsyncRead;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// How much of a command's output is kept, in bytes. A command that prints without end must not fill our memory,
/// and nobody reads more.
const MOST_OUTPUT: usize = 1024 * 1024;

/// What follows output of which the rest is missing.
const CUT: &str = "\n[the rest was cut off]";

/// How a command ended.
#[derive(Debug)]
pub(super) struct Finished {
    /// What it printed, to either stream, in the order it came.
    pub(super) output: String,
    /// How it ended.
    pub(super) status: ExitStatus,
}

/// Runs a command with `sh -c`. It ends with all its processes when it is done, or when the future is dropped.
pub(super) async fn run(
    command: &str,
    cwd: &Path,
    environment: &[(String, String)],
) -> io::Result<Finished> {
    let mut child = Command::new("sh")
        .arg("-c")
        .arg(command)
        .current_dir(cwd)
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let group = Group::of(child.id());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let kept = Mutex::new(Kept::default());
    let ending = async {
        let status = child.wait().await;
        // What runs on in the background would keep the output open, and nobody would be there to end it.
        drop(group);
        status
    };
    let (status, (), ()) = tokio::join!(ending, collect(stdout, &kept), collect(stderr, &kept));
    let kept = kept.into_inner();
    let mut output = String::from_utf8_lossy(&kept.bytes).into_owned();
    if kept.cut {
        output.push_str(CUT);
    }
    Ok(Finished { output, status: status? })
}

/// Output so far.
#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    cut: bool,
}

/// Reads a stream to its end, whether or not there is room for it.
async fn collect(stream: Option<impl AsyncRead + Unpin>, kept: &Mutex<Kept>) {
    let Some(mut stream) = stream else { return };
    let mut buffer = vec![0; 8192];
    while let Ok(read) = stream.read(&mut buffer).await
        && read > 0
    {
        let mut kept = kept.lock();
        let room = read.min(MOST_OUTPUT - kept.bytes.len());
        kept.bytes.extend_from_slice(&buffer[..room]);
        kept.cut |= room < read;
    }
}

/// A process group that ends when this is dropped.
struct Group(Option<Pid>);

impl Group {
    /// The group that a process of ours leads.
    fn of(leader: Option<u32>) -> Self {
        Self(leader.and_then(|id| Pid::from_raw(id.cast_signed())))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // One that has ended needs no signal.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Starts a process that leaves our process group and session, and does not end with us.
pub(super) fn spawn_orphan() -> String {
    let mut command = Command::new("sleep");
    command.arg("1000").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: setsid may be called between fork and exec, and touches no memory.
    unsafe {
        command.pre_exec(|| {
            setsid()?;
            Ok(())
        });
    }
    match command.spawn() {
        Ok(child) => format!("orphan {}", child.id().unwrap_or_default()),
        Err(error) => format!("no orphan: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufRead;
    use std::io::Read;

    use super::*;

    async fn run_here(command: &str, cwd: &Path) -> io::Result<Finished> {
        let environment: Vec<_> = std::env::vars().collect();
        run(command, cwd, &environment).await
    }

    #[tokio::test]
    async fn both_streams_and_the_exit_code_are_reported() {
        let temp = tempfile::tempdir().unwrap();
        let done = run_here("echo out; echo err >&2; pwd; exit 3", temp.path()).await.unwrap();
        assert_eq!(done.status.code(), Some(3));
        let here = temp.path().canonicalize().unwrap();
        for line in ["out", "err", here.to_str().unwrap()] {
            assert!(done.output.lines().any(|printed| printed == line), "{}", done.output);
        }
    }

    #[tokio::test]
    async fn what_a_command_leaves_running_ends_with_it() {
        let temp = tempfile::tempdir().unwrap();
        // Would wait for the end of its output, which the background process holds open.
        let done = run_here("sleep 1000 & echo started", temp.path()).await.unwrap();
        assert_eq!((done.output.as_str(), done.status.success()), ("started\n", true));
    }

    #[tokio::test]
    async fn a_command_that_is_given_up_ends_with_its_children() {
        let temp = tempfile::tempdir().unwrap();
        let pipe = temp.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let (running, is_running) = tokio::sync::oneshot::channel();
        // The end of the pipe comes with the end of the last process that has it open.
        let watch = tokio::task::spawn_blocking(move || {
            let mut pipe = io::BufReader::new(std::fs::File::open(pipe).unwrap());
            let mut line = String::new();
            pipe.read_line(&mut line).unwrap();
            running.send(line).unwrap();
            pipe.read_to_end(&mut Vec::new()).unwrap()
        });
        let folder = temp.path().to_owned();
        let command = tokio::spawn(async move {
            run_here("exec 3>pipe; echo running >&3; sleep 1000 & sleep 1000", &folder).await
        });
        assert_eq!(is_running.await.unwrap(), "running\n");
        command.abort();
        assert_eq!(watch.await.unwrap(), 0);
    }

    #[tokio::test]
    async fn output_beyond_the_limit_is_cut_and_the_command_still_ends() {
        let temp = tempfile::tempdir().unwrap();
        let command = format!("head -c {} /dev/zero | tr '\\0' x", 2 * MOST_OUTPUT);
        let done = run_here(&command, temp.path()).await.unwrap();
        assert_eq!(done.output.len(), MOST_OUTPUT + CUT.len());
        assert!(done.output.ends_with(CUT));
        assert!(done.status.success());
    }
}
