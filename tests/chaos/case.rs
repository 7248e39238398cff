//! A hostile extension: a folder below `hostile`, with what it does and what must come of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use walkdir::WalkDir;

use crate::world::GENEROUS;

/// The entry file of a bystander of its own.
const BYSTANDER_FILE: &str = "bystander.mjs";

/// What `case.toml` says; see `hostile/README.md`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Case {
    /// One sentence; it is shown when the case fails.
    pub about: String,
    /// What makes the extension do it.
    #[serde(default)]
    pub trigger: Trigger,
    /// What comes of it.
    pub expect: Expect,
    /// Each must be in what the call says, and in the error that is listed; `|` separates alternatives.
    #[serde(default)]
    pub text: Vec<String>,
    /// Where the engine must say that the extension stood: the first and the last line.
    pub place: Option<(u32, u32)>,
    /// The engines it is for; all unless given.
    #[serde(default)]
    pub engines: Vec<String>,
    /// Whether its own process may die of it.
    #[serde(default)]
    pub may_die: bool,
    /// How often it is called again afterwards; it must answer, whatever it says.
    #[serde(default)]
    pub again: u32,
    /// What no answer may say, nor what is listed as its error.
    pub never: Option<String>,
    /// What must be in its log.
    pub log: Option<String>,
    /// Whether the process of the load that was ended must end, too.
    #[serde(default)]
    pub process_ends: bool,
    /// What the user has configured for the extension.
    #[serde(default)]
    pub config: toml::Table,
    /// Symbolic links in its folder, and what they lead to.
    #[serde(default)]
    pub links: BTreeMap<String, PathBuf>,
    /// Its folder.
    #[serde(skip)]
    folder: PathBuf,
}

/// What makes an extension misbehave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// Its tool `attack` is called.
    #[default]
    Tool,
    /// It is loaded, while others run.
    Load,
    /// The session begins.
    StartHook,
    /// The tool `poke` of another extension is called.
    ToolHook,
    /// Its tool `attack` is called, and answers; what counts comes later.
    Timer,
    /// The event `test.attack` is emitted.
    Event,
}

/// What comes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expect {
    /// The extension is ended, says why, and is started again if it had been running.
    Ended,
    /// The call fails; the extension goes on.
    Fails,
    /// The call succeeds; the extension goes on.
    Harmless,
    /// The call is answered somehow. What becomes of the extension is its own affair.
    Contained,
}

impl Case {
    /// Every case by name, or what is wrong with it.
    pub fn all() -> Vec<(String, Result<Self, String>)> {
        let root = tenon_tests::folder("hostile");
        let folders = WalkDir::new(root).min_depth(1).max_depth(1).sort_by_file_name();
        let folders = folders.into_iter().flatten().filter(|entry| entry.file_type().is_dir());
        folders
            .map(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                (name, Self::read(entry.path()))
            })
            .collect()
    }

    fn read(folder: &Path) -> Result<Self, String> {
        let file = folder.join("case.toml");
        let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        let text = std::fs::read_to_string(&file).map_err(|error| wrong(&error))?;
        let case: Self = toml::from_str(&text).map_err(|error| wrong(&error))?;
        Ok(Self { folder: folder.to_owned(), ..case })
    }

    /// Whether it is for an engine.
    pub fn runs_on(&self, engine: &str) -> bool {
        self.engines.is_empty() || self.engines.iter().any(|name| name == engine)
    }

    /// Fails if a text says what it must not.
    pub fn never_said(&self, text: &str) {
        let said = self.never.as_deref().is_some_and(|never| text.contains(never));
        assert!(!said, "{}\n{text}", self.about);
    }

    /// The extension beside it, if it is to be a particular one.
    pub fn bystander(&self) -> Option<String> {
        std::fs::read_to_string(self.folder.join(BYSTANDER_FILE)).ok()
    }

    /// The user's configuration.
    pub fn configuration(&self) -> String {
        let mut config: toml::Table = toml::from_str(GENEROUS).expect("a table");
        config.extend(self.config.clone());
        let settings = toml::to_string(&config).expect("a table can be written");
        format!("[extensions.culprit]\n{settings}")
    }

    /// Copies the extension to where it is to be found.
    pub fn lay_out(&self, target: &Path) {
        std::fs::create_dir_all(target).unwrap();
        for (link, to) in &self.links {
            std::os::unix::fs::symlink(to, target.join(link)).unwrap();
        }
        let files = WalkDir::new(&self.folder).min_depth(1).max_depth(1).sort_by_file_name();
        let mut paths: Vec<PathBuf> =
            files.into_iter().map(|entry| entry.unwrap().into_path()).collect();
        // The entry file comes last, so that whoever sees it sees a whole extension.
        paths.sort_by_key(|path| path.ends_with("extension.mjs"));
        for path in paths {
            let name = path.file_name().expect("a file has a name");
            if name != "case.toml" && name != BYSTANDER_FILE {
                std::fs::copy(&path, target.join(name)).unwrap();
            }
        }
    }
}

/// Whether a text is in another; `|` separates alternatives.
pub fn says(text: &str, wanted: &str) -> bool {
    wanted.split('|').any(|one| text.contains(one))
}
