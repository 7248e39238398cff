//! Slash commands: each belongs to one extension, and runs there.

use serde::Serialize;
use serde_json::json;
use tenon_protocol::message::CallKind;
use tenon_protocol::message::LogLevel;

use super::Session;
use super::pending::Kind;
use crate::extension::CommandDeclaration;
use crate::extensions::Extension;

/// A command could not be run, or failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommandError {
    /// No extension has such a command.
    #[error("there is no command /{name}")]
    Unknown {
        /// What was asked for, without the slash.
        name: String,
        /// What there is.
        available: Vec<String>,
    },
    /// Its handler failed.
    #[error("/{name} of {extension} failed: {message}")]
    Failed {
        /// Without the slash.
        name: String,
        /// `scope:name`.
        extension: String,
        /// What went wrong.
        message: String,
    },
}

/// A command and whose it is.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandListing {
    /// The command.
    #[serde(flatten)]
    pub command: CommandDeclaration,
    /// `scope:name` of its extension.
    pub extension_id: String,
}

impl Session {
    /// Every command, by name.
    pub fn commands(&self) -> Vec<CommandListing> {
        let table = self.0.extensions.lock();
        let loaded = table.values().filter(|extension| extension.is_loaded());
        let mut commands: Vec<_> = loaded
            .flat_map(|extension| {
                extension.info().commands.iter().map(|command| CommandListing {
                    command: command.clone(),
                    extension_id: extension.info().id.clone(),
                })
            })
            .collect();
        commands.sort_by(|a, b| a.command.name.cmp(&b.command.name));
        commands
    }

    /// The command that a name means, also in other letters, and the id of its extension.
    fn command(&self, asked: &str) -> Option<(String, String)> {
        let table = self.0.extensions.lock();
        let loaded = table.values().filter(|extension| extension.is_loaded()).map(Extension::info);
        let all = loaded.flat_map(|it| it.commands.iter().map(move |command| (&command.name, it)));
        let meant = all.filter(|(name, _)| name.eq_ignore_ascii_case(asked));
        // The one of exactly that name, and else the first of those by name.
        let (name, owner) = meant.min_by_key(|(name, _)| (*name != asked, *name))?;
        Some((name.clone(), owner.id.clone()))
    }

    /// Runs a command, once, in the extension that owns it. Dropping the future cancels it.
    pub async fn run_command(&self, name: &str, args: &str) -> Result<(), CommandError> {
        let asked = name.trim_start_matches('/');
        let unknown = || CommandError::Unknown {
            name: asked.to_owned(),
            available: self.commands().into_iter().map(|listing| listing.command.name).collect(),
        };
        let (name, extension) = self.command(asked).ok_or_else(unknown)?;
        let peer = self.0.extensions.loaded(&extension).ok_or_else(unknown)?;
        let command = format!("/{name} {args}").trim_end().to_owned();
        let (pending, over) = (&self.0.pending, "command.completed");
        let mut pending = pending.open_of(Some(&peer.key), Kind::Command, &self.0.bus, over);
        let id = pending.id.clone();
        self.emit_ephemeral("command.queued", json!({ "requestId": id, "command": command }));
        let details = json!({
            "requestId": id,
            "command": command,
            "commandName": name,
            "args": args,
            "extensionId": extension,
        });
        self.emit_ephemeral("command.execute", details);
        let payload = json!({
            "commandName": name,
            "command": command,
            "args": args,
            "sessionId": self.id(),
        });
        let outcome = tokio::select! {
            reply = self.call(&peer, CallKind::Command, None, payload.to_string()) => {
                reply.map(drop).map_err(|failure| failure.with_place())
            }
            answer = pending.answered() => match answer["error"].as_str() {
                Some(error) => Err(error.to_owned()),
                None => Ok(()),
            },
        };
        let outcome = outcome.map_err(|message| CommandError::Failed { name, extension, message });
        let mut completed = json!({ "requestId": id });
        if let Err(error) = &outcome {
            completed["error"] = error.to_string().into();
            self.0.extensions.note(&peer.key, LogLevel::Error, error.to_string());
            let data = json!({ "errorType": "command", "message": error.to_string() });
            self.emit("session.error", data);
        }
        pending.complete(completed);
        outcome
    }
}
