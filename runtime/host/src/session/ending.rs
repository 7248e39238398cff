//! The end of a session: hooks, the last events, every extension stopped.

use std::time::SystemTime;

use serde_json::json;
use tenon_protocol::limits;

use super::Session;
use crate::front::Context;
use crate::hooks::lifecycle::SessionEnd;
use crate::layout::FILES;

/// Why a session ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndReason {
    /// Its work is done.
    Complete,
    /// Something went wrong.
    Error(String),
    /// It was aborted.
    Abort,
    /// It took too long.
    Timeout,
    /// The person left.
    UserExit,
}

impl EndReason {
    fn as_str(&self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Error(_) => "error",
            Self::Abort => "abort",
            Self::Timeout => "timeout",
            Self::UserExit => "user_exit",
        }
    }
}

/// Where a session is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// It takes nothing more and is being stopped.
    Ending,
    /// Everything in it is stopped.
    Ended,
}

/// Says that the session has ended, however that came about.
struct Over<'a>(&'a Session);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.0.phase.send_replace(Phase::Ended);
    }
}

impl Session {
    /// Ends the conversation: what runs is aborted, `onSessionEnd` runs, and every extension is stopped,
    /// all at once. What they last said is in their logs then. It goes on to its end also when nobody
    /// waits; whoever asks again waits for the same end. An agent or a front must not wait for it inside
    /// something that the session waits for.
    pub async fn end(&self, reason: EndReason) {
        if !std::mem::replace(&mut self.facts().ended, true) {
            self.0.phase.send_replace(Phase::Ending);
            let session = self.clone();
            self.0.runtime.spawn(async move {
                // Dropped also when something panics: whoever waits for the end must not wait for ever.
                let over = Over(&session);
                over.0.finish(reason).await;
            });
        }
        // The sender lives as long as we do.
        let _ = self.0.phase.subscribe().wait_for(|phase| *phase == Phase::Ended).await;
    }

    /// Waits until somebody ends the session.
    pub(super) async fn ending(&self) {
        // The sender lives as long as we do.
        let _ = self.0.phase.subscribe().wait_for(|phase| *phase != Phase::Open).await;
    }

    async fn finish(&self, reason: EndReason) {
        if self.0.queue.close() {
            self.abort("user_initiated");
            self.idle().await;
        }
        let _alone = self.0.lifecycle.lock().await;
        if self.facts().begun {
            self.say_goodbye(&reason).await;
        }
        // The last events are often what an extension waits for; one that does not take them is not
        // waited for.
        let _ = tokio::time::timeout(limits::LAST_EVENTS_DEADLINE, self.0.bus.drained()).await;
        self.stop_extensions().await;
        self.on_disk(Self::hold_what_changed).await;
        if let Some(agent) = &self.0.options.agent {
            agent.close().await;
        }
        if let Some(files) = self.0.log_files.clone() {
            let _ = self.0.runtime.spawn_blocking(move || files.flush()).await;
        }
        self.0.bus.sync().await;
        self.0.bus.release();
        // The folders stay if there is something in them.
        let _ = std::fs::remove_dir(self.0.folder.join(FILES));
        let _ = std::fs::remove_dir(&self.0.folder);
    }

    async fn say_goodbye(&self, reason: &EndReason) {
        let error = match reason {
            EndReason::Error(error) => Some(error.clone()),
            _ => None,
        };
        let chain = SessionEnd {
            reason: reason.as_str(),
            final_message: self.facts().final_message.clone(),
            error: error.clone(),
            ..SessionEnd::default()
        };
        let chain = self.hooks().run(chain).await;
        self.keep_summary(&chain);
        let told = |kind: &str, said: &Context| {
            let mut data = json!({
                "infoType": kind,
                "message": format!("{}: {}", said.extension, said.text),
                "extensionId": said.extension,
            });
            if chain.suppress_output {
                data["suppressOutput"] = true.into();
            }
            self.emit("session.info", data);
        };
        chain.summaries.iter().for_each(|summary| told("session_summary", summary));
        chain.cleanup.iter().for_each(|action| told("cleanup", action));
        let (started, metrics) = {
            let facts = self.facts();
            let started = facts.started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            (started.as_millis() as u64, facts.usage.clone())
        };
        let mut data = json!({
            "shutdownType": if error.is_some() { "error" } else { "routine" },
            "sessionStartTime": started,
            "totalApiDurationMs": 0,
            "totalPremiumRequests": 0,
            "codeChanges": { "linesAdded": 0, "linesRemoved": 0, "filesModified": [] },
            "modelMetrics": metrics,
        });
        if let Some(error) = error {
            data["errorReason"] = error.into();
        }
        self.emit("session.shutdown", data);
    }

    /// Stops every load of every extension, all at once. Until an isolate has ended, its requests are
    /// answered.
    async fn stop_extensions(&self) {
        let peers = self.0.extensions.update(|table| table.all_end());
        let stopping = peers.into_iter().map(|peer| {
            let session = self.clone();
            self.0.runtime.spawn(async move { session.end_load(&peer).await })
        });
        for stopped in stopping.collect::<Vec<_>>() {
            // A panic in one must not keep the others from being waited for.
            let _ = stopped.await;
        }
    }
}
