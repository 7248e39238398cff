//! A case: its folder, what is in it, and whether a run of it gives what is expected.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use tenon_tests::folder;
use walkdir::WalkDir;

use crate::perform;
use crate::script;
use crate::script::Header;
use crate::script::Line;
use crate::stage::Stage;
use crate::text;
use crate::updating;

/// How long a case may take. They take milliseconds, but the machine may be busy.
const LIMIT: Duration = Duration::from_secs(300);

/// Limits that no case is about unless it sets them: a busy machine must not reach them.
const GENEROUS: [(&str, i64); 2] = [("start-deadline-s", 600), ("hook-deadline-ms", 600_000)];

/// Set in the process that a case with an environment of its own runs in.
const OWN_PROCESS: &str = "TENON_SPEC_OWN_PROCESS";

/// What an entry file's name may end in.
const ENDINGS: [&str; 4] = ["mjs", "cjs", "js", "ts"];

/// See the module.
#[derive(Clone)]
pub struct Case {
    /// The folder above its own.
    pub area: String,
    /// Its folder's name.
    pub title: String,
    folder: PathBuf,
    /// The first line of its script, or what is wrong with it.
    pub header: Result<Header, String>,
    lines: Vec<Line>,
}

impl Case {
    /// Every folder `specs/AREA/CASE` with a script in it, by name.
    pub fn all() -> Vec<Self> {
        let found = WalkDir::new(folder("specs")).min_depth(3).max_depth(3).sort_by_file_name();
        let scripts =
            found.into_iter().flatten().filter(|entry| entry.file_name() == "script.jsonl");
        scripts.filter_map(|entry| Self::read(entry.path().parent()?)).collect()
    }

    fn read(folder: &Path) -> Option<Self> {
        let name = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
        let script = std::fs::read_to_string(folder.join("script.jsonl"));
        let (header, lines) =
            match script.map_err(|error| error.to_string()).and_then(|text| script::read(&text)) {
                Ok((header, lines)) => (Ok(header), lines),
                Err(error) => (Err(error), Vec::new()),
            };
        let title = name(folder)?;
        Some(Self { area: name(folder.parent()?)?, title, folder: folder.into(), header, lines })
    }

    /// The name of its trial.
    pub fn name(&self) -> String {
        format!("{}::{}", self.area, self.title)
    }

    /// Runs it and compares the transcript with what is expected.
    pub fn check(&self, engine: &str) -> Result<(), String> {
        let header = self.header.as_ref().map_err(Clone::clone)?;
        if !header.env.is_empty() && std::env::var_os(OWN_PROCESS).is_none() {
            return self.check_in_process_of_its_own(header);
        }
        let actual = self.run(header)?;
        let special = self.folder.join(format!("expected.{engine}.txt"));
        let file = if special.exists() { special } else { self.folder.join("expected.txt") };
        if updating() {
            return std::fs::write(&file, actual)
                .map_err(|error| format!("{}: {error}", file.display()));
        }
        let expected = std::fs::read_to_string(&file).unwrap_or_default();
        match text::difference(&expected, &actual) {
            None => Ok(()),
            Some(difference) => Err(format!(
                "{}\n{difference}\nIf this run is right, UPDATE_SPECS=1 writes it to {}.",
                header.about,
                file.display()
            )),
        }
    }

    /// The host takes the environment from its process, which other cases may share.
    fn check_in_process_of_its_own(&self, header: &Header) -> Result<(), String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.args(["--exact", &self.name()]).env(OWN_PROCESS, "1").envs(&header.env);
        let output = command.output().map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        let stdout = String::from_utf8_lossy(&output.stdout);
        Err(format!("{stdout}{}", String::from_utf8_lossy(&output.stderr)))
    }

    /// Its transcript. On a thread of its own, so that even a thread that is stuck is noticed.
    fn run(&self, header: &Header) -> Result<String, String> {
        let root = tempfile::tempdir().map_err(|error| error.to_string())?;
        let folders = Folders::new(root.path()).map_err(|error| error.to_string())?;
        self.lay_out(&folders)?;
        let stage = Arc::new(Stage::new(header.show.clone()));
        let (sender, receiver) = mpsc::channel();
        let performance = {
            let (header, lines) = (header.clone(), self.lines.clone());
            let (folders, stage) = (folders.clone(), stage.clone());
            move || {
                // Nobody listens any more after the limit.
                let _ = sender.send(perform::perform(header, lines, &folders, stage));
            }
        };
        let thread = std::thread::Builder::new().name(self.name()).spawn(performance);
        let thread = thread.map_err(|error| error.to_string())?;
        let outcome = match receiver.recv_timeout(LIMIT) {
            Ok(outcome) => outcome,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                Err(format!("not finished after {} seconds", LIMIT.as_secs()))
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(panic_of(thread)),
        };
        let transcript = stage.transcript(&folders.names());
        match outcome {
            Ok(()) => Ok(transcript),
            Err(error) => Err(format!("{error}\nThe transcript so far:\n{transcript}")),
        }
    }

    /// Copies the case's files to where a session looks for them.
    fn lay_out(&self, folders: &Folders) -> Result<(), String> {
        let project = folders.workspace.join(".github/extensions");
        for path in entries(&self.folder)? {
            let name = file_name(&path);
            match name.as_str() {
                "script.jsonl" | "README.md" => {}
                _ if name.starts_with("expected.") => {}
                "config.toml" => copy(&path, &folders.home.join(&name))?,
                "workspace" => copy(&path, &folders.workspace)?,
                "user" => {
                    for path in entries(&path)? {
                        add_extension(&path, &folders.home.join("extensions"))?;
                    }
                }
                _ => add_extension(&path, &project)?,
            }
        }
        be_generous(&folders.home.join("config.toml"))
    }
}

