//! Questions whether something may be done, and the kinds of answers to them.
//!
//! Extensions see the JSON of these types: the public contract's `PermissionRequest` and the `kind` of its
//! `PermissionRequestResult`. Inside Tenon nothing else says what is asked for, so that the compiler sees every place
//! that decides about it.

use serde::Deserialize;
use serde::Serialize;
use serde::Serializer;
use serde_json::Value;

use crate::json::Json;

/// A question whether something may be done.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum PermissionRequest {
    /// The agent calls a tool of an extension.
    CustomTool {
        /// The call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// What the extension says about it.
        tool_description: String,
        /// What it is called with.
        args: Json,
    },
    /// An extension's hook wants the person to be asked about a call of an extension's tool.
    Hook {
        /// The call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// What it is called with.
        tool_args: Json,
        /// Why the extension wants it.
        hook_message: Option<String>,
        /// The extension whose hook it is.
        extension_name: String,
    },
    /// The agent wants to switch an extension on or off.
    ExtensionManagement {
        /// The call.
        tool_call_id: String,
        /// Which of the two.
        operation: Switch,
        /// The extension, as the agent names it.
        extension_name: Option<String>,
    },
    /// An extension wants secrets from the environment.
    ExtensionEnvAccess {
        /// The extension.
        extension_name: String,
        /// The names of the variables.
        environment_variables: Vec<String>,
    },
    /// An extension does not run until the person has approved its content.
    ExtensionReview {
        /// Why it does not run.
        intention: String,
        /// The extension.
        extension_name: String,
        /// Its folder.
        path: String,
        /// The content that is approved.
        hash: String,
    },
    /// The agent wants to use a tool of its own.
    #[serde(untagged)]
    Agent(AgentRequest),
    /// A request that Tenon does not know, from a program that embeds it.
    #[serde(untagged)]
    Other(Value),
}

/// A question about a tool of the agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentRequest {
    /// What the agent wants to do.
    #[serde(flatten)]
    pub action: AgentAction,
    /// The call.
    pub tool_call_id: String,
    /// All files, where it is about several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_names: Option<Vec<String>>,
    /// The extension that wants the person to be asked, if one does.
    #[serde(flatten)]
    pub asked_by: Option<AskedBy>,
    /// The agent's request as it came, if it asks by ACP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acp: Option<Json>,
}

/// What the agent wants to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum AgentAction {
    /// Run a command.
    Shell {
        /// The command.
        full_command_text: String,
        /// What the agent says that it is for.
        intention: String,
        /// Paths that the command touches, as far as they are known.
        possible_paths: Vec<String>,
        /// Whether it may write a file by redirecting its output.
        has_write_file_redirection: bool,
    },
    /// Write a file.
    Write {
        /// The file, or the first of several.
        file_name: String,
        /// What the agent says that it is for.
        intention: String,
        /// What changes, line by line.
        diff: String,
        /// All of the new file, if that is known.
        new_file_contents: Option<Json>,
    },
    /// Read a file, or search in a folder.
    Read {
        /// The file or folder; empty if it is not known, or if there are several.
        path: String,
        /// What the agent says that it is for.
        intention: String,
    },
    /// Fetch a page.
    Url {
        /// Its address.
        url: String,
        /// What the agent says that it is for.
        intention: String,
    },
    /// Call a tool of an MCP server that is not Tenon.
    Mcp {
        /// The server.
        server_name: String,
        /// The tool, without the server's prefix.
        tool_name: String,
        /// The tool, for a person.
        tool_title: String,
        /// Whether it changes nothing.
        read_only: bool,
        /// What it is called with.
        args: Json,
    },
    /// Use any other of its tools.
    CustomTool {
        /// The tool.
        tool_name: String,
        /// What the agent says that it is for.
        tool_description: String,
        /// What it is called with.
        args: Json,
    },
}

/// The extension that wants the person to be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AskedBy {
    /// Why it wants it.
    pub hook_message: Option<String>,
    /// The extension.
    pub extension_name: String,
}

/// What can be done to an extension that guards the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Switch {
    /// Switch it on.
    Enable,
    /// Switch it off.
    Disable,
}

impl Switch {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enable => "enable",
            Self::Disable => "disable",
        }
    }
}

/// What a person can allow for the rest of a session: everything that is alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Subject {
    /// Running commands.
    Commands,
    /// Changing files.
    Changes,
    /// Reading.
    Reading,
    /// Fetching pages.
    Fetching,
    /// A tool, of an extension or of the agent.
    Tool(String),
    /// A tool of an MCP server.
    McpTool {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
    },
    /// A tool about which an extension's hook wants the person to be asked.
    Guarded {
        /// The tool.
        tool: String,
        /// The extension.
        extension: String,
    },
}

impl PermissionRequest {
    /// The call that it is about, if it is about one.
    pub fn tool_call_id(&self) -> Option<&str> {
        match self {
            Self::CustomTool { tool_call_id, .. }
            | Self::Hook { tool_call_id, .. }
            | Self::ExtensionManagement { tool_call_id, .. }
            | Self::Agent(AgentRequest { tool_call_id, .. }) => Some(tool_call_id),
            Self::ExtensionEnvAccess { .. } | Self::ExtensionReview { .. } => None,
            Self::Other(request) => request.get("toolCallId")?.as_str(),
        }
    }

