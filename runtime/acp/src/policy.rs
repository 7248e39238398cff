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
use tenon_protocol::permission::AgentAction;
use tenon_protocol::permission::AgentRequest;
use tenon_protocol::permission::PermissionRequest;

use crate::config::PermissionMode;

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
    fn reads_inside(&self, request: &PermissionRequest) -> bool {
        let PermissionRequest::Agent(AgentRequest { action, file_names, .. }) = request else {
            return false;
        };
        let AgentAction::Read { path, .. } = action else { return false };
        match file_names {
            Some(paths) => !paths.is_empty() && paths.iter().all(|path| self.is_inside(path)),
            None => self.is_inside(path),
        }
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
    fn follows_links(&self, request: &PermissionRequest) -> bool {
        let reads = matches!(
            request,
            PermissionRequest::Agent(AgentRequest { action: AgentAction::Read { .. }, .. })
        );
        self.mode == PermissionMode::ApproveReads && reads
    }

    /// What the policy says by itself. This blocks if it [follows links](Self::follows_links).
    fn decides(&self, request: &PermissionRequest) -> Option<Decision> {
        match self.mode {
            PermissionMode::DenyAll => {
                Some(Decision::reject("the permission mode is deny-all".to_owned()))
            }
            _ if is_for_the_person(request) => None,
            PermissionMode::ApproveAll => Some(Decision::approve()),
            PermissionMode::ApproveReads if self.reads_inside(request) => Some(Decision::approve()),
            PermissionMode::ApproveReads | PermissionMode::Ask => None,
        }
    }
}

/// Whether only a person answers a request, whatever was permitted.
fn is_for_the_person(request: &PermissionRequest) -> bool {
    match request {
        PermissionRequest::CustomTool { .. } => false,
        // An extension wants the person to be asked.
        PermissionRequest::Hook { .. } => true,
        PermissionRequest::Agent(request) => request.asked_by.is_some(),
        // They widen what extensions may do.
        PermissionRequest::ExtensionManagement { .. }
        | PermissionRequest::ExtensionEnvAccess { .. }
        | PermissionRequest::ExtensionReview { .. } => true,
        // A person who permitted everything did not know that this could be asked.
        PermissionRequest::Other(_) => true,
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

    async fn request_permission(&self, request: &PermissionRequest) -> Option<Decision> {
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
    use tenon_protocol::json::Json;
    use tenon_protocol::permission::AskedBy;
    use tenon_protocol::permission::Switch;

    use super::*;

    fn decides(mode: PermissionMode, request: &PermissionRequest) -> Option<bool> {
        let roots = vec![PathBuf::from("/a")];
        PolicyFront::new(mode, roots, None).policy.decides(request).map(|it| it.is_approved())
    }

    fn read(path: &str) -> AgentRequest {
        let action = AgentAction::Read { path: path.to_owned(), intention: String::new() };
        AgentRequest::new(action, "c1")
    }

    fn shell() -> AgentRequest {
        let action = AgentAction::Shell {
            full_command_text: "ls".to_owned(),
            intention: String::new(),
            possible_paths: Vec::new(),
            has_write_file_redirection: false,
        };
        AgentRequest::new(action, "c1")
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
        let approves = |path: &str| policy.decides(&PermissionRequest::Agent(read(path))).is_some();
        assert!(approves(&root.join("new").to_string_lossy()));
        assert!(approves("*.rs"));
        assert!(!approves("link"));
        assert!(!approves("../outside"));
        assert!(!approves("/etc/passwd"));
        assert!(!approves("~/.ssh/id_rsa"));
        assert!(!approves(""));
        let approves_all = |paths: &[&str]| {
            let file_names = Some(paths.iter().map(|path| (*path).to_owned()).collect());
            let request = AgentRequest { file_names, ..read("new") };
            policy.decides(&PermissionRequest::Agent(request)).is_some()
        };
        assert!(approves_all(&["new", "*.rs"]));
        assert!(!approves_all(&["new", "/etc/passwd"]));
        assert!(!approves_all(&["new", ""]));
        assert!(!approves_all(&[]));
    }

    #[test]
    fn each_mode_decides_what_it_says() {
        let read = PermissionRequest::Agent(read("/a/b"));
        let shell = PermissionRequest::Agent(shell());
        assert_eq!(decides(PermissionMode::DenyAll, &read), Some(false));
        assert_eq!(decides(PermissionMode::ApproveReads, &read), Some(true));
        assert_eq!(decides(PermissionMode::ApproveReads, &shell), None);
        assert_eq!(decides(PermissionMode::ApproveAll, &shell), Some(true));
        assert_eq!(decides(PermissionMode::Ask, &read), None);
    }

    #[test]
    fn what_an_extension_wants_asked_is_asked_even_if_all_is_approved() {
        for hook_message in [Some("careful".to_owned()), None] {
            let extension_name = "user:x".to_owned();
            let asked_by = Some(AskedBy { hook_message, extension_name });
            let asked = PermissionRequest::Agent(AgentRequest { asked_by, ..shell() });
            assert_eq!(decides(PermissionMode::ApproveAll, &asked), None);
        }
        let hook = PermissionRequest::Hook {
            tool_call_id: "c1".to_owned(),
            tool_name: "deploy".to_owned(),
            tool_args: Json::default(),
            hook_message: None,
            extension_name: "user:x".to_owned(),
        };
        assert_eq!(decides(PermissionMode::ApproveAll, &hook), None);
    }

    #[test]
    fn what_widens_an_extensions_reach_is_asked_even_if_all_is_approved() {
        let manage = PermissionRequest::ExtensionManagement {
            tool_call_id: "c1".to_owned(),
            operation: Switch::Disable,
            extension_name: None,
        };
        let secrets = PermissionRequest::ExtensionEnvAccess {
            extension_name: "user:x".to_owned(),
            environment_variables: vec!["TOKEN".to_owned()],
        };
        let review = PermissionRequest::ExtensionReview {
            intention: String::new(),
            extension_name: "user:x".to_owned(),
            path: String::new(),
            hash: String::new(),
        };
        let unknown = PermissionRequest::Other(json!({ "kind": "read", "path": "/a/b" }));
        for request in [manage, secrets, review, unknown] {
            assert_eq!(decides(PermissionMode::ApproveAll, &request), None, "{request:?}");
            assert_eq!(decides(PermissionMode::ApproveReads, &request), None, "{request:?}");
            assert_eq!(decides(PermissionMode::DenyAll, &request), Some(false), "{request:?}");
        }
    }
}
