//! Canvases: pages that an extension serves, opened, used and closed through its owner.

use parking_lot::MutexGuard;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use serde_json::json;
use tenon_protocol::message::CallKind;
use tenon_protocol::message::LogLevel;
use url::Url;

use super::Session;
use crate::extension::CanvasDeclaration;
use crate::extensions::Key;
use crate::extensions::id_of;
use crate::front::Front;
use crate::front::OpenCanvas;
use crate::schema::Schema;

/// Something about a canvas did not work: a code an agent can act on, and words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{code}: {message}")]
pub struct CanvasFault {
    /// Such as `canvas_not_found`, or the code of the extension's `CanvasError`.
    pub code: String,
    /// What went wrong.
    pub message: String,
}

impl CanvasFault {
    pub(super) fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }
}

/// Which canvas to open, and with what.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenCanvasRequest {
    /// The canvas.
    pub canvas_id: String,
    /// Whose canvas; needed if several extensions have one of that name.
    #[serde(default)]
    pub extension_id: Option<String>,
    /// Names the instance; the name of one that is open brings it to the front.
    #[serde(default)]
    pub instance_id: Option<String>,
    /// What it is opened with.
    #[serde(default)]
    pub input: Option<Value>,
}

/// A canvas and whose it is.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CanvasListing {
    /// `scope:name` of its extension.
    pub extension_id: String,
    /// The extension's name.
    pub extension_name: String,
    /// Unique within the extension.
    pub canvas_id: String,
    /// The canvas as it was declared.
    #[serde(flatten)]
    pub canvas: CanvasDeclaration,
}

impl Session {
    /// Every canvas that can be opened.
    pub fn canvases(&self) -> Vec<CanvasListing> {
        let table = self.0.extensions.lock();
        let loaded = table.values().filter(|extension| extension.is_loaded());
        loaded
            .flat_map(|extension| {
                let info = extension.info();
                info.canvases.iter().map(|canvas| CanvasListing {
                    extension_id: info.id.clone(),
                    extension_name: info.name.clone(),
                    canvas_id: canvas.id.clone(),
                    canvas: canvas.clone(),
                })
            })
            .collect()
    }

    /// Whether there is a canvas that can be opened.
    pub fn has_canvases(&self) -> bool {
        let table = self.0.extensions.lock();
        table.values().any(|it| it.is_loaded() && !it.info().canvases.is_empty())
    }

    /// The canvases that are open, oldest first.
    pub fn open_canvases(&self) -> Vec<OpenCanvas> {
        self.open_list().clone()
    }

    /// Opens a canvas, or brings it to the front, and shows it.
    pub async fn open_canvas(&self, request: OpenCanvasRequest) -> Result<OpenCanvas, CanvasFault> {
        let listing = self.declared(&request)?;
        check_input(listing.canvas.input_schema.as_ref(), request.input.as_ref())?;
        let instance_id = request.instance_id.unwrap_or_else(crate::ids::unique);
        let taken = self.open_list().iter().find(|open| open.instance_id == instance_id).cloned();
        if taken.is_some_and(|open| {
            open.canvas_id != listing.canvas_id || open.extension_id != listing.extension_id
        }) {
            let message = format!("the instance \"{instance_id}\" is another canvas");
            return Err(CanvasFault::new("canvas_instance_taken", message));
        }
        let mut open = OpenCanvas {
            instance_id,
            extension_id: listing.extension_id,
            extension_name: listing.extension_name,
            canvas_id: listing.canvas_id,
            title: None,
            status: None,
            url: None,
            input: request.input,
        };
        let answer = self.call_canvas(&open, "open", json!({})).await?;
        let text = |field: &str| answer[field].as_str().map(str::to_owned);
        open.title = text("title").or(Some(listing.canvas.display_name));
        open.status = text("status");
        open.url = text("url");
        if let Some(url) = open.url.as_deref().filter(|url| !is_page(url)) {
            let message = format!(
                "the canvas \"{}\" opened with the address {url:?}; only http and https addresses can be shown",
                open.canvas_id
            );
            return Err(CanvasFault::new("canvas_url_invalid", message));
        }
        {
            let mut list = self.open_list();
            list.retain(|other| other.instance_id != open.instance_id);
            list.push(open.clone());
        }
        self.emit_ephemeral("session.canvas.opened", as_json(&open));
        if let Some(front) = self.canvas_front() {
            front.show_canvas(&open).await;
        }
        Ok(open)
    }

