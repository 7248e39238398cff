//! Sessions to measure.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tenon_console::error::CliError;
use tenon_host::ExtensionInfo;
use tenon_host::Session;
use tenon_host::SessionOptions;
use tenon_host::Status;
use tenon_host::isolates::Isolates;
use tenon_host::session::CallError;
use tenon_host::session::EndReason;
use tenon_host::session::ToolCall;
use tenon_host::tool::ToolResult;

use crate::tenon::Tenon;

/// How long something that is waited for may take before the benchmark gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often it is looked for.
const POLL: Duration = Duration::from_millis(1);

/// How a session is opened.
pub struct SessionSetup<'a> {
    /// The user's configuration.
    pub config: &'a str,
    /// Whether changes on disk are noticed.
    pub watch: bool,
    /// Whether events are recorded in a file.
    pub record: bool,
    /// How long it must be quiet on disk; as usual if there is none.
    pub debounce: Option<Duration>,
    /// The first pause before an extension is started again; as usual if there is none.
    pub restart_after: Option<Duration>,
}

/// Extensions may take their time to start: how long it takes is measured, not judged.
const PATIENT: &str = "[extensions.\"*\"]\nstart-deadline-s = 600\n";

impl Default for SessionSetup<'_> {
    fn default() -> Self {
        Self { config: PATIENT, watch: false, record: false, debounce: None, restart_after: None }
    }
}

/// A session in a folder of its own, whose extensions have processes of their own, as the program has them. What is dropped
/// first stands first.
pub struct MeasuredSession {
    /// The session.
    pub session: Session,
    /// What starts its isolates.
    pub isolates: Isolates,
    /// How long it must be quiet on disk before changes count.
    pub debounce: Duration,
    folder: tempfile::TempDir,
}

impl MeasuredSession {
    /// Opens a session with the given extensions, each by name and source; all must run.
    pub async fn open(
        tenon: &Tenon,
        sources: impl IntoIterator<Item = (String, String)>,
        setup: SessionSetup<'_>,
    ) -> Result<Self, CliError> {
        let folder = tempfile::tempdir()?;
        let root = std::fs::canonicalize(folder.path())?;
        let home = root.join("home");
        std::fs::create_dir_all(&home)?;
        std::fs::write(home.join("config.toml"), setup.config)?;
        for (name, source) in sources {
            write(&root, &name, &source)?;
        }
        let isolates = tenon.isolates();
        let mut options = SessionOptions {
            extension_folders: vec![root.join("extensions")],
            isolates: isolates.clone(),
            watch: setup.watch,
            record: setup.record,
            ..SessionOptions::new(root, home)
        };
        let timing = &mut options.timing;
        timing.debounce = setup.debounce.unwrap_or(timing.debounce);
        timing.restart_after = setup.restart_after.unwrap_or(timing.restart_after);
        // Whatever is done to extensions here is not their fault.
        timing.healthy_after = Duration::from_millis(1);
        let debounce = timing.debounce;
        let session = Session::new(options)?;
        session.load().await;
        for info in session.list() {
            if info.status != Status::Running {
                let why = info.error.map(|error| error.what.message).unwrap_or_default();
                return Err(CliError::new(format!("{} does not run: {why}", info.id)));
            }
        }
        Ok(Self { session, isolates, debounce, folder })
    }

    /// Writes an extension's entry file.
    pub fn write(&self, name: &str, source: &str) -> Result<(), CliError> {
        write(&std::fs::canonicalize(self.folder.path())?, name, source)
    }

    /// An extension.
    pub fn info(&self, name: &str) -> Option<ExtensionInfo> {
        self.session.find(name).into_iter().find(|info| info.status != Status::Draining)
    }

    /// Whether so many extensions run, none of them in one of the given processes.
    pub fn all_run(&self, count: usize, not_in: &[u32]) -> bool {
        self.running(not_in) == count
    }

    /// How many extensions run, in another process than the given ones.
    pub fn running(&self, not_in: &[u32]) -> usize {
        let is_there = |info: &ExtensionInfo| {
            info.status == Status::Running && info.pid.is_some_and(|pid| !not_in.contains(&pid))
        };
        self.session.list().iter().filter(|info| is_there(info)).count()
    }

    /// Whether an extension runs.
    pub fn serves(&self, name: &str) -> bool {
        self.info(name).is_some_and(|info| info.status == Status::Running)
    }

    /// Kills the zygote, and with it every extension; the processes that there were, the zygote first.
    pub async fn kill_zygote(&self, signal: libc::c_int) -> Result<Vec<u32>, CliError> {
        let pids = self.isolates.pids();
        if let Some(&zygote) = pids.first() {
            kill(zygote, signal).await?;
        }
        Ok(pids)
    }

    /// Ends the session, its extensions and the zygote; waits until these are gone.
    pub async fn end(self) -> Result<(), CliError> {
        self.session.end(EndReason::Complete).await;
        let hosts = self.isolates.pids();
        drop(self);
        until("the zygote and its processes end", || !hosts.iter().any(|&pid| is_alive(pid))).await
    }
}

fn write(root: &Path, name: &str, source: &str) -> Result<(), CliError> {
    let folder = root.join("extensions").join(name);
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("extension.mjs"), source)?;
    Ok(())
}

/// A session in the given folder with the given extensions loaded, wherever they run, each by name and source. Events are
/// recorded as usual.
pub async fn session_in(
    folder: &Path,
    sources: impl IntoIterator<Item = (String, String)>,
    isolates: Isolates,
) -> Result<Session, CliError> {
    for (name, source) in sources {
        write(folder, &name, &source)?;
    }
    let options = SessionOptions {
        extension_folders: vec![folder.join("extensions")],
        record: true,
        isolates,
        ..SessionOptions::new(folder.to_owned(), folder.join("home"))
    };
    let session = Session::new(options)?;
    session.load().await;
    Ok(session)
}

/// Calls a tool without arguments.
pub async fn call(session: &Session, tool: &str) -> Result<ToolResult, CallError> {
    session.call_tool(ToolCall::new(tool, json!({}))).await.map(|outcome| outcome.result)
}

/// Waits until something holds.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) -> Result<(), CliError> {
    until_async(what, || std::future::ready(holds())).await
}

/// Waits until something holds that takes time to find out.
pub async fn until_async<F: Future<Output = bool>>(
    what: &str,
    mut holds: impl FnMut() -> F,
) -> Result<(), CliError> {
    let waited = async {
        while !holds().await {
            tokio::time::sleep(POLL).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waited).await;
    waited.map_err(|_| CliError::new(format!("after {PATIENCE:?} still not: {what}")))
}

/// Whether a process is there, and is more than an entry that waits to be read.
pub fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Sends a signal until the process is gone: the first `SIGSEGV` that does not come from the processor only
/// takes the runtime's handler away.
pub async fn kill(pid: u32, signal: libc::c_int) -> Result<(), CliError> {
    until("a killed process ends", || {
        // SAFETY: kill takes two integers. The process is a child of ours that was alive a moment ago; one
        // that was waited for meanwhile is not there, and its number is not used again so soon.
        unsafe { libc::kill(pid.cast_signed(), signal) };
        !is_alive(pid)
    })
    .await
}

/// The value below which such a share of all values lies.
pub fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (sorted.len() as f64 * share) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}
