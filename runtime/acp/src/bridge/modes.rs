//! Modes and models of the agent: the ones it has, and the one that fits what the person permits.

use serde_json::Value;
use serde_json::json;
use tenon_host::Session;

use super::Bridge;
use crate::config::PermissionMode;
use crate::rpc::RpcError;

/// Modes in which an agent asks before it does something, so that hooks and the person decide.
const ASKING: &[&str] =
    &["default", "ask", "always-ask", "always_ask", "workspace-write", "build", "agent"];

/// Modes in which it asks for nothing.
const EVERYTHING: &[&str] = &[
    "full-access",
    "full_access",
    "bypassPermissions",
    "bypass_permissions",
    "bypass",
    "auto",
    "acceptEdits",
];

/// Modes in which it changes nothing.
const READING: &[&str] = &["read-only", "read_only", "readOnly", "plan", "ask"];

/// The modes to try for what the person permits, best first. An agent that asks is better than one that is
/// let loose: hooks see what it does, and what is permitted is answered without asking anybody.
fn candidates(permissions: PermissionMode) -> impl Iterator<Item = &'static str> {
    let (first, then): (&[_], &[_]) = match permissions {
        PermissionMode::DenyAll => (READING, &[]),
        PermissionMode::ApproveAll => (ASKING, EVERYTHING),
        PermissionMode::ApproveReads | PermissionMode::Ask => (ASKING, READING),
    };
    first.iter().chain(then).copied()
}

/// The mode that fits best, of those there are.
pub(super) fn best_mode(permissions: PermissionMode, available: &[String]) -> Option<&str> {
    candidates(permissions)
        .find_map(|wanted| available.iter().find(|mode| plain(mode) == wanted))
        .map(String::as_str)
}

/// The name of a mode. Some agents use addresses for ids, and the name is what comes last.
fn plain(mode: &str) -> &str {
    mode.rsplit('#').next().unwrap_or(mode)
}

impl Bridge {
    /// The modes as the agent gave them: `currentModeId`, `availableModes`.
    pub fn modes(&self) -> Value {
        let state = self.state();
        let mut modes = state.opened["modes"].clone();
        if modes.is_null()
            && let Some(option) = option_of(&state.config_options, "mode")
        {
            let available: Vec<_> = values_of(option)
                .map(|value| json!({ "id": value["value"], "name": value["name"] }))
                .collect();
            modes = json!({ "currentModeId": option["currentValue"], "availableModes": available });
        }
        if let (Some(mode), true) = (&state.current_mode, modes.is_object()) {
            modes["currentModeId"] = mode.as_str().into();
        }
        modes
    }

    fn mode_ids(&self) -> Vec<String> {
        let modes = self.modes();
        let modes = modes["availableModes"].as_array().cloned().unwrap_or_default();
        modes.iter().filter_map(|mode| Some(mode["id"].as_str()?.to_owned())).collect()
    }

    /// Chooses the mode that was configured, or the one that fits what the person permits.
    pub(super) async fn settle_mode(&self) -> Result<(), RpcError> {
        let available = self.mode_ids();
        let kept = self.state().kept_mode.clone().filter(|mode| available.contains(mode));
        let wanted = match kept.as_ref().or(self.definition.mode.as_ref()) {
            Some(mode) => Some(mode.as_str()),
            None if self.opening.choose_mode => {
                let asking = self.definition.ask_mode.as_ref();
                let asking = asking.filter(|_| self.permissions != PermissionMode::DenyAll);
                let asking = asking.filter(|mode| available.contains(mode)).map(String::as_str);
                asking.or_else(|| best_mode(self.permissions, &available))
            }
            None => None,
        };
        let current = self.modes()["currentModeId"].as_str().map(str::to_owned);
        match wanted {
            Some(wanted) if current.as_deref() != Some(wanted) => self.choose_mode(wanted).await,
            _ => Ok(()),
        }
    }

