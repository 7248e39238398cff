//! A session that the client has open.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tenon_host::Session;
use tenon_host::control::ControlGuard;
use tenon_host::discovery;
use tenon_host::session::EndReason;
use tokio::sync::watch;

use super::front::ClientFront;
use super::messages;
use super::messages::Standing;
use super::notices::NoticeQueue;
use super::notices::NoticeWriter;
use super::notices::QueuedNotices;
use crate::conversation::Conversation;

/// How long a cancellation waits for a prompt that was sent before it. Each request has a task of its own, which
/// may not have begun; nothing that the client sent later is read meanwhile.
const PROMPT_LEAD: Duration = Duration::from_millis(20);

/// A session that the client has open.
pub struct LiveSession {
    /// The session and its agent.
    pub conversation: Conversation,
    /// The client.
    pub front: Arc<ClientFront>,
    /// How many prompts of the client are worked on.
    prompting: watch::Sender<usize>,
    /// Counts up when the client cancels.
    cancels: watch::Sender<u64>,
    /// The client has sent a prompt.
    begun: AtomicBool,
    notices: NoticeQueue,
    /// Lets other processes reach the session.
    _control: Option<ControlGuard>,
}

impl LiveSession {
    /// A session that was opened; the client is about to hear of it, and then of what was queued before.
    pub async fn new(
        conversation: Conversation,
        front: Arc<ClientFront>,
        notices: NoticeQueue,
        queued: QueuedNotices,
    ) -> Arc<Self> {
        let session = conversation.session();
        front.opened(session).await;
        tokio::spawn(NoticeWriter::new(session, front.clone()).run(queued));
        // Who cannot be reached by others works all the same.
        let control = session.serve_control().ok();
        Arc::new(Self {
            conversation,
            front,
            prompting: watch::Sender::new(0),
            cancels: watch::Sender::new(0),
            begun: AtomicBool::new(false),
            notices,
            _control: control,
        })
    }

    /// The session.
    pub fn session(&self) -> &Session {
        self.conversation.session()
    }

    /// A prompt of the client is worked on, until the answer is dropped.
    pub fn prompting(self: &Arc<Self>) -> Prompting {
        self.prompting.send_modify(|count| *count += 1);
        Prompting { live: self.clone(), cancels: self.cancels.subscribe(), over: false }
    }

    /// The client does not want what is worked on.
    pub async fn cancel(&self) {
        let mut prompting = self.prompting.subscribe();
        // If nothing comes, there is nothing to cancel, or an extension has sent it.
        let _ = tokio::time::timeout(PROMPT_LEAD, prompting.wait_for(|count| *count > 0)).await;
        self.cancels.send_modify(|count| *count += 1);
        self.session().abort("user_initiated");
    }

    /// Says what there is to say before the first prompt.
    pub async fn first_words(&self) {
        if self.begun.swap(true, Ordering::Relaxed) {
            return;
        }
        let root = discovery::project_root(self.session().cwd()).display().to_string();
        for message in messages::first_words(&Standing::of(self.session()), &root) {
            self.front.show(&message).await;
        }
    }

    /// Waits until the client has been told everything that was said so far.
    pub async fn told(&self) {
        self.notices.told().await;
    }

    /// Ends the session. Its last words are told before the end.
    pub async fn close(&self, reason: EndReason) {
        self.front.closed();
        self.conversation.close(reason).await;
        self.notices.told().await;
        self.notices.end().await;
    }
}

/// A prompt of the client is worked on. One that nobody waits for any more is aborted.
pub struct Prompting {
    live: Arc<LiveSession>,
    cancels: watch::Receiver<u64>,
    over: bool,
}

impl Prompting {
    /// Waits until the client cancels.
    pub async fn cancelled(&mut self) {
        // The sender lives as long as the session, which we keep.
        let _ = self.cancels.changed().await;
    }

    /// It has ended.
    pub fn over(&mut self) {
        self.over = true;
    }
}

impl Drop for Prompting {
    fn drop(&mut self) {
        self.live.prompting.send_modify(|count| *count -= 1);
        if !self.over {
            self.live.session().abort("user_initiated");
        }
    }
}
