//! A workspace with a session whose isolates live in a process of their own, and what tests ask of it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use serde_json::json;
use tenon_host::ExtensionInfo;
use tenon_host::Session;
use tenon_host::SessionOptions;
use tenon_host::Status;
use tenon_host::isolates::Isolates;
use tenon_host::session::CallError;
use tenon_host::session::EndReason;
use tenon_host::session::ToolCall;
use tenon_host::tool::ResultType;
use tenon_host::tool::ToolResult;

/// How long something that must happen may take. It takes milliseconds, but the machine may be busy, and code
/// that keeps a processor busy has a low priority.
const PATIENCE: Duration = Duration::from_secs(300);

/// How often it is looked for.
const POLL: Duration = Duration::from_millis(10);

/// A quiet time after which changes on disk count; the usual one would only make tests slow.
const DEBOUNCE: Duration = Duration::from_millis(30);

/// The first pause before an extension is started again.
const RESTART_AFTER: Duration = Duration::from_millis(10);

/// Limits of an extension that no test is about unless it sets them: a busy machine must not reach them.
pub const GENEROUS: &str = "start-deadline-s = 600\nhook-deadline-ms = 600000\n";

/// A user who has nothing, and not the one whose processes a test limits.
const WITHOUT_GROUPS: u32 = 64_124;

/// See the module.
pub struct World {
    root: tempfile::TempDir,
    /// What starts isolates.
    pub isolates: Isolates,
}

impl World {
    /// An empty workspace.
    pub fn new() -> Self {
        let root = tempfile::tempdir().expect("a temporary folder");
        let isolates = Isolates::processes(tenon_tests::tenon(), None);
        let world = Self { root, isolates };
        // The repository ends here, wherever temporary folders are.
        std::fs::create_dir_all(world.cwd().join(".git")).unwrap();
        std::fs::create_dir_all(world.home()).unwrap();
        world.config("");
        world
    }

    fn root(&self) -> PathBuf {
        std::fs::canonicalize(self.root.path()).unwrap()
    }

    /// The working directory.
    pub fn cwd(&self) -> PathBuf {
        self.root().join("repo")
    }

    /// Tenon's own folder.
    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// The folder of an extension.
    pub fn folder(&self, name: &str) -> PathBuf {
        self.cwd().join(".github/extensions").join(name)
    }

    /// Writes an extension's entry file.
    pub fn extension(&self, name: &str, source: &str) -> PathBuf {
        self.write(name, "extension.mjs", source)
    }

    /// Writes a file of an extension.
    pub fn write(&self, name: &str, file: &str, text: &str) -> PathBuf {
        let path = self.folder(name).join(file);
        std::fs::create_dir_all(path.parent().expect("a file is in a folder")).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Writes an extension's entry file at one go: nobody ever sees half of it.
    pub fn replace(&self, name: &str, source: &str) {
        self.replace_file(name, "extension.mjs", source);
    }

    /// The same for another file of an extension.
    pub fn replace_file(&self, name: &str, file: &str, text: &str) {
        let new = self.root().join(format!("{name}.new"));
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, self.folder(name).join(file)).unwrap();
    }

    /// Makes an empty file in the working directory, for extensions that wait for it.
    pub fn mark(&self, name: &str) {
        std::fs::write(self.cwd().join(name), "").unwrap();
    }

    /// Waits for a file in the working directory.
    pub async fn marked(&self, name: &str) {
        let path = self.cwd().join(name);
        until(&format!("{name} is written"), || path.exists()).await;
    }

    /// The lines of a file in the working directory; none if it is not there.
    pub fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.cwd().join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Writes the user's configuration. Extensions that it says nothing about have generous limits.
    pub fn config(&self, text: &str) {
        let text = format!("{text}\n[extensions.\"*\"]\n{GENEROUS}");
        std::fs::write(self.home().join("config.toml"), text).unwrap();
    }

    /// A program that is `tenon` as another user, who may do everything here.
    pub fn as_user(&self, user: u32) -> PathBuf {
        let opened = Command::new("chmod").args(["-R", "a+rwX"]).arg(self.root()).status().unwrap();
        assert!(opened.success());
        let tenon = tenon_tests::reachable_tenon(&self.root());
        let script = format!(
            "#!/bin/sh\nexec setpriv --reuid={user} --regid={user} --clear-groups {} \"$@\"\n",
            tenon.display()
        );
        self.program("tenon-as-user", &script)
    }

