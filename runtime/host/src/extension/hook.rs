//! The points in a session at which extensions are asked.

/// A point in a session at which extensions are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    SessionStart,
    UserPromptSubmitted,
    UserPromptTransformed,
    PreToolUse,
    PreMcpToolCall,
    PostToolUse,
    PostToolUseFailure,
    AgentStop,
    ErrorOccurred,
    SessionEnd,
    SubagentStart,
    SubagentStop,
}

impl Hook {
    /// The key in `joinSession({ hooks })`.
    pub fn name(self) -> &'static str {
        match self {
            Self::SessionStart => "onSessionStart",
            Self::UserPromptSubmitted => "onUserPromptSubmitted",
            Self::UserPromptTransformed => "onUserPromptTransformed",
            Self::PreToolUse => "onPreToolUse",
            Self::PreMcpToolCall => "onPreMcpToolCall",
            Self::PostToolUse => "onPostToolUse",
            Self::PostToolUseFailure => "onPostToolUseFailure",
            Self::AgentStop => "onAgentStop",
            Self::ErrorOccurred => "onErrorOccurred",
            Self::SessionEnd => "onSessionEnd",
            Self::SubagentStart => "onSubagentStart",
            Self::SubagentStop => "onSubagentStop",
        }
    }

    /// The name in events: `preToolUse`.
    pub fn kind(self) -> String {
        let (first, rest) = self.name()[2..].split_at(1);
        first.to_ascii_lowercase() + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_have_the_names_of_the_contract() {
        assert_eq!(Hook::PreToolUse.kind(), "preToolUse");
        assert_eq!(Hook::UserPromptSubmitted.kind(), "userPromptSubmitted");
    }
}
