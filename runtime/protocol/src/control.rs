//! The control socket of an isolate host: orders from the session, reports from the host.

use serde::Deserialize;
use serde::Serialize;

use crate::message::IsolateUsage;
use crate::message::LoadSpec;
use crate::slots::Slot;

/// The command of the binary that makes it an isolate host.
pub const COMMAND: &str = "isolate-host";

/// Identifies an isolate within its host.
pub type IsolateId = u64;

/// From the session's process to the host's.
#[derive(Debug, Serialize, Deserialize)]
pub enum Order {
    /// Comes first, with the shared memory; answered by [`Report::Ready`].
    Setup {
        /// Whether an isolate is kept warm.
        spare: bool,
    },
    /// Comes with the socket of the isolate.
    Start {
        /// The isolate's number from now on.
        isolate: IsolateId,
        /// Its word in the shared memory.
        slot: Slot,
        /// The extension.
        spec: Box<LoadSpec>,
    },
    /// The isolate was told to stop; it is ended by force when it does not.
    ExpectEnd {
        /// Which one.
        isolate: IsolateId,
    },
    /// End an isolate now.
    Terminate {
        /// Which one.
        isolate: IsolateId,
        /// Why, in words.
        reason: String,
    },
    /// Say whether the start deadline of an isolate counts.
    HoldStart {
        /// Which one.
        isolate: IsolateId,
        /// It does not count for now.
        held: bool,
    },
    /// No more extensions will come: there is no need for a spare.
    GiveUpSpare,
    /// Answered by [`Report::Answer`].
    Usage {
        /// Echoed in the answer.
        request: u64,
    },
    /// Answered when the spare, if one is kept, is ready.
    AwaitSpare {
        /// Echoed in the answer.
        request: u64,
    },
}

/// From the host's process to the session's.
#[derive(Debug, Serialize, Deserialize)]
pub enum Report {
    /// The host is set up.
    Ready {
        /// How many isolates may end in the host before it takes no new ones; no limit if there is none.
        max_ended: Option<usize>,
    },
    /// The answer to an order with a request number.
    Answer {
        /// The order's number.
        request: u64,
        /// What isolates use, if that was asked.
        usage: Vec<(IsolateId, IsolateUsage)>,
    },
}