    /// Does something with an open canvas.
    pub async fn invoke_canvas_action(
        &self,
        instance: &str,
        action: &str,
        input: Option<Value>,
    ) -> Result<Value, CanvasFault> {
        let open = self.opened(instance)?;
        let of = OpenCanvasRequest {
            canvas_id: open.canvas_id.clone(),
            extension_id: Some(open.extension_id.clone()),
            ..OpenCanvasRequest::default()
        };
        let listing = self.declared(&of)?;
        let declared = listing.canvas.actions.iter().find(|declared| declared.name == action);
        let Some(declared) = declared else {
            let known: Vec<_> =
                listing.canvas.actions.iter().map(|action| action.name.as_str()).collect();
            let message = format!(
                "the canvas \"{}\" has no action \"{action}\"; it has: {}",
                open.canvas_id,
                known.join(", ")
            );
            return Err(CanvasFault::new("canvas_action_not_found", message));
        };
        check_input(declared.input_schema.as_ref(), input.as_ref())?;
        let mut details = json!({ "actionName": action });
        if let Some(input) = input {
            details["input"] = input;
        }
        self.call_canvas(&open, "action", details).await
    }

    /// Closes a canvas. What its owner throws is in the owner's log; the canvas is closed.
    pub async fn close_canvas(&self, instance: &str) -> Result<(), CanvasFault> {
        let open = self.opened(instance)?;
        self.open_list().retain(|other| other.instance_id != instance);
        if let Err(fault) = self.call_canvas(&open, "close", json!({})).await
            && let Some(peer) = self.0.extensions.loaded(&open.extension_id)
        {
            let text = format!("closing the canvas \"{}\" failed: {fault}", open.canvas_id);
            self.0.extensions.note(&peer.key, LogLevel::Error, text);
        }
        self.announce_close("session.canvas.closed", &open);
        if let Some(front) = self.canvas_front() {
            front.close_canvas(instance).await;
        }
        Ok(())
    }

    /// The owner of open canvases has gone.
    pub(super) fn canvases_unavailable(&self, key: &Key) {
        let id = id_of(key);
        let gone: Vec<_> = {
            let mut list = self.open_list();
            let gone = list.iter().filter(|open| open.extension_id == id).cloned().collect();
            list.retain(|open| open.extension_id != id);
            gone
        };
        if self.facts().ended {
            return;
        }
        for open in &gone {
            self.announce_close("session.canvas.unavailable", open);
            if let Some(front) = self.canvas_front().cloned() {
                let instance = open.instance_id.clone();
                self.0.runtime.spawn(async move { front.close_canvas(&instance).await });
            }
        }
    }

    /// The front, if it can show pages.
    fn canvas_front(&self) -> Option<&Arc<dyn Front>> {
        self.0.options.front.as_ref().filter(|front| front.capabilities().canvases)
    }

    fn announce_close(&self, event: &str, open: &OpenCanvas) {
        let data = json!({
            "instanceId": open.instance_id,
            "canvasId": open.canvas_id,
            "extensionId": open.extension_id,
        });
        self.emit_ephemeral(event, data);
    }

