//! Joining: an extension registers what it offers.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::json;
use tenon_protocol::message::LogLevel;
use tenon_protocol::message::RequestId;
use tenon_protocol::permission::PermissionRequest;

use super::Session;
use super::offers;
use super::own_tools;
use super::pending::Kind;
use crate::approvals::Approvals;
use crate::approvals::identity;
use crate::environment;
use crate::extension::Registration;
use crate::extensions::Effects;
use crate::extensions::Key;
use crate::extensions::Peer;
use crate::extensions::id_of;
use crate::layout::FILES;
use crate::lifecycle::CheckedOffers;

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
        if let Err(error) = offers::check(&registration) {
            return self.answer(peer, request, Err(format!("joinSession: {error}")));
        }
        let wanted = self.hidden_variables(key, &registration.requested_environment_variables);
        let names: Vec<String> = wanted.keys().cloned().collect();
        if wanted.is_empty() {
            let joined = self.register(peer, registration, &wanted);
            return self.answer(peer, request, joined);
        }
        // A person may think for as long as they like, and a disk may be slow.
        self.hold_start(peer, true);
        let (session, peer) = (self.clone(), peer.clone());
        self.0.runtime.spawn(async move {
            let approved = tokio::select! {
                approved = session.may_have(&peer.key, names) => approved,
                () = session.gone(&peer) => return,
            };
            let joined = approved.and_then(|()| session.register(&peer, registration, &wanted));
            session.answer(&peer, request, joined);
            session.hold_start(&peer, false);
        });
    }

    /// Whether an extension may have secrets from the environment: the person has said so before, or says so now.
    async fn may_have(&self, key: &Key, names: Vec<String>) -> Result<(), String> {
        let (extension, asked) = (identity(key), names.clone());
        let held = self.on_disk(move |session| {
            Approvals::of(&session.0.options.home).holds(&extension, &asked)
        });
        if held.await == Some(true) {
            return Ok(());
        }
        self.approve_variables(key, &names).await?;
        let extension = identity(key);
        let remembered = self.on_disk(move |session| {
            Approvals::of(&session.0.options.home).remember(&extension, &names)
        });
        let remembered = remembered.await;
        if let Some(Err(error)) = remembered {
            let text = format!("the approval could not be remembered: {error}");
            self.0.extensions.note(key, LogLevel::Warning, text);
        }
        Ok(())
    }

    /// Asks whether an extension may have secrets from the environment.
    async fn approve_variables(&self, key: &Key, names: &[String]) -> Result<(), String> {
        let id = id_of(key);
        let request = PermissionRequest::ExtensionEnvAccess {
            extension_name: id.clone(),
            environment_variables: names.to_vec(),
        };
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
        if let Some(load) = self.0.extensions.lock().load(peer) {
            load.payload().isolate.hold_start(held);
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

    /// Takes over what an extension offers, or says why not.
    fn register(
        &self,
        peer: &Peer,
        registration: Registration,
        environment: &BTreeMap<String, String>,
    ) -> Result<Value, String> {
        let built_in = self.0.options.agent.as_ref().map(|agent| agent.built_in_tools());
        check_built_in(&registration, &built_in.unwrap_or_default())?;
        let offers = CheckedOffers::new(registration);
        self.change_with(|table| match table.joined(peer, offers) {
            Ok(effects) => (Ok(()), effects),
            Err(refusal) => (Err(refusal.to_string()), Effects::new()),
        })?;
        let workspace = std::fs::create_dir_all(self.folder().join(FILES))
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
        let taken = agent.contains(&tool.name) || own_tools::is_own(&tool.name);
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
