//! The agents that are known by name: how each is started, and what is particular about it.

use crate::config::McpTransport;
use crate::config::ReloadStrategy;

/// The name of our own agent, which is this program again.
pub const DEMO: &str = "demo";

/// The command of our own agent.
pub const DEMO_COMMAND: &str = "demo-agent";

/// An agent and what is known about it.
#[derive(Debug, Clone, Copy)]
pub struct Profile {
    /// The name people use.
    pub name: &'static str,
    /// The name its makers use.
    pub title: &'static str,
    /// The program that speaks ACP on its standard input and output; none: this program.
    pub program: Option<&'static str>,
    /// Its arguments.
    pub args: &'static [&'static str],
    /// The npm package it comes in.
    pub package: Option<&'static str>,
    /// How a person logs in, in one sentence.
    pub login: Option<&'static str>,
    /// Arguments that make the program say its version and end; none: it cannot be asked.
    pub version_args: &'static [&'static str],
    /// Secrets in the environment that are its own, so that it keeps them.
    pub keeps: &'static [&'static str],
    /// Variables that say where it keeps its settings and logins, each with the place below a home directory.
    pub homes: &'static [(&'static str, &'static str)],
    /// Variables that it is started with.
    pub presets: &'static [Preset],
    /// How it learns of tools that have changed.
    pub reload: ReloadStrategy,
    /// How it reaches the extensions' tools.
    pub mcp: McpTransport,
    /// Whether it reads and writes files through us.
    pub client_fs: bool,
    /// Whether it runs commands through us.
    pub client_terminal: bool,
    /// The mode of its sessions in which it asks a person, where the usual one does not.
    pub ask_mode: Option<&'static str>,
}

/// A variable that an agent is started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// Set if the user has not set it.
    Unless(&'static str, &'static str),
    /// A JSON object that is laid below the one the user has set, if any: what the user says counts.
    Below(&'static str, &'static str),
}

/// Where a program that talks to many providers finds their keys.
const PROVIDER_KEYS: [&str; 14] = [
    "ANTHROPIC_API_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AZURE_OPENAI_API_KEY",
    "CEREBRAS_API_KEY",
    "DEEPSEEK_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_GENERATIVE_AI_API_KEY",
    "GROQ_API_KEY",
    "HF_TOKEN",
    "MISTRAL_API_KEY",
    "OPENAI_API_KEY",
    "OPENCODE_API_KEY",
    "OPENROUTER_API_KEY",
    "XAI_API_KEY",
];

/// What most agents have in common.
const USUAL: Profile = Profile {
    name: "",
    title: "",
    program: None,
    args: &[],
    package: None,
    login: None,
    version_args: &["--version"],
    keeps: &[],
    homes: &[],
    presets: &[],
    reload: ReloadStrategy::ListChanged,
    mcp: McpTransport::Http,
    // Their own tools do it as well, and one of them fails to write new files when it is offered.
    client_fs: false,
    client_terminal: false,
    ask_mode: None,
};

