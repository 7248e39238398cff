//! Runs the `tenon` binary, and `tenon-bench`, in throw-away workspaces.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up fails")]

use std::ffi::OsString;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

use libtest_mimic::Failed;
use libtest_mimic::Trial;
use serde_json::Value;

/// The engine of the binary under test.
pub const ENGINE: &str = if cfg!(feature = "quickjs") { "quickjs" } else { "v8" };

/// The binary under test: `$TENON_BIN`, or the one that cargo built beside this test.
pub fn tenon() -> PathBuf {
    if let Some(path) = std::env::var_os("TENON_BIN") {
        return path.into();
    }
    beside_the_test("tenon")
}

/// The program that measures, for every engine the same: the one that cargo built beside this test.
fn tenon_bench() -> PathBuf {
    beside_the_test("tenon-bench")
}

fn beside_the_test(program: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test is a program");
    test.ancestors().nth(2).expect("cargo's layout").join(program)
}

/// The binary under test in a folder, for users who cannot reach it where it is. It may be the same file: its rights must
/// not be changed.
pub fn reachable_tenon(folder: &Path) -> PathBuf {
    let program = folder.join("tenon");
    if !program.exists() && std::fs::hard_link(tenon(), &program).is_err() {
        std::fs::copy(tenon(), &program).expect("the binary is there");
    }
    program
}

/// A trial with an event loop of its own.
pub fn trial<F>(name: &str, body: impl FnOnce() -> F + Send + 'static) -> Trial
where
    F: Future<Output = ()> + 'static,
{
    Trial::test(name, move || {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_all().build().map_err(Failed::from)?;
        runtime.block_on(body());
        Ok(())
    })
}

/// Stops a process, and waits until it stands still.
pub fn stop(pid: u32) {
    signal(pid, "STOP");
    let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    while !stat().contains(") T ") {
        std::thread::yield_now();
    }
}

/// Lets a process go on that was stopped.
pub fn resume(pid: u32) {
    signal(pid, "CONT");
}

fn signal(pid: u32, signal: &str) {
    let sent = Command::new("kill").args([format!("-{signal}"), pid.to_string()]).status();
    assert!(sent.unwrap().success(), "process {pid} is not there");
}

/// A folder of this package, such as `specs`.
pub fn folder(name: &str) -> PathBuf {
    // Not only where it was compiled: clones share what is compiled.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    here.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into()).join(name)
}

/// A workspace of its own, with a home of its own and an environment without the machine's.
pub struct Workspace {
    root: tempfile::TempDir,
    env: Vec<(String, OsString)>,
}

impl Default for Workspace {
    fn default() -> Self {
        Self::new()
    }
}

impl Workspace {
    /// An empty workspace.
    pub fn new() -> Self {
        let root = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(root.path().join("repo")).unwrap();
        std::fs::create_dir(root.path().join("repo/.git")).unwrap();
        Self { root, env: Vec::new() }
    }

    /// The working directory.
    pub fn cwd(&self) -> PathBuf {
        std::fs::canonicalize(self.root.path()).unwrap().join("repo")
    }

    /// Tenon's own folder.
    pub fn home(&self) -> PathBuf {
        std::fs::canonicalize(self.root.path()).unwrap().join("home")
    }

    /// Sets an environment variable for the program.
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Writes a file below the working directory.
    pub fn file(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        write(&self.cwd().join(path), text)
    }

    /// Writes a file below Tenon's own folder.
    pub fn home_file(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        write(&self.home().join(path), text)
    }

    /// Adds a project extension with the given entry file.
    pub fn extension(self, name: &str, source: &str) -> Self {
        self.file(&format!(".github/extensions/{name}/extension.mjs"), source);
        self
    }

    /// Adds a project extension with one tool, given the body of its handler.
    pub fn tool(self, name: &str, body: &str) -> Self {
        let source = format!(
            "import {{ joinSession }} from \"@github/copilot-sdk/extension\";\n\
             const session = await joinSession({{ tools: [{{ name: \"{name}\", description: \"\",\n\
             handler: async (args, invocation) => {{ {body} }} }}] }});\n"
        );
        self.extension(&name.replace('_', "-"), &source)
    }

    /// Links a folder of ours in as a project extension.
    pub fn linked_extension(self, name: &str, folder: &Path) -> Self {
        let parent = self.cwd().join(".github/extensions");
        std::fs::create_dir_all(&parent).unwrap();
        std::os::unix::fs::symlink(folder, parent.join(name)).unwrap();
        self
    }

    /// The program with its arguments, not started yet. The workspace is trusted.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.program(&tenon());
        command.args(args).arg("--trust");
        command
    }

    /// A program in the workspace, not started yet.
    fn program(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.cwd()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.root.path()).env("TENON_HOME", self.home());
        // Nothing is to outlive a test.
        command.env("TENON_ZYGOTE_IDLE_S", "0");
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, args: &[&str]) -> Run {
        Run::new(self.command(args).output().expect("the tenon binary runs"))
    }

    /// Measures a build of the program.
    pub fn bench(&self, tenon: &Path, args: &[&str]) -> Run {
        let mut command = self.program(&tenon_bench());
        command.args(args).arg("--tenon").arg(tenon);
        Run::new(command.output().expect("the tenon-bench binary runs"))
    }

    /// Calls a tool and returns its result object.
    pub fn call(&self, tool: &str, args: &Value) -> Value {
        self.run(&["call", tool, "--json", "--args", &args.to_string()]).json()
    }

    /// What a tool answers, after checking that it succeeded.
    pub fn answer(&self, tool: &str, args: &Value) -> String {
        let result = self.call(tool, args);
        assert_eq!(result["resultType"], "success", "{result:#}");
        result["textResultForLlm"].as_str().unwrap().to_owned()
    }

    /// `tenon ext list --json`, as a map from name to entry.
    pub fn list(&self) -> serde_json::Map<String, Value> {
        let list = self.run(&["ext", "list", "--json"]).json();
        let entries = list.as_array().expect("an array").iter();
        entries.map(|entry| (entry["name"].as_str().unwrap().to_owned(), entry.clone())).collect()
    }

    /// `tenon ext inspect NAME --json`.
    pub fn inspect(&self, name: &str) -> Value {
        self.run(&["ext", "inspect", name, "--json"]).json()
    }

    /// Text without what differs from run to run.
    pub fn scrub(&self, text: &str) -> String {
        text.replace(&*self.cwd().to_string_lossy(), "[CWD]")
            .replace(&*self.home().to_string_lossy(), "[HOME]")
            .replace(&*self.root.path().to_string_lossy(), "[ROOT]")
    }
}

fn write(path: &Path, text: impl AsRef<[u8]>) -> PathBuf {
    std::fs::create_dir_all(path.parent().expect("a file is in a folder")).unwrap();
    std::fs::write(path, text).unwrap();
    path.to_owned()
}

/// What a run of the program left behind.
#[derive(Debug)]
pub struct Run {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The exit code.
    pub code: i32,
}

impl Run {
    /// Reads what a finished process left behind.
    pub fn new(output: Output) -> Self {
        Self {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            code: output.status.code().unwrap_or(-1),
        }
    }

    /// Standard output as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error} in the output of {self:#?}"))
    }
}
