//! What a session keeps in its folder beside its events: the plan, files, and its summary.

use std::path::Component;
use std::path::Path;
use std::path::PathBuf;

use serde_json::Value;
use serde_json::json;

use super::Session;
use super::quota::Kind;
use super::quota::NoRoom;
use super::quota::RESULTS;
use super::quota::walk;
use crate::beneath::Before;
use crate::beneath::Beneath;
use crate::beneath::BeneathError;
use crate::hooks::lifecycle::SessionEnd;
use crate::layout::FILES;

/// The largest file that is read or written through the session.
pub const MAX_FILE_BYTES: usize = 16 * 1024 * 1024;

/// The name of the plan in the session's folder.
pub(super) const PLAN: &str = "plan.md";

/// The longest part of a call's id that is used in the name of a file.
const MAX_NAME_CHARS: usize = 64;

/// A long result was not put into a file.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeepError {
    /// The session keeps as much already as it may.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// It could not be written.
    #[error(transparent)]
    Unwritten(#[from] BeneathError),
}

impl Session {
    pub(super) fn plan_path(&self) -> PathBuf {
        self.folder().join(PLAN)
    }

    pub(super) fn read_plan(&self) -> Result<Value, String> {
        let path = self.plan_path();
        let read = Beneath::open(self.folder())
            .map_err(BeneathError::from)
            .and_then(|folder| folder.read(Path::new(PLAN), MAX_FILE_BYTES));
        match read {
            Ok(content) => Ok(json!({ "exists": true, "content": content, "path": path })),
            Err(error) if error.is_missing() => {
                Ok(json!({ "exists": false, "content": null, "path": path }))
            }
            Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
        }
    }

    pub(super) fn write_plan(&self, content: &str) -> Result<Value, String> {
        check_length("the plan", content.len())?;
        let path = self.plan_path();
        let written = make_and_open(self.folder())
            .and_then(|folder| folder.replace(Path::new(PLAN), content.as_bytes()));
        let before =
            written.map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
        self.emit("session.plan_changed", json!({ "operation": operation(before) }));
        Ok(Value::Null)
    }

    pub(super) fn delete_plan(&self) -> Result<Value, String> {
        let removed = Beneath::open(self.folder())
            .map_err(BeneathError::from)
            .and_then(|folder| folder.remove(Path::new(PLAN)));
        match removed {
            Ok(()) => self.emit("session.plan_changed", json!({ "operation": "delete" })),
            Err(error) if error.is_missing() => return Ok(Value::Null),
            Err(error) => {
                return Err(format!("{} cannot be deleted: {error}", self.plan_path().display()));
            }
        };
        Ok(Value::Null)
    }

