//! The agents that are known by name.

use std::ffi::OsStr;
use std::path::PathBuf;

use serde::Serialize;

/// An agent and the command that makes it speak ACP on its standard input and output.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct AgentProfile {
    /// The name people use.
    pub name: &'static str,
    /// The program.
    pub program: &'static str,
    /// Its arguments.
    pub args: &'static [&'static str],
    /// The npm package it comes in.
    pub package: &'static str,
}

/// Every known agent, by name.
pub const PROFILES: [AgentProfile; 6] = [
    AgentProfile {
        name: "claude",
        program: "claude-agent-acp",
        args: &[],
        package: "@agentclientprotocol/claude-agent-acp",
    },
    AgentProfile {
        name: "codex",
        program: "codex-acp",
        args: &[],
        package: "@agentclientprotocol/codex-acp",
    },
    AgentProfile {
        name: "copilot",
        program: "copilot",
        args: &["--acp"],
        package: "@github/copilot",
    },
    AgentProfile {
        name: "gemini",
        program: "gemini",
        args: &["--acp"],
        package: "@google/gemini-cli",
    },
    AgentProfile { name: "opencode", program: "opencode", args: &["acp"], package: "opencode-ai" },
    AgentProfile {
        name: "qwen",
        program: "qwen",
        args: &["--acp"],
        package: "@qwen-code/qwen-code",
    },
];

impl AgentProfile {
    /// Where its program is, if it is installed in one of the folders of `path`.
    pub fn locate(&self, path: &OsStr) -> Option<PathBuf> {
        std::env::split_paths(path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(self.program))
            .find(|program| program.is_file())
    }

    /// The command as a person would type it.
    pub fn command(&self) -> String {
        std::iter::once(self.program).chain(self.args.iter().copied()).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_in_absolute_folders_only() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join("gemini"), "").unwrap();
        let gemini = PROFILES.iter().find(|profile| profile.name == "gemini").unwrap();
        let path = std::env::join_paths([std::path::Path::new("relative"), temp.path()]).unwrap();
        assert_eq!(gemini.locate(&path), Some(temp.path().join("gemini")));
        assert_eq!(gemini.locate(OsStr::new("relative")), None);
        assert_eq!(gemini.command(), "gemini --acp");
    }

    #[test]
    fn profiles_are_sorted_by_name() {
        assert!(PROFILES.is_sorted_by_key(|profile| profile.name));
    }
}
