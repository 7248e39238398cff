// The agents that are tried: where each is found, how it is pointed at the scripted model, and what its own tools
// are called. Everything else about them Tenon has to know by itself, from its built-in profiles.

import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const platform = `${process.platform}-${process.arch}`;

function write(path, value) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, JSON.stringify(value));
}

// program       what Tenon starts, by its own profile
// install       the npm package
// places        where else it may be, below node_modules
// env           what the configuration says for it, given the model's port
// prepare       what must be in its home
// read, edit    how a model calls its tools; `read` where an edit needs it first
// shell         how a model runs a command, such that the agent asks
// ours          how a model calls a tool of an extension, where that is not simply by its name
// dispatcher    it never lists tools again, so a new tool is called through `call_extension_tool`
// clientMode    the mode that a client would have to choose: the usual one lets a model decide instead of asking
// nextMinute    a session can be loaded again only in another minute than the one it began in

export const AGENTS = {
  opencode: {
    program: "opencode",
    install: "opencode-ai",
    places: [`opencode-${platform}/bin`],
    env: (port) => ({
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_CONFIG_CONTENT: JSON.stringify({
        model: "scripted/scripted",
        small_model: "scripted/scripted",
        autoupdate: false,
        share: "disabled",
        provider: {
          scripted: {
            npm: "@ai-sdk/openai-compatible",
            name: "Scripted",
            options: { baseURL: `http://127.0.0.1:${port}/v1`, apiKey: "none" },
            models: { scripted: { name: "Scripted", tool_call: true } },
          },
        },
      }),
    }),
    read: (path) => ({ call: "read", args: { filePath: path } }),
    edit: (path, before, after) => ({
      call: "edit",
      args: { filePath: path, oldString: before, newString: after },
    }),
    shell: (command) => ({ call: "bash", args: { command } }),
  },

  claude: {
    program: "claude-agent-acp",
    install: "@agentclientprotocol/claude-agent-acp",
    env: (port) => ({
      ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}`,
      ANTHROPIC_API_KEY: "none",
      ANTHROPIC_MODEL: "claude-sonnet-4-5",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    }),
    read: (path) => ({ call: "Read", args: { file_path: path } }),
    edit: (path, before, after) => ({
      call: "Edit",
      args: { file_path: path, old_string: before, new_string: after },
    }),
    // All but the tools that look after extensions are offered only once they were looked for.
    ours: (tool, args) => [
      ...(tool.startsWith("extensions_") ? [] : [{ call: "ToolSearch", args: { query: `select:mcp__tenon__${tool}`, max_results: 5 } }]),
      { call: tool, args },
    ],
    shell: (command) => ({ call: "Bash", args: { command, description: "make a file" } }),
  },

  codex: {
    program: "codex-acp",
    install: "@agentclientprotocol/codex-acp",
    env: (port) => ({
      OPENAI_API_KEY: "none",
      NO_BROWSER: "1",
      MODEL_PROVIDER: "scripted",
      CODEX_CONFIG: JSON.stringify({
        model: "scripted",
        model_provider: "scripted",
        model_providers: {
          scripted: {
            name: "Scripted",
            base_url: `http://127.0.0.1:${port}/v1`,
            env_key: "OPENAI_API_KEY",
            wire_api: "responses",
          },
        },
      }),
    }),
    clientMode: "workspace-write",
    prepare: (home) => mkdirSync(join(home, ".codex"), { recursive: true }),
    // It edits by a patch, which a model without a tool for it gives to the shell; Codex does not run that.
    edit: (path, before, after) => ({
      call: "exec_command",
      args: {
        cmd: `apply_patch <<'EOP'\n*** Begin Patch\n*** Update File: ${path}\n@@\n-${before}\n+${after}\n*** End Patch\nEOP\n`,
        login: false,
      },
    }),
    // Inside its sandbox it runs commands without asking.
    shell: (command) => ({
      call: "exec_command",
      args: { cmd: command, login: false, sandbox_permissions: "require_escalated", justification: "May I make a file?" },
    }),
  },

  gemini: {
    program: "gemini",
    install: "@google/gemini-cli",
    env: (port) => ({
      GEMINI_API_KEY: "none",
      GOOGLE_GEMINI_BASE_URL: `http://127.0.0.1:${port}`,
      GEMINI_CLI_TRUST_WORKSPACE: "true",
    }),
    prepare: (home) =>
      write(join(home, ".gemini", "settings.json"), {
        security: { auth: { selectedType: "gemini-api-key" }, folderTrust: { enabled: false } },
        privacy: { usageStatisticsEnabled: false },
        model: { name: "gemini-2.5-flash" },
      }),
    read: (path) => ({ call: "read_file", args: { file_path: path } }),
    edit: (path, before, after) => ({
      call: "replace",
      args: { file_path: path, instruction: "Say who edited it.", old_string: before, new_string: after },
    }),
    shell: (command) => ({ call: "run_shell_command", args: { command, description: "make a file" } }),
    // It names the file of a session by the minute, and empties that file when it loads the session.
    nextMinute: true,
  },

  qwen: {
    program: "qwen",
    install: "@qwen-code/qwen-code",
    env: (port) => ({
      OPENAI_API_KEY: "none",
      OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`,
      OPENAI_MODEL: "scripted",
    }),
    prepare: (home) =>
      write(join(home, ".qwen", "settings.json"), {
        security: { auth: { selectedType: "openai" }, folderTrust: { enabled: false } },
        model: { name: "scripted" },
      }),
    read: (path) => ({ call: "read_file", args: { file_path: path } }),
    edit: (path, before, after) => ({
      call: "edit",
      args: { file_path: path, old_string: before, new_string: after },
    }),
    shell: (command) => ({
      call: "run_shell_command",
      args: { command, is_background: false, description: "make a file" },
    }),
    // It offers no tool of an MCP server, but one to look for them and one to call them.
    ours: (tool, args) => [
      { call: "tool_search", args: { query: `select:mcp__tenon__${tool}` } },
      { call: "tool_call", args: { name: `mcp__tenon__${tool}`, arguments: args } },
    ],
    dispatcher: true,
  },

  copilot: {
    program: "copilot",
    install: "@github/copilot",
    env: (port) => ({
      COPILOT_OFFLINE: "true",
      COPILOT_AUTO_UPDATE: "false",
      COPILOT_PROVIDER_BASE_URL: `http://127.0.0.1:${port}/v1`,
      COPILOT_MODEL: "scripted",
    }),
    read: (path) => ({ call: "view", args: { path } }),
    edit: (path, before, after) => ({ call: "edit", args: { path, old_str: before, new_str: after } }),
    shell: (command) => ({
      call: "bash",
      args: { command, description: "make a file", mode: "sync", initial_wait: 30 },
    }),
  },
};
