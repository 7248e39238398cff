//! Which sessions the client has open, and what each is called by whom.

use std::collections::HashMap;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use parking_lot::MutexGuard;

use super::ids;
use super::live::LiveSession;
use crate::record;
use crate::record::SessionRecord;
use crate::rpc::RpcError;

/// The sessions of a client, by what it calls them.
#[derive(Default)]
pub struct Sessions(Mutex<State>);

#[derive(Default)]
struct State {
    live: HashMap<String, Arc<LiveSession>>,
    opening: HashSet<String>,
    /// The client is gone; nothing is opened any more.
    ended: bool,
}

impl Sessions {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// The session that the client calls so.
    pub fn get(&self, id: &str) -> Option<Arc<LiveSession>> {
        self.state().live.get(id).cloned()
    }

    /// Takes a session away, to be closed.
    pub fn take(&self, id: &str) -> Option<Arc<LiveSession>> {
        self.state().live.remove(id)
    }

    /// Keeps a name for a session that is being opened, until the answer is dropped. One that is open already is
    /// taken away, to be closed first.
    pub fn reserve(
        self: &Arc<Self>,
        id: &str,
    ) -> Result<(Reserved, Option<Arc<LiveSession>>), RpcError> {
        let mut state = self.state();
        if state.ended {
            return Err(RpcError::closed());
        }
        if !state.opening.insert(id.to_owned()) {
            let message = format!("session {id} is being opened already");
            return Err(RpcError::new(RpcError::INVALID_REQUEST, message));
        }
        let before = state.live.remove(id);
        Ok((Reserved { sessions: self.clone(), id: id.to_owned() }, before))
    }

    /// Adds a session; false if the client is gone.
    pub fn insert(&self, id: &str, live: Arc<LiveSession>) -> bool {
        let mut state = self.state();
        if state.ended {
            return false;
        }
        state.live.insert(id.to_owned(), live);
        true
    }

    /// The client is gone: every session, to be closed.
    pub fn end(&self) -> Vec<Arc<LiveSession>> {
        let mut state = self.state();
        state.ended = true;
        state.live.drain().map(|(_, live)| live).collect()
    }

    /// What the client calls the sessions that are open, by what the agent calls them.
    pub fn client_names(&self) -> HashMap<String, String> {
        let state = self.state();
        let name = |(id, live): (&String, &Arc<LiveSession>)| {
            (live.conversation.acp_session_id(), id.clone())
        };
        state.live.iter().map(name).collect()
    }
}

/// A name of a session that is being opened.
pub struct Reserved {
    sessions: Arc<Sessions>,
    id: String,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.sessions.state().opening.remove(&self.id);
    }
}

/// What is remembered of a session, by our name for it or by the agent's. One of another agent is none that this
/// agent could know.
pub fn remembered(home: &Path, agent: &str, id: &str) -> Result<Option<SessionRecord>, RpcError> {
    if ids::can_be_ours(id)
        && let Some(record) = record::read(home, id)
    {
        if record.agent == agent {
            return Ok(Some(record));
        }
        let message = format!(
            "session {id} was begun with {0}; it goes on with `tenon acp -a {0}`",
            record.agent
        );
        return Err(RpcError::invalid_params(message));
    }
    Ok(record::list(home).into_iter().find(|record| is_agents(record, agent, id)))
}

fn is_agents(record: &SessionRecord, agent: &str, id: &str) -> bool {
    record.agent == agent && record.acp_session_id.as_deref() == Some(id)
}

/// What the client calls sessions that the agent lists: what it called them already, else our name, if it is one
/// of ours.
pub fn names(
    open: HashMap<String, String>,
    records: Vec<SessionRecord>,
    agent: &str,
) -> HashMap<String, String> {
    let mut names = HashMap::new();
    for record in records {
        if record.agent == agent
            && let Some(native) = record.acp_session_id
        {
            // The newest comes first.
            names.entry(native).or_insert(record.id);
        }
    }
    names.extend(open);
    names
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn record(id: &str, agent: &str, native: &str) -> SessionRecord {
        SessionRecord {
            id: id.to_owned(),
            agent: agent.to_owned(),
            acp_session_id: Some(native.to_owned()),
            cwd: PathBuf::from("/work"),
            title: None,
            created: "2026-01-01T00:00:00.000Z".to_owned(),
            updated: "2026-01-01T00:00:00.000Z".to_owned(),
        }
    }

    #[test]
    fn a_session_is_found_by_our_name_and_by_the_agents() {
        let home = tempfile::tempdir().unwrap();
        record::write(home.path(), &record("ours", "demo", "native")).unwrap();
        record::write(home.path(), &record("other", "claude", "theirs")).unwrap();
        let found = |id: &str| remembered(home.path(), "demo", id).map(|it| it.map(|it| it.id));
        assert_eq!(found("ours").unwrap().as_deref(), Some("ours"));
        assert_eq!(found("native").unwrap().as_deref(), Some("ours"));
        assert_eq!(found("theirs").unwrap(), None);
        assert_eq!(found("../ours").unwrap(), None);
        let refused = found("other").unwrap_err();
        assert!(refused.message.contains("tenon acp -a claude"), "{refused}");
    }

    #[test]
    fn a_listed_session_keeps_the_name_that_the_client_gave_it() {
        let open = HashMap::from([("b".to_owned(), "b".to_owned())]);
        let records = vec![
            record("new-a", "demo", "a"),
            record("old-a", "demo", "a"),
            record("ours-b", "demo", "b"),
            record("ours-c", "claude", "c"),
        ];
        let names = names(open, records, "demo");
        assert_eq!(names.get("a").map(String::as_str), Some("new-a"));
        assert_eq!(names.get("b").map(String::as_str), Some("b"));
        assert_eq!(names.get("c"), None);
    }

    #[test]
    fn a_name_is_free_again_when_its_opening_is_over() {
        let sessions = Arc::new(Sessions::default());
        let (reserved, before) = sessions.reserve("a").unwrap();
        assert!(before.is_none());
        assert!(sessions.reserve("a").is_err());
        assert!(sessions.reserve("b").is_ok());
        drop(reserved);
        assert!(sessions.reserve("a").is_ok());
    }

    #[test]
    fn after_the_client_has_gone_nothing_is_opened() {
        let sessions = Arc::new(Sessions::default());
        assert!(sessions.end().is_empty());
        assert!(sessions.reserve("a").is_err_and(|error| error.is_closed()));
    }
}
