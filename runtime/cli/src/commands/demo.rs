//! `tenon demo`: what Tenon does, shown in a throw-away workspace.

mod agent;
mod author;

use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use serde_json::Value;
use serde_json::json;
use tenon_acp::agent::ClientInfo;
use tenon_acp::config::AgentsConfig;
use tenon_acp::config::PermissionMode;
use tenon_acp::conversation::Conversation;
use tenon_acp::conversation::ConversationOptions;
use tenon_acp::conversation::Start;
use tenon_acp::definition::AgentDefinition;
use tenon_host::Isolates;
use tenon_host::Session;
use tenon_host::SessionOptions;
use tenon_host::Status;
use tenon_host::session::EndReason;
use tenon_host::session::ToolCall;
use tenon_host::tool::Location;
use tenon_host::tool::ResultType;

use self::agent::DemoAgent;
use self::author::Author;
use crate::args::Args;
use crate::commands::ext::print_error;
use crate::error::CliError;
use crate::output;
use crate::output::BOLD;
use crate::output::CYAN;
use crate::output::DIM;
use crate::output::GREEN;
use crate::output::RED;

/// A file of an extension that ships with Tenon.
macro_rules! shipped {
    ($path:literal) => {
        ($path, include_str!(concat!("../../../../extensions/", $path)))
    };
}

/// Extensions that ship with Tenon.
const SHIPPED: [(&str, &str); 7] = [
    shipped!("git-info/extension.mjs"),
    shipped!("guard-rails/extension.mjs"),
    shipped!("guard-rails/rules.mjs"),
    shipped!("guard-rails/shell.mjs"),
    shipped!("http-echo/extension.mjs"),
    shipped!("json-query/extension.mjs"),
    shipped!("word-count/extension.mjs"),
];

