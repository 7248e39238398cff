//! The zygote's socket: orders from sessions, reports from the zygote.
//!
//! The zygote forks a process for every extension. It reads nothing of what it starts: the process itself reads its
//! [`LoadSpec`](crate::message::LoadSpec) as the first frame of its own socket.

use serde::Deserialize;
use serde::Serialize;

/// The command of the binary that makes it a zygote.
pub const COMMAND: &str = "zygote";

/// Set to a number of seconds, it is how long the zygote outlives its last session.
pub const IDLE_VARIABLE: &str = "TENON_ZYGOTE_IDLE_S";

/// Identifies an extension's process to the session that asked for it; chosen by that session.
pub type ProcessNumber = u64;

/// From a session to the zygote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Fork a process. Two descriptors come along: its socket, and what its standard error is.
    Start {
        /// Its number from now on.
        process: ProcessNumber,
    },
    /// Kill a process with everything that it has started, detached or not.
    Kill {
        /// Which one.
        process: ProcessNumber,
    },
    /// Answered by [`Report::Pong`], once the engine is up.
    Ping {
        /// Echoed in the answer.
        request: u64,
    },
}

/// A limit of all processes of an extension together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupLimit {
    /// They took too much memory.
    Memory,
    /// There were too many processes and threads.
    Tasks,
}

/// A process exits with this code when nothing that it has started may outlive it, detached or not: that of a restricted
/// extension, or of one that had too many. What an extension has detached goes on only if its process has exited with zero.
pub const EXIT_WITH_ALL: i32 = 99;

/// From the zygote to a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// A process exists.
    Started {
        /// Which one.
        process: ProcessNumber,
        /// Its number in the system.
        pid: u32,
    },
    /// The system gave no process.
    Failed {
        /// Which one.
        process: ProcessNumber,
        /// What the system said.
        why: String,
    },
    /// A process has ended and was waited for.
    Ended {
        /// Which one.
        process: ProcessNumber,
        /// Its wait status.
        status: i32,
        /// The limit of its control group that ended it, if one did.
        limit: Option<GroupLimit>,
    },
    /// The answer to a [`Order::Ping`].
    Pong {
        /// The order's number.
        request: u64,
        /// The zygote's own number in the system.
        pid: u32,
    },
}