/// Every known agent, by name.
pub const PROFILES: [Profile; 8] = [
    Profile {
        name: "claude",
        title: "Claude Code",
        program: Some("claude-agent-acp"),
        package: Some("@agentclientprotocol/claude-agent-acp"),
        login: Some("Run `claude-agent-acp --cli auth login`, or set ANTHROPIC_API_KEY."),
        keeps: &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_AWS_API_KEY",
            "ANTHROPIC_FOUNDRY_API_KEY",
            "ANTHROPIC_FOUNDRY_AUTH_TOKEN",
            "AWS_BEARER_TOKEN_BEDROCK",
            "CLAUDE_CODE_OAUTH_TOKEN",
        ],
        homes: &[("CLAUDE_CONFIG_DIR", ".claude")],
        ask_mode: Some("default"),
        ..USUAL
    },
    Profile {
        name: "codex",
        title: "Codex",
        program: Some("codex-acp"),
        package: Some("@agentclientprotocol/codex-acp"),
        login: Some("Run `codex-acp login`, or set OPENAI_API_KEY."),
        keeps: &["CODEX_ACCESS_TOKEN", "CODEX_API_KEY", "OPENAI_API_KEY"],
        homes: &[("CODEX_HOME", ".codex")],
        // Without it, it never asks for the tools a second time.
        presets: &[Preset::Below("CODEX_CONFIG", r#"{"features":{"mcp_tool_list_changed":true}}"#)],
        reload: ReloadStrategy::ListChangedLater,
        // In its usual mode a model decides what a person should.
        ask_mode: Some("workspace-write"),
        ..USUAL
    },
    Profile {
        name: "copilot",
        title: "GitHub Copilot",
        program: Some("copilot"),
        args: &["--acp"],
        package: Some("@github/copilot"),
        login: Some("Run `copilot login`, or set GH_TOKEN."),
        keeps: &[
            "COPILOT_GITHUB_TOKEN",
            "COPILOT_PROVIDER_API_KEY",
            "COPILOT_PROVIDER_API_KEY_COMMAND",
            "COPILOT_PROVIDER_BEARER_TOKEN",
            "GH_TOKEN",
            "GITHUB_TOKEN",
        ],
        homes: &[("COPILOT_HOME", ".copilot")],
        reload: ReloadStrategy::ListChangedLater,
        ..USUAL
    },
    Profile {
        name: DEMO,
        title: "Demo",
        args: &[DEMO_COMMAND],
        client_fs: true,
        client_terminal: true,
        ..USUAL
    },
    Profile {
        name: "gemini",
        title: "Gemini CLI",
        program: Some("gemini"),
        args: &["--acp"],
        package: Some("@google/gemini-cli"),
        login: Some("Run `gemini` and choose how to log in, or set GEMINI_API_KEY."),
        keeps: &[
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_CLOUD_ACCESS_TOKEN",
        ],
        homes: &[("GEMINI_CLI_HOME", "")],
        ask_mode: Some("default"),
        ..USUAL
    },
    Profile {
        name: "opencode",
        title: "opencode",
        program: Some("opencode"),
        args: &["acp"],
        package: Some("opencode-ai"),
        login: Some(
            "Run `opencode auth login`, or set the key of a provider such as ANTHROPIC_API_KEY.",
        ),
        keeps: &PROVIDER_KEYS,
        // It never asks otherwise, and hooks would have nothing to block.
        presets: &[
            Preset::Unless(
                "OPENCODE_PERMISSION",
                r#"{"*":"ask","read":"allow","grep":"allow","glob":"allow","list":"allow"}"#,
            ),
            // One refusal would end the turn.
            Preset::Below(
                "OPENCODE_CONFIG_CONTENT",
                r#"{"experimental":{"continue_loop_on_deny":true}}"#,
            ),
        ],
        ..USUAL
    },
    Profile {
        name: "pi",
        title: "pi",
        program: Some("pi-acp"),
        package: Some("pi-acp"),
        login: Some(
            "Run `pi` and use /login, or set the key of a provider such as ANTHROPIC_API_KEY.",
        ),
        // It knows no such option and would start to serve.
        version_args: &[],
        keeps: &PROVIDER_KEYS,
        homes: &[("PI_CODING_AGENT_DIR", ".pi/agent")],
        // It takes note of MCP servers but does not use them, and speaks of no HTTP.
        reload: ReloadStrategy::None,
        mcp: McpTransport::Stdio,
        ..USUAL
    },
    Profile {
        name: "qwen",
        title: "Qwen Code",
        program: Some("qwen"),
        args: &["--acp"],
        package: Some("@qwen-code/qwen-code"),
        login: Some("Run `qwen` and use /auth, or set OPENAI_API_KEY."),
        keeps: &[
            "ANTHROPIC_API_KEY",
            "BAILIAN_CODING_PLAN_API_KEY",
            "BAILIAN_TOKEN_PLAN_API_KEY",
            "DASHSCOPE_API_KEY",
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "OPENAI_API_KEY",
            "OPENROUTER_API_KEY",
        ],
        homes: &[("QWEN_HOME", ".qwen")],
        reload: ReloadStrategy::Dispatcher,
        ask_mode: Some("default"),
        // Otherwise the first prompt is asked before it knows our tools.
        presets: &[Preset::Unless("QWEN_CODE_LEGACY_MCP_BLOCKING", "1")],
        ..USUAL
    },
];

/// The agent of this name.
pub fn find(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.name == name)
}

/// Every variable by which a known agent is told where its settings and logins are.
pub fn home_variables() -> impl Iterator<Item = &'static str> {
    PROFILES.iter().flat_map(|profile| profile.homes).map(|(variable, _)| *variable)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn profiles_are_sorted_by_name_and_found_by_it() {
        assert!(PROFILES.is_sorted_by(|a, b| a.name < b.name));
        for name in ["claude", "codex", "gemini", "copilot", "opencode", "qwen", "pi", DEMO] {
            assert_eq!(find(name).unwrap().name, name);
        }
        assert!(find("").is_none() && find("eliza").is_none());
    }

    #[test]
    fn whoever_is_not_this_program_says_where_it_comes_from_and_how_to_log_in() {
        for profile in PROFILES {
            assert_eq!(profile.program.is_some(), profile.package.is_some(), "{}", profile.name);
            assert_eq!(profile.program.is_some(), profile.login.is_some(), "{}", profile.name);
            assert_eq!(profile.program.is_none(), profile.name == DEMO);
            assert!(!profile.title.is_empty());
        }
    }

    #[test]
    fn what_an_agent_keeps_would_be_taken_from_it_otherwise() {
        for profile in PROFILES {
            for name in profile.keeps {
                assert!(tenon_host::environment::is_secret_name(name), "{name} needs no mention");
            }
        }
    }

    #[test]
    fn what_is_laid_below_is_a_json_object() {
        for profile in PROFILES {
            for preset in profile.presets {
                if let Preset::Below(_, text) = preset {
                    assert!(serde_json::from_str::<Value>(text).unwrap().is_object(), "{text}");
                }
            }
        }
    }

    #[test]
    fn an_agent_that_never_lists_again_has_the_dispatcher() {
        assert_eq!(find("qwen").unwrap().reload, ReloadStrategy::Dispatcher);
        assert_eq!(find("claude").unwrap().reload, ReloadStrategy::ListChanged);
    }
}
