//! Which session a message of the agent belongs to.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Weak;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use parking_lot::MutexGuard;
use serde_json::Value;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;

use super::AgentSession;
use super::Outer;
use crate::rpc::Handler;
use crate::rpc::RpcError;

/// How many notifications are kept for sessions whose id is not known yet. Agents send a handful.
const MAX_EARLY: usize = 1_000;

/// How long a request about an unknown session waits while one is being opened: an agent may not answer before
/// it has its own answer.
const OPENING_PATIENCE: Duration = Duration::from_secs(5);

/// How many sessions are told of lines that are no messages, each: the first few say it all.
const MAX_GARBAGE_TOLD: u64 = 5;

/// Sorts what the agent sends by session.
pub struct Router {
    agent: String,
    outer: Option<Arc<dyn Outer>>,
    routes: Mutex<Routes>,
    /// Rung when a session was registered, or is no longer being opened.
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct Routes {
    sessions: HashMap<String, Weak<dyn AgentSession>>,
    /// Sessions that are being opened.
    opening: usize,
    early: HashMap<String, VecDeque<(String, Value)>>,
    early_count: usize,
    garbage: u64,
    last_garbage: Option<String>,
}

impl Router {
    pub fn new(agent: String, outer: Option<Arc<dyn Outer>>) -> Self {
        Self { agent, outer, routes: Mutex::default(), changed: watch::Sender::new(()) }
    }

    fn routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock()
    }

    /// A session is being opened, until the answer is dropped.
    pub fn opening(self: Arc<Self>) -> impl Drop {
        self.routes().opening += 1;
        Opening(self)
    }

    /// Delivers what was said of a session before its id was known, then what is said from now on; in order.
    pub async fn register(&self, acp_id: &str, session: Weak<dyn AgentSession>) {
        loop {
            let next = {
                let mut routes = self.routes();
                let next = routes.early.get_mut(acp_id).and_then(VecDeque::pop_front);
                match next {
                    Some(next) => {
                        routes.early_count -= 1;
                        next
                    }
                    None => {
                        routes.early.remove(acp_id);
                        routes.sessions.insert(acp_id.to_owned(), session);
                        break;
                    }
                }
            };
            if let Some(session) = session.upgrade() {
                session.notification(&next.0, next.1).await;
            }
        }
        self.changed.send_replace(());
    }

    pub fn unregister(&self, acp_id: &str) {
        self.routes().sessions.remove(acp_id);
    }

    /// The agent's process is a new one.
    pub fn begin(&self) {
        let mut routes = self.routes();
        routes.garbage = 0;
        routes.last_garbage = None;
    }

    /// The last line that was no message.
    pub fn last_garbage(&self) -> Option<String> {
        self.routes().last_garbage.clone()
    }

    /// The session of that id, once it is registered.
    async fn session_soon(&self, acp_id: &str) -> Option<Arc<dyn AgentSession>> {
        let mut changed = self.changed.subscribe();
        let until = Instant::now() + OPENING_PATIENCE;
        loop {
            changed.borrow_and_update();
            {
                let routes = self.routes();
                match routes.sessions.get(acp_id).and_then(Weak::upgrade) {
                    None if routes.opening > 0 => {}
                    known => return known,
                }
            }
            let next = tokio::time::timeout_at(until, changed.changed()).await;
            if !matches!(next, Ok(Ok(()))) {
                return None;
            }
        }
    }
}

#[async_trait]
impl Handler for Router {
    async fn notification(&self, method: String, params: Value) {
        let id = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let session = {
            let mut routes = self.routes();
            let session = routes.sessions.get(&id).and_then(Weak::upgrade);
            if session.is_none() && !id.is_empty() && routes.opening > 0 {
                if routes.early_count < MAX_EARLY {
                    routes.early_count += 1;
                    routes.early.entry(id).or_default().push_back((method, params));
                }
                return;
            }
            session
        };
        match (session, &self.outer) {
            (Some(session), _) => session.notification(&method, params).await,
            // A session that the agent has opened by itself, such as a sub-agent's.
            (None, Some(outer)) => pass_on(&**outer, &method, params).await,
            (None, None) => {}
        }
    }

    async fn request(&self, method: String, params: Value) -> Result<Value, RpcError> {
        if let Some(id) = params["sessionId"].as_str()
            && let Some(session) = self.session_soon(id).await
        {
            return session.request(&method, params).await;
        }
        // A session that the agent has opened by itself has no hooks and no policy, so it may do nothing that
        // needs them.
        if params["sessionId"].is_string() {
            if method == "session/request_permission" {
                return Ok(json!({ "outcome": { "outcome": "cancelled" } }));
            }
            if method.starts_with("fs/") || method.starts_with("terminal/") {
                return Err(RpcError::method_not_found(&method));
            }
        }
        let served = match &self.outer {
            Some(outer) => outer.request(&method, params).await,
            None => None,
        };
        served.unwrap_or_else(|| Err(RpcError::method_not_found(&method)))
    }

    fn garbage(&self, line: &str, why: &str) {
        let told = {
            let mut routes = self.routes();
            routes.last_garbage = Some(format!("on its output: {line}"));
            let told: Vec<_> = routes.sessions.values().filter_map(Weak::upgrade).collect();
            // What is printed before anybody listens, such as a greeting, is not counted.
            routes.garbage += u64::from(!told.is_empty());
            if routes.garbage > MAX_GARBAGE_TOLD {
                return;
            }
            told
        };
        for session in told {
            session.warn(
                "agent_output",
                &format!("{} printed something that is no message ({why}): {line}", self.agent),
            );
        }
    }
}

async fn pass_on(outer: &dyn Outer, method: &str, params: Value) {
    match method {
        "session/update" => outer.update(params).await,
        _ => outer.notification(method, params).await,
    }
}

struct Opening(Arc<Router>);

impl Drop for Opening {
    fn drop(&mut self) {
        let rest = {
            let mut routes = self.0.routes();
            routes.opening -= 1;
            if routes.opening > 0 {
                HashMap::new()
            } else {
                routes.early_count = 0;
                std::mem::take(&mut routes.early)
            }
        };
        self.0.changed.send_replace(());
        // What is left is of sessions that the agent has opened by itself.
        if let (false, Some(outer), Ok(runtime)) =
            (rest.is_empty(), self.0.outer.clone(), Handle::try_current())
        {
            runtime.spawn(async move {
                for (method, params) in rest.into_values().flatten() {
                    pass_on(&*outer, &method, params).await;
                }
            });
        }
    }
}