    /// The files of the session, by their paths below its folder `files`.
    pub(super) fn list_files(&self) -> Value {
        let root = self.folder().join(FILES);
        let files: Vec<_> = walk(&root)
            .sort_by_file_name()
            .into_iter()
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_file())
            .filter_map(|entry| {
                let below = entry.path().strip_prefix(&root).ok()?;
                Some(below.to_string_lossy().into_owned())
            })
            .collect();
        json!({ "files": files })
    }

    pub(super) fn read_file(&self, path: &str) -> Result<Value, String> {
        let below = below_files(path)?;
        let content = Beneath::open(self.folder())
            .map_err(BeneathError::from)
            .and_then(|folder| folder.read(&below, MAX_FILE_BYTES))
            .map_err(|error| refuse(path, &error))?;
        Ok(json!({ "content": content }))
    }

    pub(super) fn write_file(&self, path: &str, content: &str) -> Result<Value, String> {
        check_length(path, content.len())?;
        let below = below_files(path)?;
        let _room = self
            .0
            .incoming
            .room(Kind::of(&below), self.folder(), content.len())
            .map_err(|error| error.to_string())?;
        let before = make_and_open(self.folder())
            .and_then(|folder| folder.replace(&below, content.as_bytes()))
            .map_err(|error| refuse(path, &error))?;
        let data = json!({ "operation": operation(before), "path": path });
        self.emit("session.workspace_file_changed", data);
        Ok(Value::Null)
    }

    /// Writes a long result into a file of its own, named after its call.
    pub(super) fn keep_result(&self, call: &str, text: &str) -> Result<PathBuf, KeepError> {
        let _room = self.0.incoming.room(Kind::Results, self.folder(), text.len())?;
        let folder = Path::new(FILES).join(RESULTS);
        let session = make_and_open(self.folder())?;
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String = call.chars().map(plain).take(MAX_NAME_CHARS).collect();
        let mut path = folder.join(format!("{name}.txt"));
        for number in 2.. {
            match session.create(&path, text.as_bytes()) {
                Ok(()) => break,
                Err(error) if error.is_taken() => {
                    path = folder.join(format!("{name}-{number}.txt"));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.folder().join(path))
    }

    /// Keeps what extensions said about the session for whoever looks at it later.
    pub(super) fn keep_summary(&self, end: &SessionEnd) {
        if !self.0.options.record || (end.summaries.is_empty() && end.cleanup.is_empty()) {
            return;
        }
        let summary = json!({
            "reason": end.reason,
            "summaries": end.summaries,
            "cleanupActions": end.cleanup,
        });
        let path = self.folder().join("summary.json");
        let written = make_and_open(self.folder()).and_then(|folder| {
            folder.replace(Path::new("summary.json"), format!("{summary:#}\n").as_bytes())
        });
        if let Err(error) = written {
            let message = format!("{} cannot be written: {error}", path.display());
            let data = json!({ "warningType": "summary_not_kept", "message": message });
            self.emit("session.warning", data);
        }
    }

    /// Adds to what the session has cost so far, by model.
    pub(super) fn count_usage(&self, data: &Value) {
        let model = data["model"].as_str().unwrap_or("unknown").to_owned();
        let mut facts = self.facts();
        let tokens = |field: &str| data[field].as_u64().unwrap_or(0);
        facts.last_tokens = (tokens("inputTokens"), tokens("outputTokens"));
        let entry = &mut facts.usage[&model];
        if entry.is_null() {
            let usage = json!({
                "inputTokens": 0,
                "outputTokens": 0,
                "cacheReadTokens": 0,
                "cacheWriteTokens": 0,
            });
            *entry = json!({ "requests": { "count": 0, "cost": 0 }, "usage": usage });
        }
        let add = |value: &mut Value, more: f64| {
            let sum = value.as_f64().unwrap_or(0.0) + more;
            *value = if sum.fract() == 0.0 { json!(sum as u64) } else { json!(sum) };
        };
        add(&mut entry["requests"]["count"], 1.0);
        add(&mut entry["requests"]["cost"], data["cost"].as_f64().unwrap_or(0.0));
        for field in ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"] {
            if let Some(tokens) = data[field].as_f64() {
                add(&mut entry["usage"][field], tokens);
            }
        }
    }
}

/// A path below the folder `files`, from the session's folder.
fn below_files(path: &str) -> Result<PathBuf, String> {
    let inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    if path.is_empty() || !inside {
        return Err(format!("{path:?} is not a path below the session's files"));
    }
    Ok(Path::new(FILES).join(path))
}

fn refuse(path: &str, error: &BeneathError) -> String {
    match error {
        BeneathError::Link(_) => format!("{path:?} leads out of the session's files: {error}"),
        error => format!("{path}: {error}"),
    }
}

fn operation(before: Before) -> &'static str {
    match before {
        Before::Nothing => "create",
        Before::File => "update",
    }
}

fn make_and_open(folder: &Path) -> Result<Beneath, BeneathError> {
    std::fs::create_dir_all(folder)?;
    Ok(Beneath::open(folder)?)
}

fn check_length(what: &str, bytes: usize) -> Result<(), String> {
    if bytes > MAX_FILE_BYTES {
        return Err(format!("{what} is longer than {MAX_FILE_BYTES} bytes"));
    }
    Ok(())
}
