//! What the program says when it cannot do what it was asked: what happened, why, what to do.

use anstream::eprintln;

use tenon_acp::config::AgentsConfigError;
use tenon_host::session::SessionError;

use crate::output::BOLD;
use crate::output::GREEN;
use crate::output::RED;
use crate::sanitise::clean;

/// What to do about a configuration that cannot be used.
const CORRECT: &str = "correct the file, or move it away";

/// An error for a person to read.
#[derive(Debug)]
pub struct CliError {
    message: String,
    hints: Vec<String>,
}

impl CliError {
    /// What happened.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hints: Vec::new() }
    }

    /// What to do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// What happened, without what to do about it.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Prints it to standard error. What agents say about their errors is part of it.
    pub fn print(&self) {
        eprintln!("{RED}error{RED:#}{BOLD}:{BOLD:#} {}", clean(&self.message));
        for hint in self.hints.iter().map(|hint| clean(hint)) {
            eprintln!("{GREEN}hint{GREEN:#}{BOLD}:{BOLD:#} {hint}");
        }
    }
}

impl From<SessionError> for CliError {
    fn from(error: SessionError) -> Self {
        let described = Self::new(error.to_string());
        match error {
            SessionError::Config(_) => described.hint(CORRECT),
            _ => described,
        }
    }
}

impl From<AgentsConfigError> for CliError {
    fn from(error: AgentsConfigError) -> Self {
        Self::new(error.to_string()).hint(CORRECT)
    }
}

impl From<std::io::Error> for CliError {
    fn from(error: std::io::Error) -> Self {
        Self::new(error.to_string())
    }
}

impl From<serde_json::Error> for CliError {
    fn from(error: serde_json::Error) -> Self {
        Self::new(error.to_string())
    }
}
