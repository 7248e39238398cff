//! A session that is open: where it works, what it has been set to, and its turn.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use agent_client_protocol::v1::schema::SessionConfigOption;
use agent_client_protocol::v1::schema::SessionConfigOptionCategory;
use agent_client_protocol::v1::schema::SessionConfigSelectOption;
use agent_client_protocol::v1::schema::SessionId;
use agent_client_protocol::v1::schema::SessionMode;
use agent_client_protocol::v1::schema::SessionModeState;
use agent_client_protocol::v1::schema::ToolKind;
use parking_lot::Mutex;
use parking_lot::MutexGuard;
use tokio_util::sync::CancellationToken;

use super::mcp::Servers;
use super::store::Stored;

/// The mode in which it asks before it changes something.
pub(super) const DEFAULT_MODE: &str = "default";

/// The mode in which nothing is changed.
pub(super) const PLAN_MODE: &str = "plan";

/// The mode in which nobody is asked.
pub(super) const BYPASS_MODE: &str = "bypass";

/// The modes: id, name, description.
const MODES: [(&str, &str, &str); 3] = [
    (DEFAULT_MODE, "Default", "Asks before it runs commands or changes files"),
    (PLAN_MODE, "Plan", "Runs no commands and changes no files"),
    (BYPASS_MODE, "Bypass", "Asks nobody"),
];

/// The id of the option that chooses the model.
pub(super) const MODEL_OPTION: &str = "model";

/// The models: id and name. There is no model behind either.
const MODELS: [(&str, &str); 2] = [("demo-small", "Demo small"), ("demo-large", "Demo large")];

/// The model a session begins with.
pub(super) const FIRST_MODEL: &str = MODELS[0].0;

/// Whether there is a mode of this id.
pub(super) fn is_mode(id: &str) -> bool {
    MODES.iter().any(|(mode, ..)| *mode == id)
}

/// Whether there is a model of this id.
pub(super) fn is_model(id: &str) -> bool {
    MODELS.iter().any(|(model, _)| *model == id)
}

/// What changes in a session.
pub(super) struct State {
    /// What is kept of it.
    pub(super) stored: Stored,
    /// What is allowed from now on without asking.
    pub(super) always: Vec<ToolKind>,
    /// What was said to be used of the context, and how much of it there is.
    pub(super) usage: Option<(u64, u64)>,
}

/// An open session.
pub(super) struct Live {
    /// Its id.
    pub(super) id: SessionId,
    /// Where it works.
    pub(super) cwd: PathBuf,
    /// Its MCP servers.
    pub(super) servers: Servers,
    state: Mutex<State>,
    turn: Mutex<Option<CancellationToken>>,
    calls: AtomicU64,
}

impl Live {
    /// An open session with this conversation.
    pub(super) fn new(stored: Stored, cwd: PathBuf, servers: Servers) -> Self {
        Self {
            id: SessionId::new(stored.id.clone()),
            cwd,
            servers,
            state: Mutex::new(State { stored, always: Vec::new(), usage: None }),
            turn: Mutex::new(None),
            calls: AtomicU64::new(0),
        }
    }

    /// What changes in it. Let go of it before waiting for anything.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Begins a turn; `None` if there is one already.
    pub(super) fn begin_turn(&self) -> Option<CancellationToken> {
        let mut turn = self.turn();
        if turn.is_some() {
            return None;
        }
        Some(turn.insert(CancellationToken::new()).clone())
    }

    /// The turn is over.
    pub(super) fn end_turn(&self) {
        *self.turn() = None;
    }

    /// Asks the turn to end, if there is one.
    pub(super) fn cancel(&self) {
        if let Some(turn) = &*self.turn() {
            turn.cancel();
        }
    }

    fn turn(&self) -> MutexGuard<'_, Option<CancellationToken>> {
        self.turn.lock()
    }

    /// An id for a tool call, not used before in this conversation: not even by a process that ended in the middle
    /// of it.
    pub(super) fn next_call(&self) -> String {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        match self.state().stored.lives {
            0 | 1 => format!("call-{number}"),
            life => format!("call-{life}-{number}"),
        }
    }

    /// The id of its mode.
    pub(super) fn mode(&self) -> String {
        self.state().stored.mode.clone()
    }

    /// Its modes, as ACP has them.
    pub(super) fn modes(&self) -> SessionModeState {
        let modes = MODES
            .map(|(id, name, description)| SessionMode::new(id, name).description(description));
        SessionModeState::new(self.mode(), modes.to_vec())
    }

    /// Its options, as ACP has them.
    pub(super) fn config_options(&self) -> Vec<SessionConfigOption> {
        let models = MODELS.map(|(id, name)| SessionConfigSelectOption::new(id, name)).to_vec();
        let current = self.state().stored.model.clone();
        let option = SessionConfigOption::select(MODEL_OPTION, "Model", current, models);
        vec![option.category(SessionConfigOptionCategory::Model)]
    }
}
