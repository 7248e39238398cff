//! The tools with which an agent makes extensions and looks after them.

mod report;
mod text;

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use serde_json::json;
use tenon_protocol::permission::Switch;

use super::PermissionCheck;
use super::Session;
use super::ToolCall;
use crate::discovery;
use crate::extension::ExtensionInfo;
use crate::extension::Status;
use crate::logs::MAX_LOG_LINES;
use crate::scaffold;
use crate::scaffold::Kind;
use crate::tool;
use crate::tool::ResultType;
use crate::tool::ToolDeclaration;
use crate::tool::ToolResult;

/// The tool that loads what is on disk.
pub const RELOAD_TOOL: &str = "extensions_reload";

/// Their names.
pub const NAMES: [&str; 2] = ["extensions_manage", RELOAD_TOOL];

/// What [`NAMES`]' first can do.
const OPERATIONS: [&str; 8] =
    ["list", "inspect", "scaffold", "guide", "enable", "disable", "logs", "test"];

/// Where a new extension can be put.
const LOCATIONS: [&str; 3] = ["project", "user", "session"];

/// The newest log lines that are shown if nobody says how many: what happened last, and what led to it.
const LOG_TAIL: usize = 30;

/// All an author has to know.
const GUIDE: &str = include_str!("../../../../docs/guide.md");

/// Why an extension is off that an agent switched off.
const SWITCHED_OFF: &str = "switched off by the agent";

/// What `extensions_manage` is called with.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Args {
    operation: String,
    name: String,
    description: Option<String>,
    location: Option<String>,
    kind: Option<String>,
    tool: Option<String>,
    args: Option<Value>,
    lines: Option<usize>,
}

/// An answer, or what is wrong.
type Answer = Result<String, String>;

/// The tools as an agent is told of them.
pub(super) fn manage_tool_declarations() -> Vec<ToolDeclaration> {
    let one_of = |names: &[&str], description: &str| json!({ "type": "string", "enum": names, "description": description });
    let kinds = Kind::ALL.map(Kind::as_str);
    let [manage, reload] = NAMES;
    vec![
        ToolDeclaration::of_session(
            manage,
            "Makes extensions and looks after them. Extensions are JavaScript or TypeScript files that \
             add tools, hooks, slash commands and canvases to this session. To write one: read the \
             guide, scaffold it, edit the file, call extensions_reload, then use the new tool in the \
             same turn. Errors come as file:line:column with the line they point at; inspect and logs \
             show what an extension wrote, and test loads the files on disk without touching what runs.",
            &["operation"],
            json!({
                "operation": one_of(
                    &OPERATIONS,
                    "list: all extensions. guide: how to write one. scaffold: a new one that works. \
                     inspect: everything about one, with its last error and log. logs: its log. test: \
                     load its files once and report, as a linter would. enable, disable: switch it on \
                     or off",
                ),
                "name": tool::text("The extension, by name or id (project:my-ext); for all but list and guide"),
                "description": tool::text("scaffold: what it is for; becomes a comment"),
                "location": one_of(
                    &LOCATIONS,
                    "scaffold: for this repository (default), for this user everywhere, or for this \
                     session only",
                ),
                "kind": one_of(
                    &kinds,
                    "scaffold: a tool (default), a canvas, hooks, or a tool in TypeScript",
                ),
                "tool": tool::text("test: also call this tool of the running extension"),
                "args": { "type": "object", "description": "test: the arguments of that call" },
                "lines": {
                    "type": "integer",
                    "minimum": 1,
                    "description": format!("logs: how many of the newest (default {LOG_TAIL})"),
                },
            }),
        ),
        ToolDeclaration::of_session(
            reload,
            "Loads all extensions anew from disk; call it after you wrote or changed one. Calls that \
             are running finish first. An extension whose new files do not load goes on with its old \
             ones, and the error says where. New tools can be used at once, in the same turn.",
            &[],
            json!({}),
        ),
    ]
}

