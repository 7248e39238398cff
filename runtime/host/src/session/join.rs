//! Joining: an extension registers what it offers.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::json;
use tenon_isolate::message::LogLevel;
use tenon_isolate::message::RequestId;

use super::Session;
use super::approvals::Approvals;
use super::canvas_tools;
use super::pending::Kind;
use crate::environment;
use crate::extension::Registration;
use crate::extensions::Key;
use crate::extensions::Peer;
use crate::extensions::State;
use crate::extensions::id_of;

impl Session {
    /// Answers `session.join`, at once or after the person was asked.
    pub(super) fn join(&self, peer: &Peer, request: RequestId, params: Value) {
        let key = &peer.key;
        let registration: Registration = match serde_json::from_value(params) {
            Ok(registration) => registration,
            Err(error) => {
                return self.answer(peer, request, Err(format!("joinSession: {error}")));
            }
        };
        let wanted = self.hidden_variables(key, &registration.requested_environment_variables);
        let names: Vec<String> = wanted.keys().cloned().collect();
        let approvals = Approvals::of(&self.0.options.home);
        let identity = self.identity(key);
        if wanted.is_empty() || approvals.holds(&identity, &names) {
            let joined = self.register(peer, registration, &wanted);
            return self.answer(peer, request, joined);
        }
        // A person may think for as long as they like.
        self.hold_start(peer, true);
        let (session, peer) = (self.clone(), peer.clone());
        self.0.runtime.spawn(async move {
            let approved = tokio::select! {
                approved = session.approve_variables(&peer.key, &names) => approved,
                () = session.gone(&peer) => return,
            };
            let joined = match approved {
                Ok(()) => {
                    if let Err(error) = approvals.remember(&identity, &names) {
                        let text = format!("the approval could not be remembered: {error}");
                        session.0.extensions.note(&peer.key, LogLevel::Warning, text);
                    }
                    session.register(&peer, registration, &wanted)
                }
                Err(refusal) => Err(refusal),
            };
            session.answer(&peer, request, joined);
            session.hold_start(&peer, false);
        });
    }

    /// Asks whether an extension may have secrets from the environment.
    async fn approve_variables(&self, key: &Key, names: &[String]) -> Result<(), String> {
        let id = id_of(key);
        let request = json!({
            "kind": "extension-env-access",
            "extensionName": id,
            "environmentVariables": names,
        });
        // Only the person decides this: an extension must not let itself, or another, have secrets.
        let waiting = self.0.pending.open(Kind::Secrets, &self.0.bus, "permission.completed");
        let asked = json!({ "requestId": waiting.id, "permissionRequest": request });
        self.emit("permission.requested", asked);
        let decision = self.ask_person_for_permission(&request).await;
        let completed = json!({ "requestId": waiting.id, "result": decision });
        waiting.complete(completed);
        if decision.is_approved() {
            return Ok(());
        }
        let list = names.join(", ");
        Err(format!(
            "{id} asked for the environment variables {list} and was not given them; they can be \
             granted with allow-env in the user's configuration"
        ))
    }

    fn hold_start(&self, peer: &Peer, held: bool) {
        let mut state = self.0.extensions.lock();
        if let Some(isolate) = state.of(peer).and_then(|it| it.isolate.as_ref()) {
            isolate.hold_start(held);
        }
    }

    /// Of the variables asked for, those that are set and that the extension does not see.
    fn hidden_variables(&self, key: &Key, asked: &[String]) -> BTreeMap<String, String> {
        let config = self.0.config.of(&id_of(key), &key.1);
        let visible = environment::visible(environment::of_host(), &config);
        environment::of_host()
            .into_iter()
            .filter(|(name, _)| asked.contains(name) && !visible.contains_key(name))
            .collect()
    }

    /// An extension, told apart from those of the same name in other repositories.
    fn identity(&self, key: &Key) -> String {
        format!("{}:{} {}", key.0, key.1, key.2.display())
    }

    /// Takes over what an extension offers, or says why not.
    fn register(
        &self,
        peer: &Peer,
        registration: Registration,
        environment: &BTreeMap<String, String>,
    ) -> Result<Value, String> {
        let built_in = self.0.options.agent.as_ref().map(|agent| agent.built_in_tools());
        let rejoined = {
            let mut state = self.0.extensions.lock();
            check_built_in(&registration, &built_in.unwrap_or_default())?;
            state.of(peer).ok_or("the extension is not loaded any more")?;
            check_commands(&state, &peer.key, &registration)?;
            let State { map, registry, .. } = &mut *state;
            let extension = map.get_mut(&peer.key).ok_or("the extension is not loaded any more")?;
            let info = &mut extension.info;
            let warnings = registry.register(&info.id, &info.path, &registration.tools)?;
            for text in warnings {
                extension.note(LogLevel::Warning, text);
            }
            if let Some(subscriber) = &extension.subscriber {
                subscriber.change(|filter| {
                    registration.subscribe.iter().for_each(|kind| filter.add(kind));
                });
            }
            extension.info.register(registration);
            extension.info.status == crate::extension::Status::Running
        };
        if rejoined {
            self.announce_offers();
        }
        let workspace = std::fs::create_dir_all(self.folder().join("files"))
            .is_ok()
            .then(|| self.folder().to_owned());
        Ok(json!({
            "sessionId": self.id(),
            "workspacePath": workspace,
            "capabilities": self.capabilities(),
            "openCanvases": self.open_canvases(),
            "environment": environment,
        }))
    }
}

/// A name that is taken by the agent or by us needs a word that this is meant.
fn check_built_in(registration: &Registration, agent: &[String]) -> Result<(), String> {
    for tool in &registration.tools {
        let taken = agent.contains(&tool.name) || canvas_tools::NAMES.contains(&&*tool.name);
        if taken && !tool.flag("overridesBuiltInTool") {
            return Err(format!(
                "the tool \"{}\" has the name of a built-in tool; set overridesBuiltInTool: true if \
                 it is meant to replace it",
                tool.name
            ));
        }
    }
    Ok(())
}

fn check_commands(state: &State, key: &Key, registration: &Registration) -> Result<(), String> {
    let newcomer = state.map.get(key).map_or(&key.2, |extension| &extension.info.path);
    for command in &registration.commands {
        let owner = state.map.iter().find(|(other, extension)| {
            *other != key
                && extension.isolate.is_some()
                && extension.info.commands.iter().any(|taken| taken.name == command.name)
        });
        if let Some((_, owner)) = owner {
            return Err(format!(
                "the command /{} is already taken by {} ({}) and refused to {}:{} ({})",
                command.name,
                owner.info.id,
                owner.info.path.display(),
                key.0,
                key.1,
                newcomer.display(),
            ));
        }
    }
    Ok(())
}