    /// What a person can allow for the rest of the session; none if it has to be asked each time.
    pub fn subject(&self) -> Option<Subject> {
        match self {
            Self::CustomTool { tool_name, .. } => Some(Subject::Tool(tool_name.clone())),
            Self::Hook { tool_name, extension_name, .. } => Some(Subject::Guarded {
                tool: tool_name.clone(),
                extension: extension_name.clone(),
            }),
            // An extension wants this very call to be asked about.
            Self::Agent(AgentRequest { asked_by: Some(_), .. }) => None,
            Self::Agent(AgentRequest { action, .. }) => Some(action.subject()),
            // These widen what extensions may do.
            Self::ExtensionManagement { .. }
            | Self::ExtensionEnvAccess { .. }
            | Self::ExtensionReview { .. }
            | Self::Other(_) => None,
        }
    }
}

impl AgentRequest {
    /// A question about one call.
    pub fn new(action: AgentAction, tool_call_id: impl Into<String>) -> Self {
        let tool_call_id = tool_call_id.into();
        Self { action, tool_call_id, file_names: None, asked_by: None, acp: None }
    }
}

impl AgentAction {
    fn subject(&self) -> Subject {
        match self {
            Self::Shell { .. } => Subject::Commands,
            Self::Write { .. } => Subject::Changes,
            Self::Read { .. } => Subject::Reading,
            Self::Url { .. } => Subject::Fetching,
            Self::Mcp { server_name, tool_name, .. } => {
                Subject::McpTool { server: server_name.clone(), tool: tool_name.clone() }
            }
            Self::CustomTool { tool_name, .. } => Subject::Tool(tool_name.clone()),
        }
    }
}

/// How a question was decided.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub enum DecisionKind {
    /// Yes, this time.
    ApproveOnce,
    /// Yes, for the session.
    ApproveForSession,
    /// Yes, in this place.
    ApproveForLocation,
    /// Yes, from now on.
    ApprovePermanently,
    /// Yes.
    Approved,
    /// Yes, for the session.
    ApprovedForSession,
    /// Yes, in this place.
    ApprovedForLocation,
    /// No.
    Reject,
    /// The question was taken back.
    Cancelled,
    /// Whoever was asked leaves it to others.
    NoResult,
    /// There is nobody to ask.
    UserNotAvailable,
    /// No, because of a rule.
    DeniedByRules,
    /// No, because nothing permits it and nobody could be asked.
    DeniedWithNobodyToAsk,
    /// No, said a person.
    DeniedInteractivelyByUser,
    /// No, because of what it would show.
    DeniedByContentExclusionPolicy,
    /// No, said a hook.
    DeniedByPermissionRequestHook,
    /// An answer that Tenon does not know. It permits nothing.
    Other(String),
}

impl DecisionKind {
    /// All that have a name of their own.
    const KNOWN: [Self; 16] = [
        Self::ApproveOnce,
        Self::ApproveForSession,
        Self::ApproveForLocation,
        Self::ApprovePermanently,
        Self::Approved,
        Self::ApprovedForSession,
        Self::ApprovedForLocation,
        Self::Reject,
        Self::Cancelled,
        Self::NoResult,
        Self::UserNotAvailable,
        Self::DeniedByRules,
        Self::DeniedWithNobodyToAsk,
        Self::DeniedInteractivelyByUser,
        Self::DeniedByContentExclusionPolicy,
        Self::DeniedByPermissionRequestHook,
    ];

    /// Its name in the public contract.
    pub fn as_str(&self) -> &str {
        match self {
            Self::ApproveOnce => "approve-once",
            Self::ApproveForSession => "approve-for-session",
            Self::ApproveForLocation => "approve-for-location",
            Self::ApprovePermanently => "approve-permanently",
            Self::Approved => "approved",
            Self::ApprovedForSession => "approved-for-session",
            Self::ApprovedForLocation => "approved-for-location",
            Self::Reject => "reject",
            Self::Cancelled => "cancelled",
            Self::NoResult => "no-result",
            Self::UserNotAvailable => "user-not-available",
            Self::DeniedByRules => "denied-by-rules",
            Self::DeniedWithNobodyToAsk => {
                "denied-no-approval-rule-and-could-not-request-from-user"
            }
            Self::DeniedInteractivelyByUser => "denied-interactively-by-user",
            Self::DeniedByContentExclusionPolicy => "denied-by-content-exclusion-policy",
            Self::DeniedByPermissionRequestHook => "denied-by-permission-request-hook",
            Self::Other(name) => name,
        }
    }

    /// Whether it may be done.
    pub fn is_approved(&self) -> bool {
        match self {
            Self::ApproveOnce
            | Self::ApproveForSession
            | Self::ApproveForLocation
            | Self::ApprovePermanently
            | Self::Approved
            | Self::ApprovedForSession
            | Self::ApprovedForLocation => true,
            Self::Reject
            | Self::Cancelled
            | Self::NoResult
            | Self::UserNotAvailable
            | Self::DeniedByRules
            | Self::DeniedWithNobodyToAsk
            | Self::DeniedInteractivelyByUser
            | Self::DeniedByContentExclusionPolicy
            | Self::DeniedByPermissionRequestHook
            | Self::Other(_) => false,
        }
    }

    /// Whether it leaves the decision to whoever is asked next.
    pub fn leaves_it_to_others(&self) -> bool {
        matches!(self, Self::NoResult | Self::UserNotAvailable)
    }
}

impl From<String> for DecisionKind {
    fn from(name: String) -> Self {
        let known = Self::KNOWN.into_iter().find(|kind| kind.as_str() == name);
        known.unwrap_or(Self::Other(name))
    }
}

impl Serialize for DecisionKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests;