/// How a call changes which extensions run, if it does. The person should be asked before it: an agent must not
/// switch off by itself what is there to guard against it.
pub(super) fn switches(name: &str, args: &Value) -> Option<Switch> {
    if name != NAMES[0] {
        return None;
    }
    Switch::deserialize(&args["operation"]).ok()
}

impl Session {
    /// Runs one of them.
    pub(super) async fn call_manage_tool(&self, name: &str, args: &Value) -> ToolResult {
        if name == RELOAD_TOOL {
            return ToolResult::success(self.reload_in_words().await);
        }
        let args = match serde_json::from_value::<Args>(args.clone()) {
            Ok(args) => args,
            Err(error) => return ToolResult::failure(format!("{name}: {error}")),
        };
        match self.manage(args).await {
            Ok(text) => ToolResult::success(text),
            Err(text) => ToolResult::failure(text),
        }
    }

    async fn manage(&self, args: Args) -> Answer {
        let operation = args.operation.as_str();
        match operation {
            "list" => return Ok(text::list(&self.list(), &self.0.places)),
            "guide" => return Ok(GUIDE.to_owned()),
            _ if !OPERATIONS.contains(&operation) => {
                let all = OPERATIONS.join(", ");
                return Err(format!("\"{operation}\" is not an operation; there are: {all}"));
            }
            _ if args.name.is_empty() => return Err(format!("{operation} needs a name")),
            _ => {}
        }
        match operation {
            "scaffold" => self.look(move |session| session.scaffold(&args)).await,
            "inspect" => {
                let info = self.only(&args.name)?;
                Ok(text::inspect(&info, &self.log(&info), LOG_TAIL))
            }
            "logs" => {
                let info = self.only(&args.name)?;
                let lines = args.lines.unwrap_or(LOG_TAIL).clamp(1, MAX_LOG_LINES);
                Ok(text::logs(&info, &self.log(&info), lines))
            }
            "enable" => match self.enable(&args.name).await {
                Ok(info) => Ok(report::switched(&info)),
                Err(error) => Err(error.to_string()),
            },
            "disable" => match self.disable(&args.name, SWITCHED_OFF).await {
                Ok(info) => Ok(report::switched(&info)),
                Err(error) => Err(error.to_string()),
            },
            _ => self.test(&args).await,
        }
    }