    /// A program of this name that is a script.
    pub fn program(&self, name: &str, script: &str) -> PathBuf {
        let program = self.root().join(name);
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    /// Has isolates where no control group can be made, as far as this test can arrange that: the hierarchy is the superuser's, and
    /// they are another user's. Call it when the extensions are written, and configured.
    pub fn without_groups(&mut self) {
        // SAFETY: it only returns a number.
        if unsafe { libc::geteuid() } == 0 {
            self.isolates = Isolates::processes(self.as_user(WITHOUT_GROUPS), None);
        }
    }

    /// Options for a session that tests need nothing special of.
    pub fn options(&self) -> SessionOptions {
        let mut options = SessionOptions {
            trusted: true,
            isolates: self.isolates.clone(),
            ..SessionOptions::new(self.cwd(), self.home())
        };
        options.timing.debounce = DEBOUNCE;
        options.timing.restart_after = RESTART_AFTER;
        // A call that meets an extension on its way back gets its answer, however busy the machine.
        options.timing.return_patience = PATIENCE;
        options
    }

    /// A session that looks for changes on disk, with every extension running.
    pub async fn live(&self) -> Session {
        let session = self.open(SessionOptions { watch: true, ..self.options() }).await;
        for info in session.list() {
            assert_eq!(info.status, Status::Running, "{}: {:?}", info.id, info.error);
        }
        session
    }

    /// A session with its extensions loaded, or not, as they can be.
    pub async fn open(&self, options: SessionOptions) -> Session {
        let session = Session::new(options).unwrap();
        patiently("the session loads", session.load()).await;
        session
    }

    /// Ends the session. Nothing of it lives on: neither the process that isolates were in nor those whose
    /// numbers extensions wrote to the file `pids`.
    pub async fn close(self, session: Session) {
        patiently("the session ends", session.end(EndReason::Complete)).await;
        let hosts = self.isolates.pids();
        let Self { root, isolates } = self;
        drop(session);
        drop(isolates);
        for pid in hosts {
            until("the zygote and its processes end", || is_dead(pid)).await;
        }
        for pid in pids(&root.path().join("repo/pids")) {
            until("the child of an extension ends", || is_dead(pid)).await;
        }
    }
}

/// The numbers in a file, one a line.
pub fn pids(file: &Path) -> Vec<u32> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

/// Whether a process is gone. One that only waits to be waited for is.
pub fn is_dead(pid: u32) -> bool {
    !std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Sends a signal to a process. It may have gone.
pub fn send(pid: u32, signal: &str) {
    let _ = Command::new("kill").args([format!("-{signal}"), pid.to_string()]).output();
}

/// Sends a signal, such as `KILL`, again and again until the process is gone: the first `SEGV` that does
/// not come from the processor only takes a handler away.
pub async fn kill(pid: u32, signal: &str) {
    until("a killed process ends", || {
        send(pid, signal);
        is_dead(pid)
    })
    .await;
}

/// Waits until something holds.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waited = async {
        while !holds() {
            tokio::time::sleep(POLL).await;
        }
    };
    patiently(what, waited).await;
}

/// Waits, but not for ever.
pub async fn patiently<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("this never came: {what}"),
    }
}

/// An extension, leaving out loads of it that only finish their calls.
pub fn info(session: &Session, name: &str) -> Option<ExtensionInfo> {
    session.find(name).into_iter().find(|info| info.status != Status::Draining)
}

/// Waits until an extension is as wanted.
pub async fn until_info(
    session: &Session,
    name: &str,
    what: &str,
    wanted: impl Fn(&ExtensionInfo) -> bool,
) -> ExtensionInfo {
    let waited = async {
        loop {
            match info(session, name) {
                Some(info) if wanted(&info) => return info,
                _ => tokio::time::sleep(POLL).await,
            }
        }
    };
    match tokio::time::timeout(PATIENCE, waited).await {
        Ok(info) => info,
        Err(_) => {
            panic!("{name} never became this: {what}. It is {:#?}", brief(session, name))
        }
    }
}

fn brief(session: &Session, name: &str) -> Value {
    let Some(info) = info(session, name) else { return Value::Null };
    let message = |error: Option<tenon_host::LoadError>| error.map(|error| error.what.to_string());
    json!({
        "status": info.status.to_string(),
        "generation": info.generation,
        "failures": info.failures,
        "error": message(info.error),
        "lastError": message(info.last_error),
    })
}

/// Waits until an extension runs in a generation, or a later one.
pub async fn until_generation(session: &Session, name: &str, generation: u32) -> ExtensionInfo {
    let what = format!("running in generation {generation}");
    until_info(session, name, &what, |info| {
        info.status == Status::Running && info.generation >= generation
    })
    .await
}

/// Calls a tool. Every call is answered, one way or another.
pub async fn call(session: &Session, tool: &str) -> Result<ToolResult, CallError> {
    call_with(session, tool, json!({})).await
}

/// Calls a tool with arguments.
pub async fn call_with(
    session: &Session,
    tool: &str,
    args: Value,
) -> Result<ToolResult, CallError> {
    let called = session.call_tool(ToolCall::new(tool, args));
    let outcome = patiently(&format!("an answer of {tool}"), called).await;
    outcome.map(|outcome| outcome.result)
}

/// What a tool answers, after checking that it succeeded.
pub async fn answer(session: &Session, tool: &str) -> String {
    let result = call(session, tool).await.unwrap();
    assert_eq!(result.result_type, ResultType::Success, "{tool}: {result:?}");
    result.text_result_for_llm
}

/// Calls a tool until it answers something; until then it must answer too, unless it is not there.
pub async fn until_answer(session: &Session, tool: &str, wanted: &str) {
    let asked = async {
        loop {
            match call(session, tool).await {
                Ok(result) if result.text_result_for_llm == wanted => return,
                Ok(result) => assert_eq!(result.result_type, ResultType::Success, "{result:?}"),
                Err(CallError::UnknownTool { .. }) => {}
            }
            tokio::time::sleep(POLL).await;
        }
    };
    patiently(&format!("{tool} answers {wanted}"), asked).await;
}

/// An extension with the given tools, written as the inside of an array; `before` runs first.
pub fn with_tools(before: &str, tools: &str) -> String {
    format!(
        "import {{ joinSession }} from \"@github/copilot-sdk/extension\";\n{before}\n\
         const session = await joinSession({{ tools: [{tools}] }});\n"
    )
}

/// An extension with one tool that answers a version.
pub fn versioned(tool: &str, version: u32) -> String {
    with_tools("", &format!("{{ name: \"{tool}\", handler: () => \"{version}\" }}"))
}

/// JavaScript that waits for a file in the working directory.
pub fn wait_for(file: &str) -> String {
    format!(
        "while (!(await import(\"node:fs\")).existsSync(\"{file}\")) \
           await new Promise((resolve) => setTimeout(resolve, 10));"
    )
}

/// JavaScript that makes a file in the working directory.
pub fn make(file: &str) -> String {
    format!("(await import(\"node:fs\")).writeFileSync(\"{file}\", \"\");")
}
