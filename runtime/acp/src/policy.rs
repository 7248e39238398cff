//! What the person has permitted in advance, before anybody is asked.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tenon_host::front::Decision;
use tenon_host::front::Elicitation;
use tenon_host::front::ElicitationAnswer;
use tenon_host::front::Front;
use tenon_host::front::FrontCapabilities;
use tenon_host::front::OpenCanvas;
use tenon_host::front::Question;
use tenon_host::front::UserAnswer;

use crate::config::PermissionMode;
use crate::vocabulary;

/// The kinds of requests that only a person answers, whatever was permitted: they widen what extensions may do.
const FOR_THE_PERSON: &[&str] =
    &["extension-management", "extension-env-access", "extension-review"];

/// Answers what the policy decides, and asks the front for the rest.
pub struct PolicyFront {
    policy: Arc<Policy>,
    front: Option<Arc<dyn Front>>,
}

struct Policy {
    mode: PermissionMode,
    /// The workspace: what is read without asking, if reading is approved.
    roots: Vec<PathBuf>,
}

impl PolicyFront {
    /// A front with a policy before it. The first of the roots is the working directory.
    pub fn new(mode: PermissionMode, roots: Vec<PathBuf>, front: Option<Arc<dyn Front>>) -> Self {
        let resolve = |root: PathBuf| std::fs::canonicalize(&root).unwrap_or(root);
        let policy = Policy { mode, roots: roots.into_iter().map(resolve).collect() };
        Self { policy: Arc::new(policy), front }
    }
}

impl Policy {
    /// Whether something is read in the workspace, and nothing elsewhere.
    fn reads_inside(&self, request: &Value) -> bool {
        let inside = |path: &Value| path.as_str().is_some_and(|path| self.is_inside(path));
        let all_inside = match request["fileNames"].as_array() {
            Some(paths) => !paths.is_empty() && paths.iter().all(inside),
            None => inside(&request["path"]),
        };
        vocabulary::is_read(request) && all_inside
    }

    /// Whether a path is in the workspace. Links count as where they lead.
    fn is_inside(&self, path: &str) -> bool {
        let Some(cwd) = self.roots.first() else { return false };
        // Where something is read that does not say where, or says it in the words of a shell, is not known.
        !path.is_empty()
            && !path.starts_with('~')
            && resolved(&cwd.join(path))
                .is_some_and(|path| self.roots.iter().any(|root| path.starts_with(root)))
    }

    /// Whether links have to be followed on disk to decide.
    fn follows_links(&self, request: &Value) -> bool {
        self.mode == PermissionMode::ApproveReads && vocabulary::is_read(request)
    }

    /// What the policy says by itself. This blocks if it [follows links](Self::follows_links).
    fn decides(&self, request: &Value) -> Option<Decision> {
        let kind = request["kind"].as_str().unwrap_or_default();
        // An extension wants the person to be asked.
        let asked_for = kind == "hook" || request.get("hookMessage").is_some();
        match self.mode {
            PermissionMode::DenyAll => {
                Some(Decision::reject("the permission mode is deny-all".to_owned()))
            }
            _ if asked_for || FOR_THE_PERSON.contains(&kind) => None,
            PermissionMode::ApproveAll => Some(Decision::approve()),
            PermissionMode::ApproveReads if self.reads_inside(request) => Some(Decision::approve()),
            PermissionMode::ApproveReads | PermissionMode::Ask => None,
        }
    }
}

/// Where a path leads; for what does not exist, where its nearest folder does.
fn resolved(path: &Path) -> Option<PathBuf> {
    if path.components().any(|part| part == std::path::Component::ParentDir) {
        // Only the file system knows what `..` of a link is.
        return std::fs::canonicalize(path).ok();
    }
    path.ancestors().find_map(|ancestor| {
        let known = std::fs::canonicalize(ancestor).ok()?;
        Some(known.join(path.strip_prefix(ancestor).ok()?))
    })
}

#[async_trait]
impl Front for PolicyFront {
    fn capabilities(&self) -> FrontCapabilities {
        self.front.as_ref().map(|front| front.capabilities()).unwrap_or_default()
    }