/// Where a run happens.
#[derive(Clone)]
pub struct Folders {
    root: PathBuf,
    /// The working directory.
    pub workspace: PathBuf,
    /// Tenon's own folder.
    pub home: PathBuf,
}

impl Folders {
    fn new(root: &Path) -> std::io::Result<Self> {
        let root = std::fs::canonicalize(root)?;
        let folders = Self { workspace: root.join("workspace"), home: root.join("home"), root };
        // The repository ends here, wherever temporary folders are.
        std::fs::create_dir_all(folders.workspace.join(".git"))?;
        std::fs::create_dir_all(&folders.home)?;
        Ok(folders)
    }

    /// What transcripts call the paths.
    fn names(&self) -> Vec<(String, &'static str)> {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        vec![
            (path(&self.workspace), "[CWD]"),
            (path(&self.home), "[HOME]"),
            (path(&self.root), "[ROOT]"),
        ]
    }
}

/// Adds generous limits to a configuration, wherever it has none of its own.
fn be_generous(file: &Path) -> Result<(), String> {
    // Most cases have none.
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut config: toml::Table = toml::from_str(&text).map_err(|error| error.to_string())?;
    let mut extensions = match config.remove("extensions") {
        Some(toml::Value::Table(extensions)) => extensions,
        _ => toml::Table::new(),
    };
    if !extensions.contains_key("*") {
        extensions.insert("*".to_owned(), toml::Value::Table(toml::Table::new()));
    }
    for (_, settings) in extensions.iter_mut() {
        let Some(settings) = settings.as_table_mut() else { continue };
        for (name, value) in GENEROUS {
            if !settings.contains_key(name) {
                settings.insert(name.to_owned(), toml::Value::Integer(value));
            }
        }
    }
    config.insert("extensions".to_owned(), toml::Value::Table(extensions));
    let text = toml::to_string(&config).map_err(|error| error.to_string())?;
    std::fs::write(file, text).map_err(|error| error.to_string())
}

fn panic_of(thread: std::thread::JoinHandle<()>) -> String {
    let panic = thread.join().err();
    let message = panic.as_ref().and_then(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| panic.downcast_ref::<&str>().copied())
    });
    format!("panicked: {}", message.unwrap_or("without a message"))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = WalkDir::new(folder).min_depth(1).max_depth(1).sort_by_file_name().into_iter();
    entries.map(|entry| Ok(entry.map_err(|error| error.to_string())?.into_path())).collect()
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Adds `NAME.mjs`, or the folder `NAME` with its entry file, to a folder of extensions.
fn add_extension(path: &Path, extensions: &Path) -> Result<(), String> {
    let name = file_name(path);
    if path.is_dir() {
        return copy(path, &extensions.join(name));
    }
    match name.rsplit_once('.') {
        Some((name, ending)) if ENDINGS.contains(&ending) => {
            copy(path, &extensions.join(name).join(format!("extension.{ending}")))
        }
        _ => {
            Err(format!("{} is neither an extension nor anything else a case has", path.display()))
        }
    }
}

/// Copies a file, or everything in a folder.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    for entry in WalkDir::new(from) {
        let entry = entry.map_err(|error| error.to_string())?;
        let below = entry.path().strip_prefix(from).unwrap_or(Path::new(""));
        // Joining nothing would add a slash to a file's path.
        let target = if below.as_os_str().is_empty() { to.to_owned() } else { to.join(below) };
        let done = if entry.file_type().is_dir() {
            std::fs::create_dir_all(&target)
        } else {
            let parent = target.parent().unwrap_or(to);
            std::fs::create_dir_all(parent)
                .and_then(|()| std::fs::copy(entry.path(), &target).map(drop))
        };
        done.map_err(|error| format!("{}: {error}", target.display()))?;
    }
    Ok(())
}