    /// Has the agent work in one of its modes.
    pub async fn choose_mode(&self, mode: &str) -> Result<(), RpcError> {
        let available = self.mode_ids();
        if !available.iter().any(|known| known == mode) {
            let there_are = match &*available {
                [] => "it has no modes".to_owned(),
                modes => format!("there are: {}", modes.join(", ")),
            };
            let message = format!("{} has no mode {mode:?}; {there_are}", self.definition.name);
            return Err(RpcError::invalid_params(message));
        }
        let has_modes = self.state().opened["modes"].is_object();
        if has_modes {
            self.agent_request("session/set_mode", json!({ "modeId": mode })).await?;
        } else {
            self.set_option("mode", mode).await?;
            if let Some(session) = self.session() {
                self.mode_is(&session, mode);
            }
        }
        Ok(())
    }

    /// Keeps what was chosen by a request that the agent has answered.
    pub(super) fn chosen(
        &self,
        session: &Session,
        method: &str,
        mode: Option<String>,
        model: Option<String>,
        answer: &Value,
    ) {
        match (method, mode, model) {
            ("session/set_mode", Some(mode), _) => self.mode_is(session, &mode),
            ("session/set_model", _, Some(model)) => {
                let mut state = self.state();
                state.opened["models"]["currentModelId"] = model.as_str().into();
                state.kept_model = Some(model);
            }
            ("session/set_config_option", ..) if answer["configOptions"].is_array() => {
                self.options_are(session, &answer["configOptions"]);
                let model = self.current_model();
                if model.is_some() {
                    self.state().kept_model = model;
                }
            }
            _ => {}
        }
    }

    /// A mode of the public contract: `interactive`, `plan` or `autopilot`.
    pub(super) async fn choose_copilot_mode(&self, mode: &str) -> Result<(), RpcError> {
        let available = self.mode_ids();
        let names: &[&str] = match mode {
            "plan" => &["plan", "read-only"],
            "autopilot" => &["autopilot", "auto", "acceptEdits", "agent", "build"],
            _ => &["default", "agent", "workspace-write", "build", "interactive"],
        };
        let fitting = |name: &&str| available.iter().find(|mode| plain(mode) == *name);
        match names.iter().find_map(fitting) {
            Some(mode) => self.choose_mode(mode).await,
            // The session has the mode, the agent has no such thing.
            None => Ok(()),
        }
    }

    /// The agent works in this mode now.
    pub(super) fn mode_is(&self, session: &Session, mode: &str) {
        {
            let mut state = self.state();
            state.current_mode = Some(mode.to_owned());
            state.kept_mode = Some(mode.to_owned());
        }
        let known_as = match plain(mode) {
            "plan" | "read-only" | "readOnly" | "read_only" => "plan",
            "autopilot" | "auto" | "acceptEdits" | "bypassPermissions" | "yolo" => "autopilot",
            _ => "interactive",
        };
        session.mode_changed(known_as);
    }

    /// The agent's settings are these now.
    pub(super) fn options_are(&self, session: &Session, options: &Value) {
        self.state().config_options = options.clone();
        if let Some(mode) = option_of(options, "mode").and_then(|it| it["currentValue"].as_str()) {
            self.mode_is(session, mode);
        }
        session.emit_ephemeral("agent.options_changed", json!({ "configOptions": options }));
    }

    /// The agent's models, each with an `id`.
    pub fn known_models(&self) -> Vec<Value> {
        let state = self.state();
        if let Some(option) = option_of(&state.config_options, "model") {
            let model = |value: &Value| json!({ "id": value["value"], "name": value["name"] });
            return values_of(option).map(model).collect();
        }
        let models = state.opened["models"]["availableModels"].as_array();
        let model = |model: &Value| json!({ "id": model["modelId"], "name": model["name"] });
        models.into_iter().flatten().map(model).collect()
    }

