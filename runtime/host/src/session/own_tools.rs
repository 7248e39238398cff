//! The session's own tools: for canvases, and for managing extensions.

use serde_json::Value;

use super::Session;
use super::canvas_tools;
use super::manage_tools;
use crate::tool::ToolDeclaration;
use crate::tool::ToolResult;

/// Whether a tool of this name is the session's own.
pub fn is_own(name: &str) -> bool {
    canvas_tools::NAMES.contains(&name) || manage_tools::NAMES.contains(&name)
}

impl Session {
    /// The session's own tools, those that are there now.
    pub(super) fn own_tools(&self) -> Vec<ToolDeclaration> {
        let mut tools = Vec::new();
        if self.0.options.manage_tools {
            tools.extend(manage_tools::manage_tool_declarations());
        }
        if !self.canvases().is_empty() {
            tools.extend(canvas_tools::declarations());
        }
        tools
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