    async fn request_permission(&self, request: &Value) -> Option<Decision> {
        let decided = if self.policy.follows_links(request) {
            let (policy, request) = (self.policy.clone(), request.clone());
            let deciding = tokio::task::spawn_blocking(move || policy.decides(&request));
            // What cannot be decided is asked.
            deciding.await.ok().flatten()
        } else {
            self.policy.decides(request)
        };
        if decided.is_some() {
            return decided;
        }
        self.front.as_ref()?.request_permission(request).await
    }

    async fn elicit(&self, request: &Elicitation) -> Option<ElicitationAnswer> {
        self.front.as_ref()?.elicit(request).await
    }

    async fn ask_user(&self, question: &Question) -> Option<UserAnswer> {
        self.front.as_ref()?.ask_user(question).await
    }

    async fn ask_other(&self, handler: &str, request: &Value) -> Option<Value> {
        self.front.as_ref()?.ask_other(handler, request).await
    }

    async fn show_canvas(&self, canvas: &OpenCanvas) {
        if let Some(front) = &self.front {
            front.show_canvas(canvas).await;
        }
    }

    async fn close_canvas(&self, instance: &str) {
        if let Some(front) = &self.front {
            front.close_canvas(instance).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decides(mode: PermissionMode, request: Value) -> Option<bool> {
        let roots = vec![PathBuf::from("/a")];
        PolicyFront::new(mode, roots, None).policy.decides(&request).map(|it| it.is_approved())
    }

    #[test]
    fn only_reading_in_the_workspace_is_approved_in_advance() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(folder.path().join("outside"), "").unwrap();
        std::os::unix::fs::symlink(folder.path().join("outside"), root.join("link")).unwrap();
        let roots = vec![root.clone()];
        let policy = PolicyFront::new(PermissionMode::ApproveReads, roots, None).policy;
        let approves =
            |path: &str| policy.decides(&json!({ "kind": "read", "path": path })).is_some();
        assert!(approves(&root.join("new").to_string_lossy()));
        assert!(approves("*.rs"));
        assert!(!approves("link"));
        assert!(!approves("../outside"));
        assert!(!approves("/etc/passwd"));
        assert!(!approves("~/.ssh/id_rsa"));
        assert!(!approves(""));
        let approves_all = |paths: Value| {
            let request = json!({ "kind": "read", "path": "new", "fileNames": paths });
            policy.decides(&request).is_some()
        };
        assert!(approves_all(json!(["new", "*.rs"])));
        assert!(!approves_all(json!(["new", "/etc/passwd"])));
        assert!(!approves_all(json!(["new", ""])));
        assert!(!approves_all(json!(["new", null])));
        assert!(!approves_all(json!([])));
    }

    #[test]
    fn each_mode_decides_what_it_says() {
        let read = || json!({ "kind": "read", "path": "/a/b" });
        let shell = || json!({ "kind": "shell", "fullCommandText": "ls" });
        assert_eq!(decides(PermissionMode::DenyAll, read()), Some(false));
        assert_eq!(decides(PermissionMode::ApproveReads, read()), Some(true));
        assert_eq!(decides(PermissionMode::ApproveReads, shell()), None);
        assert_eq!(decides(PermissionMode::ApproveAll, shell()), Some(true));
        assert_eq!(decides(PermissionMode::Ask, read()), None);
    }

    #[test]
    fn what_an_extension_wants_asked_is_asked_even_if_all_is_approved() {
        let asked = json!({ "kind": "shell", "hookMessage": "careful", "extensionName": "user:x" });
        assert_eq!(decides(PermissionMode::ApproveAll, asked), None);
        assert_eq!(decides(PermissionMode::ApproveAll, json!({ "kind": "hook" })), None);
        let manage = json!({ "kind": "extension-management" });
        assert_eq!(decides(PermissionMode::ApproveAll, manage.clone()), None);
        assert_eq!(decides(PermissionMode::DenyAll, manage), Some(false));
        let review = json!({ "kind": "extension-review" });
        assert_eq!(decides(PermissionMode::ApproveAll, review), None);
    }
}
