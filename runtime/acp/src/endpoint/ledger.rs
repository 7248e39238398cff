//! Which tool call of an agent a call by MCP belongs to. The agent announces its calls by ACP and makes them by
//! MCP; some say in both places which call it is, with others it has to be told from the name and the arguments.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use parking_lot::MutexGuard;
use serde_json::Value;
use tokio::sync::watch;

/// The most announcements that wait to be claimed, and the most claims that are remembered. Both are forgotten
/// when a call is over; this is for agents that do not say so.
pub const MAX_REMEMBERED: usize = 1024;

/// Where agents write the id of the tool call: Claude, Codex, and what others may be expected to use.
const META_IDS: [&str; 3] = ["claudecode/toolUseId", "callId", "toolCallId"];

/// How long a call by MCP waits for its announcement by ACP, so that what the agent said and did before it comes
/// before it.
const ANNOUNCEMENT_PATIENCE: Duration = Duration::from_secs(3);

/// The same for an agent that has let one go unannounced.
const LITTLE_PATIENCE: Duration = Duration::from_millis(20);

/// The calls that an agent has announced.
#[derive(Default)]
pub struct CallLedger {
    state: Mutex<State>,
    /// Rung with every announcement.
    announced: watch::Sender<()>,
    /// The agent does not announce all its calls before it makes them.
    careless: AtomicBool,
}

#[derive(Default)]
struct State {
    /// In the order in which they were announced.
    open: VecDeque<Announced>,
    /// Ids that belong to a call by MCP already.
    claimed: VecDeque<String>,
}

struct Announced {
    id: String,
    tool: String,
    /// Some agents tell them later, or not at all.
    args: Option<Value>,
}

impl CallLedger {
    /// The agent has announced a call of one of our tools; again with the same id: it knows more about it.
    pub fn announce(&self, tool: &str, args: Option<&Value>, acp_id: &str) {
        let mut state = self.state();
        if state.claimed.iter().any(|id| id == acp_id) {
            return;
        }
        if let Some(known) = state.open.iter_mut().find(|it| it.id == acp_id) {
            known.tool = tool.to_owned();
            if let Some(args) = args {
                known.args = Some(args.clone());
            }
            return;
        }
        if state.open.len() >= MAX_REMEMBERED {
            state.open.pop_front();
        }
        let announced =
            Announced { id: acp_id.to_owned(), tool: tool.to_owned(), args: args.cloned() };
        state.open.push_back(announced);
        drop(state);
        self.announced.send_replace(());
    }

    /// Waits for the announcement of a call that has come by MCP, under any of these names, for a moment.
    pub(super) async fn announced(&self, tools: &[&str], meta: &Value) {
        let id = id_in(meta);
        let is_there = || {
            let state = self.state();
            state.open.iter().any(|it| tools.contains(&&*it.tool) || Some(&*it.id) == id)
        };
        let mut announced = self.announced.subscribe();
        let wait = async {
            loop {
                announced.borrow_and_update();
                if is_there() || announced.changed().await.is_err() {
                    break;
                }
            }
        };
        let careless = self.careless.load(Ordering::Relaxed);
        let patience = if careless { LITTLE_PATIENCE } else { ANNOUNCEMENT_PATIENCE };
        // Without it, the call is only seen a little out of order.
        if tokio::time::timeout(patience, wait).await.is_err() {
            self.careless.store(true, Ordering::Relaxed);
        }
    }

    /// A call has come by MCP: which announced call it is, if that can be told. Nobody else gets the same
    /// id. In this order: what `_meta` says; the first announced with the same name and arguments; the only
    /// one of that name whose arguments are not known; the only one of that name.
    pub fn claim(&self, tool: &str, args: &Value, meta: Option<&Value>) -> Option<String> {
        let mut state = self.state();
        if let Some(id) = meta.and_then(id_in) {
            if state.claimed.iter().any(|claimed| claimed == id) {
                return None;
            }
            // It counts before it was announced, too: the two ways are not equally fast.
            state.open.retain(|it| it.id != id);
            state.remember(id.to_owned());
            return Some(id.to_owned());
        }
        let place = state.matching(tool, args)?;
        let id = state.open.remove(place)?.id;
        state.remember(id.clone());
        Some(id)
    }

