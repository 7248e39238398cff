//! Why a process could not be confined.

use std::io;

use crate::layers::Layer;

/// A process could not be confined as asked. Some layers may be in force already, so the caller ends the process.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// Other threads would go on without any restriction.
    #[error("{threads} threads run in this process, but only one can be confined")]
    NotAlone {
        /// All threads, with the calling one.
        threads: u64,
    },
    /// The system has no such layer, or not all of it that is needed.
    #[error("{layer} is not available: {reason}")]
    Missing {
        /// What is missing.
        layer: Layer,
        /// What was found instead.
        reason: String,
    },
    /// The system has the layer, but did not apply it.
    #[error("{layer}: cannot {action}: {source}")]
    Failed {
        /// What failed.
        layer: Layer,
        /// What was tried.
        action: String,
        /// What the system said.
        source: io::Error,
    },
    /// The extension's own folder, or the system's root, cannot be resolved.
    #[error("cannot resolve {path}: {source}")]
    Unresolved {
        /// As given.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

impl SandboxError {
    /// The last error of the C library, while trying something.
    #[cfg(target_os = "linux")]
    pub(crate) fn last(layer: Layer, action: impl Into<String>) -> Self {
        Self::failed(layer, action, io::Error::last_os_error())
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn failed(layer: Layer, action: impl Into<String>, source: io::Error) -> Self {
        Self::Failed { layer, action: action.into(), source }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotAlone { .. } => "confine the process before it starts its first thread",
            Self::Missing { layer, .. } | Self::Failed { layer, .. } => layer.hint(),
            Self::Unresolved { .. } => "check that the folder exists and can be searched",
        }
    }
}