    /// The model in use, if the agent says so.
    pub fn current_model(&self) -> Option<String> {
        let state = self.state();
        let option = option_of(&state.config_options, "model");
        let current = option.map(|option| &option["currentValue"]);
        let current = current.unwrap_or(&state.opened["models"]["currentModelId"]);
        current.as_str().map(str::to_owned)
    }

    /// Has the agent use another model.
    pub async fn choose_model(&self, model: &str) -> Result<(), RpcError> {
        let known = self.known_models();
        if !known.iter().any(|it| it["id"] == model) {
            let names: Vec<_> = known.iter().filter_map(|it| it["id"].as_str()).collect();
            let there_are = match &*names {
                [] => "it does not let its model be chosen".to_owned(),
                names => format!("there are: {}", names.join(", ")),
            };
            let message = format!("{} has no model {model:?}; {there_are}", self.definition.name);
            return Err(RpcError::invalid_params(message));
        }
        self.state().kept_model = Some(model.to_owned());
        let by_option = option_of(&self.state().config_options, "model").is_some();
        if by_option {
            self.set_option("model", model).await
        } else {
            self.agent_request("session/set_model", json!({ "modelId": model })).await?;
            Ok(())
        }
    }

    /// Sets the option of a category.
    async fn set_option(&self, category: &str, value: &str) -> Result<(), RpcError> {
        let id = option_of(&self.state().config_options, category).map(|it| it["id"].clone());
        let Some(id) = id else { return Ok(()) };
        let params = json!({ "configId": id, "value": value });
        self.agent_request("session/set_config_option", params).await?;
        Ok(())
    }
}

/// The option of a category, or of that name.
fn option_of<'a>(options: &'a Value, category: &str) -> Option<&'a Value> {
    let options = options.as_array()?;
    let of_category = options.iter().find(|option| option["category"] == category);
    of_category.or_else(|| options.iter().find(|option| option["id"] == category))
}

/// The values of an option, also those in groups.
fn values_of(option: &Value) -> impl Iterator<Item = &Value> {
    let values = option["options"].as_array().into_iter().flatten();
    values.flat_map(|value| match value["options"].as_array() {
        Some(group) => group.iter().collect::<Vec<_>>(),
        None => vec![value],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(permissions: PermissionMode, available: &[&str]) -> Option<String> {
        let available: Vec<String> = available.iter().map(|&mode| mode.to_owned()).collect();
        best_mode(permissions, &available).map(str::to_owned)
    }

    #[test]
    fn an_agent_is_kept_asking_where_it_can_be() {
        let claude = ["default", "acceptEdits", "plan", "auto", "bypassPermissions"];
        for permissions in
            [PermissionMode::Ask, PermissionMode::ApproveReads, PermissionMode::ApproveAll]
        {
            assert_eq!(best(permissions, &claude).as_deref(), Some("default"));
        }
        assert_eq!(best(PermissionMode::DenyAll, &claude).as_deref(), Some("plan"));
        let codex = ["read-only", "workspace-write", "agent", "agent-full-access"];
        assert_eq!(best(PermissionMode::Ask, &codex).as_deref(), Some("workspace-write"));
        let copilot = ["https://example.org/modes#agent", "https://example.org/modes#plan"];
        assert_eq!(best(PermissionMode::Ask, &copilot).as_deref(), Some(copilot[0]));
    }

    #[test]
    fn without_a_mode_that_asks_the_permission_is_mapped() {
        let modes = ["read-only", "full-access"];
        assert_eq!(best(PermissionMode::ApproveAll, &modes).as_deref(), Some("full-access"));
        assert_eq!(best(PermissionMode::ApproveReads, &modes).as_deref(), Some("read-only"));
        assert_eq!(best(PermissionMode::DenyAll, &modes).as_deref(), Some("read-only"));
        assert_eq!(best(PermissionMode::Ask, &["yolo"]), None);
    }
}