    /// Does what reads or writes files where it keeps no task waiting.
    async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Self) -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let looked = self.on_disk(look).await;
        looked.unwrap_or_else(|| Err("the session could not look at its files".to_owned()))
    }

    /// The one extension of that name or id.
    fn only(&self, name: &str) -> Result<ExtensionInfo, String> {
        text::only(self.find(name), name, &self.list())
    }

    /// Loads everything anew and says what came of it.
    async fn reload_in_words(&self) -> String {
        let before = self.tool_names();
        let report = self.reload().await;
        report::reloaded(&report, &before, &self.tool_names(), &self.0.places)
    }

    fn scaffold(&self, args: &Args) -> Answer {
        let kind = args.kind.as_deref().unwrap_or(Kind::Basic.as_str()).parse::<Kind>()?;
        let options = &self.0.options;
        let location = args.location.as_deref().unwrap_or(LOCATIONS[0]);
        let parent = match location {
            "project" => discovery::project_root(&options.cwd).join(".github").join("extensions"),
            "user" => options.user_folders.first().unwrap_or(&options.home).join("extensions"),
            "session" => self.folder().join("extensions"),
            other => {
                let all = LOCATIONS.join(", ");
                return Err(format!("\"{other}\" is not a location; there are: {all}"));
            }
        };
        // A new one must not take the place of another, nor wait in its shadow.
        let is_it = |found: &discovery::Found| {
            found.name == args.name && !found.folder.starts_with(&parent)
        };
        if let Some(found) = discovery::find(&self.0.places, true).into_iter().find(is_it) {
            return Err(format!("{} is there already; choose another name", found.id()));
        }
        let made = scaffold::scaffold(&parent, &args.name, kind, args.description.as_deref())
            .map_err(|error| error.to_string())?;
        // It is Tenon that wrote it, whoever else runs here.
        self.accept_own_work(&made.folder, &made.hash);
        let allowed = options.trusted && !self.0.config.trust.review;
        let runs = location != LOCATIONS[0] || allowed;
        Ok(report::scaffolded(&made, runs))
    }

    /// Loads an extension's files once, beside what runs; and calls one of its tools, if asked to.
    async fn test(&self, args: &Args) -> Answer {
        let name = args.name.clone();
        let (id, folder) = self.look(move |session| session.folder_of(&name)).await?;
        let checked = self.check(&folder).await;
        let answer = report::checked(&id, &folder, &checked);
        if !checked.ok {
            return Err(answer);
        }
        let Some(tool) = &args.tool else { return Ok(answer) };
        match self.try_tool(&id, tool, args.args.clone()).await {
            Ok(text) => Ok(format!("{answer}\n\n{text}")),
            Err(text) => Err(format!("{answer}\n\n{text}")),
        }
    }

    /// The id and folder of an extension on disk, also of one that was made since the last load; unless it
    /// must not run.
    fn folder_of(&self, name: &str) -> Result<(String, PathBuf), String> {
        let mut found = discovery::find(&self.0.places, self.0.options.trusted);
        found.retain(|found| found.name == name || found.id() == name);
        if found.iter().any(|found| found.shadowed_by.is_none()) {
            found.retain(|found| found.shadowed_by.is_none());
        }
        match found.as_slice() {
            [] => Err(text::unknown(name, &self.list())),
            // Looked up anew: what is on disk may not be what was approved.
            [only] if self.obstacle_status(only) == Some(Status::Untrusted) => {
                Err(text::untrusted(&only.id()))
            }
            [only] => Ok((only.id(), only.folder.clone())),
            several => Err(text::several(name, several.iter().map(|found| found.id()))),
        }
    }

    /// Calls a tool of the running extension. What the person would be asked, they are asked here too.
    async fn try_tool(&self, id: &str, tool: &str, args: Option<Value>) -> Answer {
        if self.tool_owner(tool).as_deref() != Some(id) {
            return Err(format!(
                "The running {id} has no tool \"{tool}\"; call extensions_reload first if it is new."
            ));
        }
        let call = ToolCall {
            permission: PermissionCheck::Ask,
            ..ToolCall::new(tool, args.unwrap_or_else(|| json!({})))
        };
        // Boxed: the tool that this is part of was called in the same way.
        let outcome = Box::pin(self.call_tool(call)).await.map_err(|error| error.to_string())?;
        let is_success = outcome.result.result_type == ResultType::Success;
        let text = report::called(tool, outcome);
        if is_success { Ok(text) } else { Err(text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::LARGE_RESULT_BYTES;

    #[test]
    fn the_guide_reaches_an_agent_whole() {
        assert!(GUIDE.len() < LARGE_RESULT_BYTES, "{} bytes", GUIDE.len());
    }

    #[test]
    fn the_declarations_name_what_is_understood() {
        let tools = manage_tool_declarations();
        assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), NAMES);
        for tool in &tools {
            let schema = tool.parameters.as_ref().unwrap();
            jsonschema::validator_for(schema).unwrap();
        }
        let manage = tools[0].parameters.as_ref().unwrap();
        assert_eq!(manage["required"], json!(["operation"]));
        let properties = manage["properties"].as_object().unwrap();
        assert_eq!(properties["operation"]["enum"], json!(OPERATIONS));
        assert_eq!(properties["kind"]["enum"], json!(["basic", "canvas", "hooks", "ts"]));
        assert_eq!(properties["location"]["enum"], json!(LOCATIONS));
    }

    #[test]
    fn only_switching_needs_a_permission() {
        assert!(switches(NAMES[0], &json!({ "operation": "disable" })).is_some());
        assert!(switches(NAMES[0], &json!({ "operation": "list" })).is_none());
        assert!(switches(NAMES[1], &json!({ "operation": "disable" })).is_none());
    }
}
