//! What there is to say about extensions to those who manage them: people, agents, other programs.

use serde::Deserialize;
use serde::Serialize;
use tenon_protocol::message::ReadyReport;

use crate::extension::CommandDeclaration;
use crate::extension::ExtensionInfo;
use crate::extension::HookDeclaration;
use crate::extension::LoadError;
use crate::extension::Status;
use crate::store::StoreError;
use crate::tool::SharedTool;

/// What a reload has come to.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ReloadReport {
    /// Every extension, as it is now.
    pub extensions: Vec<ExtensionInfo>,
    /// Those that were loaded again.
    pub reloaded: Vec<String>,
    /// Those that are new.
    pub added: Vec<String>,
    /// Those that are gone.
    pub removed: Vec<String>,
    /// Those whose newest files wait for the person's approval. One that ran before goes on with what it had.
    pub waiting: Vec<String>,
    /// Those whose newest files do not load. One that ran before goes on with what it had.
    pub failed: Vec<String>,
}

/// What an extension uses, and how it fares.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExtensionUsage {
    /// `scope:name`.
    pub id: String,
    /// Where it is in its life.
    pub status: Status,
    /// How often it was loaded.
    pub generation: u32,
    /// The process it runs in.
    pub pid: Option<u32>,
    /// CPU time of its load that serves, in microseconds.
    pub cpu_us: u64,
    /// Its heap, in bytes.
    pub heap_bytes: u64,
    /// Its memory outside the heap, in bytes.
    pub buffer_bytes: u64,
    /// Calls of its tools, hooks, commands and handlers.
    pub calls: u64,
    /// Those that failed.
    pub errors: u64,
    /// How long the last one took, in microseconds.
    pub last_latency_us: Option<u64>,
    /// How often it was started again after a failure.
    pub restarts: u32,
}

/// An extension could not be managed.
#[derive(Debug, thiserror::Error)]
pub enum ManageError {
    /// There is none of that name.
    #[error("there is no extension \"{name}\"; there are: {}", names(available))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        available: Vec<String>,
    },
    /// There are several of that name.
    #[error("there are several extensions \"{name}\"; use one of the ids {}", ids.join(", "))]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// Their ids.
        ids: Vec<String>,
    },
    /// It could not be remembered.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It cannot be done to this one.
    #[error("{id} cannot be changed: {why}")]
    NotHere {
        /// Which one.
        id: String,
        /// Why.
        why: String,
    },
}

fn names(available: &[String]) -> String {
    if available.is_empty() { "none".to_owned() } else { available.join(", ") }
}

/// What loading an extension once, on trial, has come to.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CheckReport {
    /// Whether it loads and joins.
    pub ok: bool,
    /// Why it does not.
    pub error: Option<LoadError>,
    /// The tools it would have.
    pub tools: Vec<SharedTool>,
    /// The hooks it would have.
    pub hooks: Vec<HookDeclaration>,
    /// The commands it would have.
    pub commands: Vec<CommandDeclaration>,
    /// What its author should look at.
    pub warnings: Vec<String>,
    /// What getting ready cost.
    pub ready: Option<ReadyReport>,
}
