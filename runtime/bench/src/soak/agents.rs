//! Agents that come and go beside the session: the whole program, each time, half of them killed.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use tenon_console::error::CliError;

use crate::suite::calls;
use crate::tenon::Tenon;

/// Carried by every process that descends from one of these programs.
const MARK: &str = "TENON_SOAK";

/// How long an agent may take. Longer is a failure.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long what was killed has to go.
const SETTLE: Duration = Duration::from_secs(20);

/// The pause between two.
const BETWEEN: Duration = Duration::from_secs(2);

/// What the agent is told: to say something, to leave a process behind, to call an extension's tool.
const PROMPT: &str =
    "@say begun\n@spawn-orphan\n@call echo {\"text\":\"x\"}\n@run sleep 0.05\n@say done";

/// A workspace in which agents are started, and what became of them.
pub struct Agents {
    program: PathBuf,
    folder: tempfile::TempDir,
    mark: String,
    ended: AtomicU64,
    killed: AtomicU64,
    failures: AtomicU64,
}

impl Agents {
    pub fn new(tenon: &Tenon) -> Result<Self, CliError> {
        let folder = tempfile::tempdir()?;
        let extension = folder.path().join("extensions").join("echo");
        std::fs::create_dir_all(&extension)?;
        std::fs::write(extension.join("extension.mjs"), calls::TOOL)?;
        let mark = format!("soak-{}", std::process::id());
        let [ended, killed, failures] = [(); 3].map(|()| AtomicU64::new(0));
        let program = tenon.program().to_owned();
        Ok(Self { program, folder, mark, ended, killed, failures })
    }

    /// Those that ended, in whatever way.
    pub fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }

    /// Those that were killed.
    pub fn killed(&self) -> u64 {
        self.killed.load(Ordering::Relaxed)
    }

    /// Those that were not killed and failed.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Starts one after the other until the time is over.
    pub async fn come_and_go(&self, began: Instant, length: Duration) -> Result<(), CliError> {
        // The time of a whole run, over which kills are spread.
        let mut whole = Duration::from_secs(1);
        let mut number = 0_u32;
        while began.elapsed() < length {
            let started = Instant::now();
            let mut child = self.start()?;
            if number.is_multiple_of(2) {
                let status = tokio::time::timeout(PATIENCE, child.wait()).await;
                let is_well = matches!(status, Ok(Ok(status)) if status.success());
                self.failures.fetch_add(u64::from(!is_well), Ordering::Relaxed);
                whole = started.elapsed().min(Duration::from_secs(10));
            } else {
                // A different moment each time: the golden ratio spreads them.
                let share = (f64::from(number) * 0.618_034).fract();
                tokio::time::sleep(whole.mul_f64(share)).await;
                child.kill().await?;
                self.killed.fetch_add(1, Ordering::Relaxed);
            }
            self.ended.fetch_add(1, Ordering::Relaxed);
            number += 1;
            tokio::time::sleep(BETWEEN).await;
        }
        Ok(())
    }

    fn start(&self) -> Result<tokio::process::Child, CliError> {
        let folder = self.folder.path();
        let child = tokio::process::Command::new(&self.program)
            .args(["run", "-a", "demo", "--permissions", "approve-all", PROMPT])
            .arg("--home")
            .arg(folder.join("home"))
            .arg("--extensions")
            .arg(folder.join("extensions"))
            .arg("--cwd")
            .arg(folder)
            .env(MARK, &self.mark)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        Ok(child)
    }

    /// How many processes of theirs are there, after a moment for them to go.
    pub async fn left(&self) -> usize {
        let began = Instant::now();
        while self.marked() > 0 && began.elapsed() < SETTLE {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        self.marked()
    }

    fn marked(&self) -> usize {
        let wanted = format!("{MARK}={}", self.mark);
        let carries = |entry: &std::fs::DirEntry| {
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            environment.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes())
        };
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        processes.filter(carries).count()
    }
}
