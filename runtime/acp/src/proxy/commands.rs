//! Slash commands: those of extensions and those of the agent, as one list for the client.
//!
//! Where an extension and the agent have a command of the same name, the extension's is listed and run. Nothing
//! is renamed.

use serde_json::Value;
use serde_json::json;
use tenon_host::Session;

/// The kind of update that lists commands.
pub const UPDATE: &str = "available_commands_update";

/// A command of an extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// Without the slash.
    pub name: String,
    /// What it does.
    pub description: String,
    /// `scope:name`.
    pub extension: String,
}

impl Own {
    /// The commands of a session's extensions.
    pub fn of(session: &Session) -> Vec<Self> {
        let own = session.commands().into_iter().map(|listing| Self {
            name: listing.command.name,
            description: listing.command.description,
            extension: listing.extension_id,
        });
        own.collect()
    }

    /// The command as ACP describes it.
    fn as_acp(&self) -> Value {
        let description = match &*self.description {
            "" => format!("A command of {}", self.extension),
            text => text.to_owned(),
        };
        json!({
            "name": self.name,
            "description": description,
            // Extensions get whatever follows the name.
            "input": { "hint": "arguments" },
            "_meta": { "tenon": { "extension": self.extension } },
        })
    }
}

/// What the client was told, and what it is to be told.
#[derive(Default)]
pub struct Commands {
    /// The agent's last update, as it sent it.
    agent: Option<Value>,
    /// The list that the client has.
    told: Vec<Value>,
}

impl Commands {
    /// The agent has other commands now.
    pub fn agent_has(&mut self, update: Value) {
        self.agent = Some(update);
    }

    /// The update that tells the client what there is now; `None` if it has that list.
    pub fn update(&mut self, own: &[Own]) -> Option<Value> {
        let mut update = self.agent.clone().unwrap_or_else(|| json!({ "sessionUpdate": UPDATE }));
        let agents = update["availableCommands"].as_array().map(Vec::as_slice);
        let all = merge(own, agents.unwrap_or_default());
        if all == self.told {
            return None;
        }
        self.told.clone_from(&all);
        update["availableCommands"] = all.into();
        Some(update)
    }

    /// Whether the agent has a command of exactly this name.
    pub fn is_agents(&self, name: &str) -> bool {
        let agents = self.agent.as_ref().and_then(|update| update["availableCommands"].as_array());
        agents.is_some_and(|agents| agents.iter().any(|command| command["name"] == name))
    }
}

/// One list of both.
fn merge(own: &[Own], agents: &[Value]) -> Vec<Value> {
    let is_free = |command: &&Value| !own.iter().any(|own| command["name"] == *own.name);
    let agents = agents.iter().filter(is_free).cloned();
    own.iter().map(Own::as_acp).chain(agents).collect()
}

/// A prompt that is a command: its name, and what follows.
pub fn parse(prompt: &str) -> Option<(&str, &str)> {
    let rest = prompt.strip_prefix('/')?;
    let (name, args) = match rest.find(char::is_whitespace) {
        Some(end) => (&rest[..end], rest[end..].trim()),
        None => (rest, ""),
    };
    (!name.is_empty()).then_some((name, args))
}

/// The command of an extension that somebody means: by its exact name, else, unless the agent has one of that
/// name, whatever the case of its letters.
pub fn meant<'a>(own: &'a [Own], name: &str, is_agents: bool) -> Option<&'a Own> {
    let exact = own.iter().find(|command| command.name == name);
    let alike = || own.iter().find(|command| command.name.eq_ignore_ascii_case(name));
    exact.or_else(|| if is_agents { None } else { alike() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(name: &str, description: &str) -> Own {
        let extension = "project:x".to_owned();
        Own { name: name.to_owned(), description: description.to_owned(), extension }
    }

    fn names(update: &Value) -> Vec<&str> {
        let all = update["availableCommands"].as_array().unwrap();
        all.iter().map(|command| command["name"].as_str().unwrap()).collect()
    }

    #[test]
    fn an_extensions_command_takes_the_place_of_the_agents() {
        let mut commands = Commands::default();
        commands.agent_has(json!({
            "sessionUpdate": UPDATE,
            "availableCommands": [
                { "name": "plan", "description": "agent's", "odd": 1 },
                { "name": "deploy", "description": "agent's" },
            ],
            "_meta": { "kept": true },
        }));
        let update = commands.update(&[own("deploy", "Ships it"), own("bare", "")]).unwrap();
        assert_eq!(names(&update), ["deploy", "bare", "plan"]);
        assert_eq!(update["availableCommands"][0]["description"], "Ships it");
        assert_eq!(update["availableCommands"][0]["_meta"]["tenon"]["extension"], "project:x");
        assert_eq!(update["availableCommands"][1]["description"], "A command of project:x");
        let untouched = json!({ "name": "plan", "description": "agent's", "odd": 1 });
        assert_eq!(update["availableCommands"][2], untouched);
        assert_eq!(update["_meta"], json!({ "kept": true }));
    }

    #[test]
    fn the_client_hears_of_a_list_only_when_it_is_another_one() {
        let mut commands = Commands::default();
        assert_eq!(commands.update(&[]), None);
        let first = commands.update(&[own("a", "")]).unwrap();
        assert_eq!(first["sessionUpdate"], UPDATE);
        assert_eq!(commands.update(&[own("a", "")]), None);
        commands.agent_has(json!({ "availableCommands": [{ "name": "b", "description": "" }] }));
        assert_eq!(names(&commands.update(&[own("a", "")]).unwrap()), ["a", "b"]);
        assert_eq!(names(&commands.update(&[]).unwrap()), ["b"]);
    }

    #[test]
    fn a_command_is_the_first_word_after_a_slash() {
        assert_eq!(parse("/deploy  prod now "), Some(("deploy", "prod now")));
        assert_eq!(parse("/deploy\nprod"), Some(("deploy", "prod")));
        assert_eq!(parse("/deploy"), Some(("deploy", "")));
        assert_eq!(parse("/"), None);
        assert_eq!(parse("/ deploy"), None);
        assert_eq!(parse("see /deploy"), None);
    }

    #[test]
    fn a_command_of_the_agent_is_not_mistaken_for_one_that_is_spelt_alike() {
        let all = [own("Plan", "")];
        assert_eq!(meant(&all, "Plan", true), Some(&all[0]));
        assert_eq!(meant(&all, "plan", false), Some(&all[0]));
        assert_eq!(meant(&all, "plan", true), None);
        assert_eq!(meant(&all, "other", false), None);
    }
}
