//! What a session keeps in its folder beside its events: the plan, files, and its summary.

use std::path::Component;
use std::path::Path;
use std::path::PathBuf;

use serde_json::Value;
use serde_json::json;

use super::Session;
use crate::hooks::lifecycle::SessionEnd;

/// The largest file that is read or written through the session.
pub const MAX_FILE_BYTES: usize = 16 * 1024 * 1024;

impl Session {
    pub(super) fn plan_path(&self) -> PathBuf {
        self.folder().join("plan.md")
    }

    pub(super) fn read_plan(&self) -> Result<Value, String> {
        let path = self.plan_path();
        match std::fs::read_to_string(&path) {
            Ok(content) => Ok(json!({ "exists": true, "content": content, "path": path })),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(json!({ "exists": false, "content": null, "path": path }))
            }
            Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
        }
    }

    pub(super) fn write_plan(&self, content: &str) -> Result<Value, String> {
        check_length("the plan", content.len() as u64)?;
        let path = self.plan_path();
        let operation = if path.exists() { "update" } else { "create" };
        write(&path, content)?;
        self.emit("session.plan_changed", json!({ "operation": operation }));
        Ok(Value::Null)
    }

    pub(super) fn delete_plan(&self) -> Result<Value, String> {
        let path = self.plan_path();
        match std::fs::remove_file(&path) {
            Ok(()) => self.emit("session.plan_changed", json!({ "operation": "delete" })),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Value::Null),
            Err(error) => return Err(format!("{} cannot be deleted: {error}", path.display())),
        };
        Ok(Value::Null)
    }

    /// The files of the session, by their paths below its folder `files`.
    pub(super) fn list_files(&self) -> Value {
        let root = self.folder().join("files");
        let files: Vec<_> = walkdir::WalkDir::new(&root)
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
        let full = self.file_path(path)?;
        let file = std::fs::metadata(&full).map_err(|error| format!("{path}: {error}"))?;
        if !file.is_file() {
            return Err(format!("{path} is not a file"));
        }
        check_length(path, file.len())?;
        let content = std::fs::read_to_string(&full).map_err(|error| format!("{path}: {error}"))?;
        Ok(json!({ "content": content }))
    }

    pub(super) fn write_file(&self, path: &str, content: &str) -> Result<Value, String> {
        check_length(path, content.len() as u64)?;
        let full = self.file_path(path)?;
        let operation = if full.exists() { "update" } else { "create" };
        write(&full, content)?;
        let data = json!({ "operation": operation, "path": path });
        self.emit("session.workspace_file_changed", data);
        Ok(Value::Null)
    }

    /// A path below the folder `files`; nothing leads out of it.
    fn file_path(&self, path: &str) -> Result<PathBuf, String> {
        let relative = Path::new(path);
        let inside = relative.components().all(|part| matches!(part, Component::Normal(_)));
        if path.is_empty() || !inside {
            return Err(format!("{path:?} is not a path below the session's files"));
        }
        let root = self.folder().join("files");
        let full = root.join(relative);
        // Links may have been put there by anybody.
        let existing = full.ancestors().find_map(|path| std::fs::canonicalize(path).ok());
        let real_root = std::fs::canonicalize(&root);
        if let (Some(existing), Ok(real_root)) = (existing, real_root)
            && !existing.starts_with(&real_root)
        {
            return Err(format!("{path:?} leads out of the session's files"));
        }
        Ok(full)
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
        if let Err(message) = write(&path, &format!("{summary:#}\n")) {
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

fn check_length(what: &str, bytes: u64) -> Result<(), String> {
    if bytes > MAX_FILE_BYTES as u64 {
        return Err(format!("{what} is longer than {MAX_FILE_BYTES} bytes"));
    }
    Ok(())
}

fn write(path: &Path, content: &str) -> Result<(), String> {
    replace(path, content.as_bytes())
        .map_err(|error| format!("{} cannot be written: {error}", path.display()))
}

/// Writes a file beside its place and moves it there, so that a crash leaves the old or the new one and
/// two writers leave one of theirs.
pub(super) fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}.new", crate::ids::unique()));
    std::fs::write(&beside, content)?;
    std::fs::rename(&beside, path).inspect_err(|_| {
        // What cannot be moved is of no use; that it cannot be removed either changes nothing.
        let _ = std::fs::remove_file(&beside);
    })
}