    /// A call is over. Its id may be used again.
    pub fn forget(&self, acp_id: &str) {
        let mut state = self.state();
        state.open.retain(|it| it.id != acp_id);
        state.claimed.retain(|id| id != acp_id);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    fn matching(&self, tool: &str, args: &Value) -> Option<usize> {
        let of_tool = || self.open.iter().enumerate().filter(|(_, it)| it.tool == tool);
        let same = of_tool().find(|(_, it)| it.args.as_ref() == Some(args));
        let found = same
            .or_else(|| only(of_tool().filter(|(_, it)| it.args.is_none())))
            .or_else(|| only(of_tool()))?;
        Some(found.0)
    }

    fn remember(&mut self, id: String) {
        if self.claimed.len() >= MAX_REMEMBERED {
            self.claimed.pop_front();
        }
        self.claimed.push_back(id);
    }
}

/// The only one there is.
fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.next().is_none().then_some(first)
}

fn id_in(meta: &Value) -> Option<&str> {
    META_IDS.iter().find_map(|name| meta.get(name)?.as_str()).filter(|id| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_agent_says_about_a_call_counts_most() {
        let ledger = CallLedger::default();
        let args = json!({ "text": "same" });
        ledger.announce("echo", Some(&args), "first");
        ledger.announce("echo", Some(&args), "second");
        let claude = json!({ "claudecode/toolUseId": "second" });
        assert_eq!(ledger.claim("echo", &args, Some(&claude)).as_deref(), Some("second"));
        // Not announced yet, which may still come.
        let codex = json!({ "callId": "third", "progressToken": 1 });
        assert_eq!(ledger.claim("echo", &args, Some(&codex)).as_deref(), Some("third"));
        ledger.announce("echo", Some(&args), "third");
        assert_eq!(ledger.claim("echo", &args, Some(&json!({}))).as_deref(), Some("first"));
        assert_eq!(ledger.claim("echo", &args, None), None);
    }

    #[test]
    fn an_id_is_given_once_until_its_call_is_over() {
        let ledger = CallLedger::default();
        let meta = json!({ "callId": "call_1" });
        assert!(ledger.claim("echo", &json!({}), Some(&meta)).is_some());
        assert_eq!(ledger.claim("echo", &json!({}), Some(&meta)), None);
        ledger.forget("call_1");
        assert!(ledger.claim("echo", &json!({}), Some(&meta)).is_some());
    }

    #[test]
    fn equal_arguments_decide_between_calls_of_one_tool() {
        let ledger = CallLedger::default();
        ledger.announce("echo", Some(&json!({ "a": 1, "b": 2 })), "one");
        ledger.announce("echo", Some(&json!({ "a": 2 })), "two");
        // The order of the fields does not matter.
        let args = json!({ "b": 2, "a": 1 });
        assert_eq!(ledger.claim("echo", &json!({ "a": 3 }), None), None);
        assert_eq!(ledger.claim("echo", &args, None).as_deref(), Some("one"));
        assert_eq!(ledger.claim("other", &json!({ "a": 2 }), None), None);
    }

    #[test]
    fn a_name_is_enough_where_only_one_call_has_it() {
        let ledger = CallLedger::default();
        ledger.announce("echo", Some(&json!({ "a": 1 })), "known");
        ledger.announce("echo", None, "unknown");
        assert_eq!(ledger.claim("echo", &json!({ "a": 2 }), None).as_deref(), Some("unknown"));
        assert_eq!(ledger.claim("echo", &json!({ "a": 2 }), None).as_deref(), Some("known"));
        ledger.announce("echo", None, "three");
        ledger.announce("echo", None, "four");
        assert_eq!(ledger.claim("echo", &json!({}), None), None);
    }

    #[test]
    fn arguments_that_are_told_later_count() {
        let ledger = CallLedger::default();
        ledger.announce("echo", None, "one");
        ledger.announce("echo", None, "two");
        ledger.announce("echo", Some(&json!({ "a": 2 })), "two");
        ledger.announce("echo", None, "two");
        assert_eq!(ledger.claim("echo", &json!({ "a": 2 }), None).as_deref(), Some("two"));
    }

    #[test]
    fn a_call_that_is_over_is_not_claimed() {
        let ledger = CallLedger::default();
        ledger.announce("echo", None, "one");
        ledger.forget("one");
        assert_eq!(ledger.claim("echo", &json!({}), None), None);
    }

    #[test]
    fn an_agent_that_never_finishes_its_calls_does_not_fill_the_memory() {
        let ledger = CallLedger::default();
        for number in 0..2 * MAX_REMEMBERED {
            ledger.announce("echo", None, &format!("open-{number}"));
            let meta = json!({ "callId": format!("claimed-{number}") });
            ledger.claim("echo", &json!({}), Some(&meta));
        }
        let state = ledger.state();
        assert_eq!((state.open.len(), state.claimed.len()), (MAX_REMEMBERED, MAX_REMEMBERED));
    }
}