    fn declared(&self, request: &OpenCanvasRequest) -> Result<CanvasListing, CanvasFault> {
        let canvases = self.canvases();
        let wanted = |listing: &&CanvasListing| {
            listing.canvas_id == request.canvas_id
                && request
                    .extension_id
                    .as_ref()
                    .is_none_or(|id| *id == listing.extension_id || *id == listing.extension_name)
        };
        let found: Vec<_> = canvases.iter().filter(wanted).collect();
        match found.as_slice() {
            [one] => Ok((*one).clone()),
            [] => {
                let known: Vec<_> = canvases
                    .iter()
                    .map(|it| format!("{} of {}", it.canvas_id, it.extension_id))
                    .collect();
                let of = match &request.extension_id {
                    Some(id) => format!(" of {id}"),
                    None => String::new(),
                };
                let message = format!(
                    "there is no canvas \"{}\"{of}; there are: {}",
                    request.canvas_id,
                    if known.is_empty() { "none".to_owned() } else { known.join(", ") }
                );
                Err(CanvasFault::new("canvas_not_found", message))
            }
            several => {
                let owners: Vec<_> = several.iter().map(|it| it.extension_id.as_str()).collect();
                let message = format!(
                    "several extensions have a canvas \"{}\"; give extensionId: {}",
                    request.canvas_id,
                    owners.join(", ")
                );
                Err(CanvasFault::new("canvas_ambiguous", message))
            }
        }
    }

    fn opened(&self, instance: &str) -> Result<OpenCanvas, CanvasFault> {
        let list = self.open_list();
        list.iter().find(|open| open.instance_id == instance).cloned().ok_or_else(|| {
            let known: Vec<_> = list.iter().map(|open| open.instance_id.as_str()).collect();
            let message = format!(
                "no canvas instance \"{instance}\" is open; open are: {}",
                if known.is_empty() { "none".to_owned() } else { known.join(", ") }
            );
            CanvasFault::new("canvas_instance_not_found", message)
        })
    }

    async fn call_canvas(
        &self,
        open: &OpenCanvas,
        verb: &str,
        details: Value,
    ) -> Result<Value, CanvasFault> {
        let gone = || {
            let message = format!("{} is not loaded any more", open.extension_id);
            CanvasFault::new("canvas_unavailable", message)
        };
        let peer = self.0.extensions.loaded(&open.extension_id).ok_or_else(gone)?;
        let mut request = json!({
            "sessionId": self.id(),
            "extensionId": open.extension_id,
            "canvasId": open.canvas_id,
            "instanceId": open.instance_id,
            "host": { "capabilities": { "canvases": self.capabilities()["ui"]["canvases"] } },
            "session": { "workingDirectory": self.cwd() },
        });
        if verb == "open"
            && let Some(input) = &open.input
        {
            request["input"] = input.clone();
        }
        if let (Some(request), Value::Object(details)) = (request.as_object_mut(), details) {
            request.extend(details);
        }
        let payload = json!({ "verb": verb, "request": request });
        let reply = self.call(&peer, CallKind::Canvas, None, payload.to_string()).await;
        let mut reply = reply
            .map_err(|failure| CanvasFault::new("canvas_handler_error", failure.to_string()))?;
        if let Some(error) = reply.get("error") {
            let text = |field: &str| error[field].as_str().unwrap_or_default().to_owned();
            return Err(CanvasFault { code: text("code"), message: text("message") });
        }
        Ok(reply["result"].take())
    }

    fn open_list(&self) -> MutexGuard<'_, Vec<OpenCanvas>> {
        self.0.canvases.lock()
    }
}

fn as_json(open: &OpenCanvas) -> Value {
    // Plain data always has a JSON form.
    serde_json::to_value(open).unwrap_or_default()
}

/// Whether an input fits its schema. A schema that is none accepts everything.
fn check_input(schema: Option<&Value>, input: Option<&Value>) -> Result<(), CanvasFault> {
    let Some(schema) = schema.and_then(|schema| Schema::new(schema).ok()) else {
        return Ok(());
    };
    let nothing = json!({});
    let problems = schema.problems(input.unwrap_or(&nothing));
    if problems.is_empty() {
        return Ok(());
    }
    Err(CanvasFault::new("canvas_input_invalid", problems.join("; ")))
}

/// Whether an address is that of a page. Others, such as `javascript:` and `file:`, make the program that shows it do or
/// read something.
fn is_page(url: &str) -> bool {
    let parsed = Url::parse(url);
    parsed.is_ok_and(|it| matches!(it.scheme(), "http" | "https"))
        && !url.chars().any(|c| c.is_control() || c.is_whitespace())
}
