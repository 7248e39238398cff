//! The session's own tools: for canvases, and for managing extensions.

use std::sync::LazyLock;

use serde_json::Value;

use super::Session;
use super::canvas_tools;
use super::manage_tools;
use crate::tool::SharedTool;
use crate::tool::ToolDeclaration;
use crate::tool::ToolResult;

/// Those that manage extensions.
static MANAGE_TOOLS: LazyLock<Vec<SharedTool>> =
    LazyLock::new(|| shared(manage_tools::manage_tool_declarations()));

/// Those for canvases.
static CANVAS_TOOLS: LazyLock<Vec<SharedTool>> =
    LazyLock::new(|| shared(canvas_tools::declarations()));

fn shared(tools: Vec<ToolDeclaration>) -> Vec<SharedTool> {
    tools.into_iter().map(SharedTool::from).collect()
}

/// Whether a tool of this name is the session's own.
pub fn is_own(name: &str) -> bool {
    canvas_tools::NAMES.contains(&name) || manage_tools::NAMES.contains(&name)
}

impl Session {
    /// The session's own tools, those that are there now.
    pub(super) fn own_tools(&self) -> impl Iterator<Item = &'static SharedTool> {
        let manage = self.0.options.manage_tools.then(|| MANAGE_TOOLS.iter());
        let canvas = self.has_canvases().then(|| CANVAS_TOOLS.iter());
        manage.into_iter().flatten().chain(canvas.into_iter().flatten())
    }

    /// The session's own tool of that name, if it is there now.
    pub(super) fn own_tool(&self, name: &str) -> Option<&'static SharedTool> {
        // Most tools are those of extensions: the lock is not taken to find that out.
        if !is_own(name) {
            return None;
        }
        self.own_tools().find(|tool| tool.name == name)
    }

    /// Runs one of them.
    pub(super) async fn call_own_tool(&self, name: &str, args: &Value) -> ToolResult {
        if manage_tools::NAMES.contains(&name) {
            // It may call a tool itself, which makes its future one that contains itself.
            Box::pin(self.call_manage_tool(name, args)).await
        } else {
            self.call_canvas_tool(name, args).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::SessionOptions;

    fn session(manage_tools: bool) -> (Session, tempfile::TempDir) {
        let temp = tempfile::tempdir().unwrap();
        let options = SessionOptions::new(temp.path().join("cwd"), temp.path().join("home"));
        (Session::new(SessionOptions { manage_tools, ..options }).unwrap(), temp)
    }

    #[tokio::test]
    async fn a_tool_of_the_session_is_found_by_its_name_and_never_copied() {
        let (session, _temp) = session(true);
        for name in manage_tools::NAMES {
            assert!(session.has_tool(name));
            assert_eq!(session.tool_owner(name), None);
            let listed = session.tools().into_iter().find(|it| it.tool.name == name).unwrap();
            assert!(std::ptr::eq(&*listed.tool, &**session.own_tool(name).unwrap()));
        }
        assert!(session.tool_has_parameter(manage_tools::NAMES[0], "operation"));
        assert!(!session.tool_has_parameter(manage_tools::NAMES[0], "nothing"));
        assert!(!session.tool_has_parameter(manage_tools::RELOAD_TOOL, "operation"));
    }

    #[tokio::test]
    async fn a_tool_that_is_not_there_now_is_not_found() {
        let (session, _temp) = session(false);
        for name in manage_tools::NAMES.iter().chain(&canvas_tools::NAMES) {
            assert!(is_own(name) && !session.has_tool(name), "{name}");
        }
        assert!(!session.has_tool("other") && !session.tool_has_parameter("other", "x"));
        assert!(session.tools().is_empty());
    }
}