/// Two extensions that both have something to say about a prompt.
const PROMPT_HOOKS: [(&str, &str); 2] = [
    (
        "house-rules/extension.mjs",
        r#"import { joinSession } from "@github/copilot-sdk/extension";
await joinSession({
  hooks: { onUserPromptSubmitted: () => ({ additionalContext: "Tests are run with: make test" }) },
});
"#,
    ),
    (
        "tickets/extension.mjs",
        r#"import { joinSession } from "@github/copilot-sdk/extension";
await joinSession({
  hooks: {
    onUserPromptSubmitted: ({ prompt }) => ({
      modifiedPrompt: prompt.replace(/#(\d+)/g, "ticket $1 (login fails on Mondays)"),
      additionalContext: "Name the ticket in the commit message.",
    }),
  },
});
"#,
    ),
];

/// An extension with a mistake in it.
const BROKEN: &str = r#"import { joinSession } from "@github/copilot-sdk/extension";
import { readFileSync } from "node:fs";

const settings = JSON.parse(readFileSync(new URL("settings.json", import.meta.url)));
await joinSession({ tools: settings.tools.map((tool) => tool.definition.name) });
"#;

/// An extension that tries what its grant does not allow.
const CURIOUS: &str = r#"import { joinSession } from "@github/copilot-sdk/extension";
import { readFileSync } from "node:fs";

await joinSession({
  tools: [{ name: "read_file", description: "Reads a file", handler: ({ path }) => readFileSync(path, "utf8") }],
});
"#;

/// What the user's configuration says in the demo. What the agent writes may do no more than the restricted extension that
/// runs at the same time. If it might do more, it would wait for a person's approval.
const CONFIG: &str = "[extensions.curious]\nprofile = \"workspace\"\n\n\
    [extensions.dice]\nprofile = \"workspace\"\n\n\
    [extensions.stuck]\nprofile = \"workspace\"\ncpu-ms = 500\n";

pub async fn run(_args: &Args) -> Result<ExitCode, CliError> {
    let timeline = Timeline(Instant::now());
    let temp = tempfile::tempdir()?;
    let root = std::fs::canonicalize(temp.path())?;
    let workspace = root.join("workspace");
    let home = root.join("home");
    prepare(&workspace, &home)?;
    std::env::set_current_dir(&workspace)?;
    let engine = crate::engine::info();
    timeline.title(&format!("Tenon on {} {}", engine.name, engine.version));
    timeline.title("Every extension is loaded, unmodified, into an isolate of its own; the agent starts beside them");
    let agent = DemoAgent::new(timeline, root.clone(), converse(workspace, home).await?);
    let session = agent.session();
    show_extensions(&timeline, session, &root);

    timeline.title("Their tools are called");
    let mut fine = true;
    fine &= call(&timeline, session, "word_count", json!({ "path": "notes.txt" })).await;
    fine &=
        call(&timeline, session, "json_query", json!({ "file": "package.json", "path": "name" }))
            .await;
    fine &= call(&timeline, session, "http_echo", json!({ "path": "/hello" })).await;
    fine &= call(&timeline, session, "git_info", json!({})).await;

    timeline.title("A file outside the workspace is denied, with the place that asked");
    fine &= call(&timeline, session, "read_file", json!({ "path": "notes.txt" })).await;
    fine &= !call(&timeline, session, "read_file", json!({ "path": "/etc/passwd" })).await;

    timeline.title("A prompt passes the hooks of every extension, and nothing is lost");
    let prompt = "Fix #42";
    timeline.say(&format!("{CYAN}{prompt}{CYAN:#}"));
    let (_, said) = agent.ask(&format!("{prompt}\n@prompt")).await;
    let told = ["ticket 42", "make test", "commit message"];
    fine &= told.iter().all(|text| said.concat().contains(text));

    timeline.title("guard-rails, an extension, looks at what the agent wants to run");
    let (results, _) = agent.ask("@run echo all tests pass\n@run cd / && rm -rf .").await;
    fine &= matches!(&*results, [Ok(_), Err(_)]);
    fine &= Author(&agent).work().await;

    timeline.title(
        "Every extension ends with its servers, timers and processes, and so does the agent",
    );
    agent.conversation().close(EndReason::Complete).await;
    timeline.say("done");
    if !fine {
        return Err(CliError::new("the demo did not go as it should; see above"));
    }
    output::line("");
    output::line(format_args!(
        "Next: {BOLD}tenon ext list --trust{BOLD:#} in a repository of yours"
    ));
    Ok(ExitCode::SUCCESS)
}

/// A session with the demo agent. The user's own extensions have no part in a demonstration.
async fn converse(workspace: PathBuf, home: PathBuf) -> Result<Conversation, CliError> {
    let tenon = std::env::current_exe()?;
    let definition = AgentDefinition::resolve("demo", &AgentsConfig::read(&home)?, &tenon)
        .map_err(|error| CliError::new(error.to_string()))?;
    let session = SessionOptions {
        trusted: true,
        isolates: Isolates::processes(tenon.clone(), None),
        watch: true,
        ..SessionOptions::new(workspace, home)
    };
    let options = ConversationOptions {
        session,
        definition,
        permissions: Some(PermissionMode::ApproveAll),
        front: None,
        outer: None,
        tenon,
        guarded: true,
        agent: None,
        client: ClientInfo::tenon(),
        start: Start::New,
        replay: false,
        params: Value::Null,
    };
    Conversation::open(options).await.map_err(|error| CliError::new(error.to_string()))
}

/// Lays out the workspace.
fn prepare(workspace: &Path, home: &Path) -> Result<(), CliError> {
    let extensions = workspace.join(".github/extensions");
    let own = [("broken/extension.mjs", BROKEN), ("curious/extension.mjs", CURIOUS)];
    for (path, source) in SHIPPED.into_iter().chain(PROMPT_HOOKS).chain(own) {
        let file = extensions.join(path);
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(file, source)?;
    }
    std::fs::write(extensions.join("broken/settings.json"), "{ \"tools\": [{}] }\n")?;
    std::fs::write(
        workspace.join("notes.txt"),
        "A mortise wants its tenon.\nOne joint, two parts.\n",
    )?;
    std::fs::write(workspace.join("package.json"), "{ \"name\": \"demo\" }\n")?;
    std::fs::create_dir_all(home)?;
    std::fs::write(home.join("config.toml"), CONFIG)?;
    // Without git the extension that asks it says so; the demo goes on.
    let _ = std::process::Command::new("git")
        .args(["init", "--quiet", "--initial-branch=main"])
        .current_dir(workspace)
        .output();
    Ok(())
}

fn show_extensions(timeline: &Timeline, session: &Session, root: &Path) {
    for info in session.list() {
        let tools: Vec<_> = info.tools.iter().map(|tool| tool.name.as_str()).collect();
        if info.status == Status::Running {
            let cpu = info.ready.map_or(0.0, |ready| ready.cpu_us as f64 / 1000.0);
            let name = &info.name;
            let hooks: Vec<_> = info.hooks.iter().map(|hook| hook.name.as_str()).collect();
            timeline.say(&format!(
                "{GREEN}running{GREEN:#}  {name:<12} {CYAN}{}{CYAN:#} {DIM}{cpu:.0} ms of CPU{DIM:#}",
                [tools, hooks].concat().join(", ")
            ));
        }
    }
    for mut error in session.list().into_iter().filter_map(|info| info.error) {
        timeline.say(&format!("{RED}failed{RED:#}   broken       and the others do not care:"));
        if let Some(file) = &mut error.what.file {
            *file = file.replace(&*root.to_string_lossy(), "");
        }
        print_error(&error, "                    ");
    }
}

/// Calls a tool and shows call and answer; true if it succeeded.
async fn call(timeline: &Timeline, session: &Session, tool: &str, args: Value) -> bool {
    let started = Instant::now();
    let shown = if args == json!({}) { String::new() } else { args.to_string() };
    let result = match session.call_tool(ToolCall::new(tool, args)).await {
        Ok(outcome) => outcome.result,
        Err(error) => {
            timeline.say(&format!("{RED}{error}{RED:#}"));
            return false;
        }
    };
    let took = started.elapsed().as_secs_f64() * 1000.0;
    timeline.say(&format!("{CYAN}{tool}{CYAN:#} {shown} {DIM}{took:.1} ms{DIM:#}"));
    let success = result.result_type == ResultType::Success;
    let text = result.error.as_ref().unwrap_or(&result.text_result_for_llm);
    timeline.quote(text, if success { anstyle::Style::new() } else { RED });
    if let Some(at) = &result.location {
        place(at);
    }
    success
}

/// Shows where something happened, by the last two parts of the path.
fn place(at: &Location) {
    let file = Path::new(&at.file);
    let name: PathBuf = file.iter().rev().take(2).collect::<Vec<_>>().into_iter().rev().collect();
    output::line(format_args!(
        "            {DIM}-->{DIM:#} {CYAN}{}:{}:{}{CYAN:#}",
        name.display(),
        at.line,
        at.column
    ));
}

/// Lines with the time since the start in front.
#[derive(Clone, Copy)]
struct Timeline(Instant);

impl Timeline {
    fn title(&self, text: &str) {
        output::line(format_args!("\n{BOLD}{text}{BOLD:#}"));
    }

    fn say(&self, text: &str) {
        let seconds = self.0.elapsed().as_secs_f64();
        output::line(format_args!("{DIM}{seconds:>7.3} s{DIM:#}   {text}"));
    }

    fn quote(&self, text: &str, style: anstyle::Style) {
        for line in text.lines() {
            output::line(format_args!("            {style}{line}{style:#}"));
        }
    }
}
