//! The tools with which an agent uses canvases. They are there when a canvas is.

use serde_json::Value;
use serde_json::json;

use super::Session;
use super::canvas::CanvasFault;
use super::canvas::OpenCanvasRequest;
use crate::tool::ToolDeclaration;
use crate::tool::ToolResult;
use crate::tool::text;

/// Their names.
pub const NAMES: [&str; 3] = ["list_canvas_capabilities", "open_canvas", "invoke_canvas_action"];

/// The tools, as the agent sees them.
pub fn declarations() -> Vec<ToolDeclaration> {
    let [list, open, act] = NAMES;
    vec![
        ToolDeclaration::of_session(
            list,
            "Lists the canvases (live pages shown beside the conversation) that can be opened, \
                 with the input each takes and its actions, and those that are open.",
            &[],
            json!({ "canvasId": text("Only this canvas") }),
        ),
        ToolDeclaration::of_session(
            open,
            "Opens a canvas and shows it to the person. With the instanceId of an open canvas it \
                 is brought to the front.",
            &["canvasId"],
            json!({
                "canvasId": text("The canvas, from list_canvas_capabilities"),
                "extensionId": text("Its extension, if several have a canvas of that name"),
                "instanceId": text("A name for this instance, to be used in later calls"),
                "input": { "description": "What it is opened with; see its inputSchema" },
            }),
        ),
        ToolDeclaration::of_session(
            act,
            "Does something with an open canvas.",
            &["instanceId", "actionName"],
            json!({
                "instanceId": text("The open canvas"),
                "actionName": text("The action, from list_canvas_capabilities"),
                "input": { "description": "The action's input; see its inputSchema" },
            }),
        ),
    ]
}

impl Session {
    /// Runs one of them.
    pub(super) async fn call_canvas_tool(&self, name: &str, args: &Value) -> ToolResult {
        let text = |field: &str| args[field].as_str().unwrap_or_default();
        let input = args.get("input").filter(|input| !input.is_null()).cloned();
        let outcome = match name {
            "list_canvas_capabilities" => Ok(self.capabilities_of(args["canvasId"].as_str())),
            "open_canvas" => match serde_json::from_value::<OpenCanvasRequest>(args.clone()) {
                Ok(request) => self.open_canvas(OpenCanvasRequest { input, ..request }).await.map(
                    // Plain data always has a JSON form.
                    |open| serde_json::to_value(open).unwrap_or_default(),
                ),
                Err(error) => Err(CanvasFault::new("canvas_input_invalid", error.to_string())),
            },
            _ => self.invoke_canvas_action(text("instanceId"), text("actionName"), input).await,
        };
        match outcome {
            Ok(Value::String(text)) => ToolResult::success(text),
            Ok(value) => ToolResult::success(value.to_string()),
            Err(fault) => ToolResult::failure(fault.to_string()),
        }
    }

    fn capabilities_of(&self, canvas: Option<&str>) -> Value {
        let wanted = |id: &str| canvas.is_none_or(|canvas| canvas == id);
        let canvases: Vec<_> =
            self.canvases().into_iter().filter(|listing| wanted(&listing.canvas_id)).collect();
        let open: Vec<_> =
            self.open_canvases().into_iter().filter(|open| wanted(&open.canvas_id)).collect();
        json!({ "canvases": canvases, "openCanvases": open })
    }
}
