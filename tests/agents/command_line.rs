//! The command line around agents: which there are, which is meant, what is printed, how it ends.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::process::Child;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use libtest_mimic::Trial;
use serde_json::Value;
use tenon_tests::Run;
use tenon_tests::Workspace;
use tenon_tests::trial;

use crate::client::PATIENCE;
use crate::cycles::MARK;
use crate::cycles::nothing_remains;
use crate::waiting::ends;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("command_line::agents_are_listed_also_beside_a_broken_one", agents),
        trial("command_line::a_version_that_never_comes_is_given_up", versions),
        trial("command_line::the_default_agent_is_the_variables_then_the_configurations", default),
        trial("command_line::the_only_agent_that_is_installed_is_meant", only_one),
        trial("command_line::sessions_are_listed_shown_and_deleted", sessions),
        trial("command_line::a_live_session_is_not_deleted", live_session),
        trial("command_line::a_prompt_comes_from_words_standard_input_or_both", prompts),
        trial("command_line::the_last_line_of_json_says_how_it_ended", last_line),
        trial("command_line::exit_codes_say_how_it_ended", exit_codes),
        trial("command_line::quiet_prints_the_answer_only", quiet),
        trial("command_line::whoever_reads_enough_ends_it", head),
        trial("command_line::whoever_does_not_read_can_still_interrupt", nobody_reads),
    ]
}

/// A mark that no other test has.
fn mark_of(test: &str) -> String {
    format!("{test}-{}", std::process::id())
}

/// A program on a path that holds nothing else but what scripts need.
fn program(workspace: &Workspace, name: &str, script: &str) {
    let path = workspace.home_file(&format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A workspace whose path is its own folder, so that no agent of the machine is found.
fn bare(workspace: Workspace) -> Workspace {
    let path = workspace.home().join("bin");
    workspace.env("PATH", &path)
}

fn agent<'a>(listed: &'a Value, name: &str) -> &'a Value {
    let found = listed.as_array().unwrap().iter().find(|agent| agent["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {listed:#}"))
}

async fn agents() {
    let workspace = bare(Workspace::new());
    let settings = "[agents.broken]\ncommand = \"agent 'never closed\"\n\n\
                    [agents.mine]\ncommand = \"my-agent --acp\"\n";
    workspace.home_file("config.toml", settings);
    program(&workspace, "my-agent", "exit 0");
    let run = workspace.run(&["agents", "--json"]);
    assert_eq!(run.code, 0, "{run:#?}");
    let listed = run.json();
    let broken = agent(&listed, "broken");
    assert!(broken["error"].as_str().unwrap().contains("never closed"), "{broken:#}");
    let mine = agent(&listed, "mine");
    assert_eq!((&mine["error"], &mine["source"]), (&Value::Null, &"config".into()), "{mine:#}");
    let path = workspace.home().join("bin/my-agent");
    assert_eq!(mine["path"], path.to_string_lossy().as_ref(), "{mine:#}");
    let claude = agent(&listed, "claude");
    assert_eq!((&claude["path"], &claude["source"]), (&Value::Null, &"built-in".into()));
    assert_ne!(agent(&listed, "demo")["path"], Value::Null);
    let table = workspace.run(&["agents"]);
    assert_eq!(table.code, 0, "{table:#?}");
    let row = |name: &str| table.stdout.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(row("broken").contains("never closed"), "{}", table.stdout);
    assert!(row("claude").contains("npm install -g"), "{}", table.stdout);
    // It is the only one that can be used.
    assert!(row("mine *").contains("my-agent"), "{}", table.stdout);
}

async fn versions() {
    let mark = mark_of("versions");
    let workspace = Workspace::new().env(MARK, &mark);
    // Agents that are installed on this machine would be asked at the same moment.
    let path = format!("{}:/usr/bin:/bin", workspace.home().join("bin").display());
    let workspace = workspace.env("PATH", &path);
    program(&workspace, "gemini", "sleep 1000 &\nsleep 1000");
    program(&workspace, "claude-agent-acp", "echo 1.2.3\necho more");
    program(&workspace, "codex-acp", "echo 4.5.6\nexit 1");
    // Also one that answers at once may be late on a busy machine.
    let deadline = Instant::now() + PATIENCE;
    let listed = loop {
        let run = workspace.run(&["agents", "--json"]);
        assert_eq!(run.code, 0, "{run:#?}");
        let listed = run.json();
        if !agent(&listed, "claude")["version"].is_null() || Instant::now() > deadline {
            break listed;
        }
    };
    assert_eq!(agent(&listed, "claude")["version"], "1.2.3");
    for name in ["gemini", "codex"] {
        let agent = agent(&listed, name);
        assert_eq!(agent["version"], Value::Null, "{agent:#}");
        assert_ne!(agent["path"], Value::Null, "{agent:#}");
    }
    nothing_remains(&mark).await;
}

async fn default() {
    let settings = "default-agent = \"demo\"\n";
    let workspace = Workspace::new();
    workspace.home_file("config.toml", settings);
    let run = workspace.run(&["run", "-q", "@say by the configuration"]);
    assert_eq!((run.code, run.stdout.trim()), (0, "by the configuration"), "{run:#?}");
    let listed = workspace.run(&["agents", "--json"]).json();
    assert_eq!(agent(&listed, "demo")["default"], true);
    // The variable comes first, and what is on the command line before it.
    let workspace = workspace.env("TENON_AGENT", "nobody");
    let run = workspace.run(&["run", "-q", "@say x"]);
    assert_eq!(run.code, 1, "{run:#?}");
    assert!(run.stderr.contains("nobody") && run.stderr.contains("TENON_AGENT"), "{}", run.stderr);
    let run = workspace.run(&["run", "-q", "-a", "demo", "@say by name"]);
    assert_eq!((run.code, run.stdout.trim()), (0, "by name"), "{run:#?}");
    let table = workspace.run(&["agents"]);
    assert!(table.stdout.contains("nobody is to be used"), "{}", table.stdout);
    let workspace = workspace.env("TENON_AGENT", "");
    let run = workspace.run(&["run", "-q", "@say taken back"]);
    assert_eq!((run.code, run.stdout.trim()), (0, "taken back"), "{run:#?}");
}

async fn only_one() {
    let workspace = bare(Workspace::new());
    let none = workspace.run(&["run", "@say x"]);
    assert_eq!(none.code, 1, "{none:#?}");
    assert!(none.stderr.contains("no coding agent is installed"), "{}", none.stderr);
    assert!(none.stderr.contains("claude") && none.stderr.contains("demo"), "{}", none.stderr);
    let tenon = tenon_tests::tenon();
    program(&workspace, "one", &format!("exec '{}' demo-agent", tenon.display()));
    workspace.home_file("config.toml", "[agents.one]\ncommand = \"one\"\n");
    let run = workspace.run(&["run", "-q", "@say the only one"]);
    assert_eq!((run.code, run.stdout.trim()), (0, "the only one"), "{run:#?}");
    program(&workspace, "two", "exit 1");
    let both = "[agents.one]\ncommand = \"one\"\n[agents.two]\ncommand = \"two\"\n";
    workspace.home_file("config.toml", both);
    let several = workspace.run(&["run", "-q", "@say which?"]);
    assert_eq!(several.code, 1, "{several:#?}");
    assert!(several.stderr.contains("one, two"), "{}", several.stderr);
}

fn listed(workspace: &Workspace) -> Vec<Value> {
    let listed = workspace.run(&["sessions", "list", "--json"]).json();
    listed.as_array().unwrap().clone()
}

fn ids(sessions: &[Value]) -> Vec<String> {
    sessions.iter().map(|session| session["id"].as_str().unwrap().to_owned()).collect()
}

async fn sessions() {
    let workspace = Workspace::new();
    let none = workspace.run(&["sessions", "list"]);
    assert_eq!((none.code, none.stdout.trim()), (0, "no sessions yet"), "{none:#?}");
    for prompt in ["@title First\n@say one", "@title Second\n@say two"] {
        assert_eq!(workspace.run(&["run", "-a", "demo", "-q", prompt]).code, 0);
    }
    let sessions = listed(&workspace);
    let titles: Vec<_> = sessions.iter().map(|session| session["title"].clone()).collect();
    assert_eq!(titles, ["Second", "First"]);
    let table = workspace.run(&["sessions", "list"]).stdout;
    assert!(table.contains("First") && table.contains("demo"), "{table}");
    let [second, first] = ids(&sessions).try_into().unwrap();
    let shown = workspace.run(&["sessions", "show", &first]);
    assert!(shown.stdout.contains("one") && !shown.stdout.contains("two"), "{}", shown.stdout);
    let events = workspace.run(&["sessions", "show", &first, "--events"]);
    let events = events.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert!(events.into_iter().any(|event| event["type"] == "user.message"));
    let unknown = workspace.run(&["sessions", "show", "nonsense"]);
    assert_eq!(unknown.code, 1);
    assert!(unknown.stderr.contains("nonsense"), "{}", unknown.stderr);
    // Nobody is there to be asked, or one of them is not there: nothing is deleted.
    assert_eq!(workspace.run(&["sessions", "delete", &first]).code, 1);
    assert_eq!(workspace.run(&["sessions", "delete", "--yes", &first, "nonsense"]).code, 1);
    assert_eq!(ids(&listed(&workspace)), [second.clone(), first.clone()]);
    let deleted = workspace.run(&["sessions", "delete", "--yes", "--json", &first]).json();
    assert_eq!(deleted["deleted"][0], first.as_str(), "{deleted:#}");
    assert_eq!(ids(&listed(&workspace)), [second]);
    assert!(!workspace.home().join("session-state").join(first).exists());
}

/// Starts a run whose events are lines, and reads them until one contains a text.
fn working(workspace: &Workspace, prompt: &str, until: &str) -> (Child, impl BufRead + use<>) {
    let mut command = workspace.command(&["run", "-a", "demo", "--json", prompt]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains(until) {
        line.clear();
        assert_ne!(lines.read_line(&mut line).unwrap(), 0, "the output ended before {until:?}");
    }
    (child, lines)
}

fn interrupt(child: &Child) {
    // SAFETY: the process is ours and has not been waited for.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGINT) };
}

async fn live_session() {
    let workspace = Workspace::new();
    let (mut child, mut lines) = working(&workspace, "@say begun\n@wait 600000", "begun");
    let sessions = listed(&workspace);
    assert_eq!(sessions[0]["pid"], child.id());
    let id = &ids(&sessions)[0];
    let refused = workspace.run(&["sessions", "delete", "--yes", id]);
    assert_eq!(refused.code, 1, "{refused:#?}");
    assert!(refused.stderr.contains(&format!("live, in process {}", child.id())), "{refused:#?}");
    interrupt(&child);
    std::io::copy(&mut lines, &mut std::io::sink()).unwrap();
    ends(&mut child);
    let sessions = listed(&workspace);
    assert_eq!((&sessions[0]["id"], &sessions[0]["pid"]), (&id.as_str().into(), &Value::Null));
    assert_eq!(workspace.run(&["sessions", "delete", "--yes", id]).code, 0);
    assert_eq!(listed(&workspace), [Value::Null; 0]);
}

/// Runs with something on standard input.
fn run_with(workspace: &Workspace, words: &[&str], input: &str) -> Run {
    let mut args = vec!["run", "-a", "demo", "-q"];
    args.extend(words);
    let mut command = workspace.command(&args);
    // Written before it starts: it does not wait long for what may never come.
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(input.as_bytes()).unwrap();
    drop(writer);
    Run::new(command.stdin(reader).output().unwrap())
}

async fn prompts() {
    let workspace = Workspace::new();
    let said = |words: &[&str], input: &str| {
        let run = run_with(&workspace, words, input);
        assert_eq!(run.code, 0, "{run:#?}");
        run.stdout.trim().to_owned()
    };
    assert_eq!(said(&["two", "words"], ""), "You said: two words");
    assert_eq!(said(&[], "from a pipe\n"), "You said: from a pipe");
    assert_eq!(said(&["-"], "from a pipe\n"), "You said: from a pipe");
    assert_eq!(said(&["look at this"], "a\nb\n"), "You said: look at this\n\na\nb");
    assert_eq!(said(&["look at this", "-"], "a\n"), "You said: look at this\n\na");
    let nothing = run_with(&workspace, &["-"], "\n");
    assert_eq!(nothing.code, 1, "{nothing:#?}");
    assert!(nothing.stderr.contains("the prompt is empty"), "{}", nothing.stderr);
}

/// What blocks a prompt with a word in it.
const BLOCKER: &str = r#"import { joinSession } from "@github/copilot-sdk/extension";
await joinSession({ hooks: { onUserPromptSubmitted: ({ prompt }) => prompt.includes("blocked") ? { decision: "block", reason: "not today" } : undefined } });
"#;

async fn last_line() {
    let workspace = Workspace::new().extension("blocker", BLOCKER);
    let last = |args: &[&str], code: i32| {
        let run = workspace.run(args);
        assert_eq!(run.code, code, "{run:#?}");
        let line = run.stdout.lines().next_back().unwrap_or_default();
        let event: Value = serde_json::from_str(line).unwrap();
        assert_eq!(event["type"], "run.result", "{line}");
        event["data"].clone()
    };
    let ended = last(&["run", "-a", "demo", "--json", "@say hello"], 0);
    assert_eq!((&ended["outcome"], &ended["stopReason"]), (&"ended".into(), &"end_turn".into()));
    assert_eq!(ended["agent"], "demo");
    assert_eq!(ended["sessionId"], ids(&listed(&workspace))[0].as_str());
    let failed = last(&["run", "-a", "demo", "--json", "@fail no luck"], 1);
    assert_eq!(failed["outcome"], "failed");
    assert!(failed["error"].as_str().unwrap().contains("no luck"), "{failed:#}");
    let blocked = last(&["run", "-a", "demo", "--json", "@say blocked"], 3);
    assert_eq!(blocked["outcome"], "blocked");
    let unknown = last(&["run", "-a", "nobody", "--json", "@say hello"], 1);
    assert_eq!((&unknown["outcome"], &unknown["sessionId"]), (&"failed".into(), &Value::Null));
    let empty = last(&["run", "-a", "demo", "--json", " "], 1);
    assert!(empty["error"].as_str().unwrap().contains("empty"), "{empty:#}");
}

async fn exit_codes() {
    let workspace = Workspace::new().extension("blocker", BLOCKER);
    let code = |args: &[&str]| workspace.run(args).code;
    assert_eq!(code(&["run", "-a", "demo", "@say hello"]), 0);
    assert_eq!(code(&["run", "-a", "demo", "@crash 9"]), 1);
    assert_eq!(code(&["run", "-a", "demo", "--resume", "nonsense", "@say hello"]), 1);
    assert_eq!(code(&["run", "--no-such-option", "hello"]), 2);
    assert_eq!(code(&["run", "-a", "demo", "--permissions", "everything", "hello"]), 2);
    assert_eq!(code(&["run", "-a", "demo", "@say blocked"]), 3);
    let (mut child, mut lines) = working(&workspace, "@say begun\n@wait 600000", "begun");
    interrupt(&child);
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(ends(&mut child).code(), Some(130), "{rest}");
    assert!(rest.lines().next_back().unwrap().contains("\"outcome\":\"cancelled\""), "{rest}");
}

async fn quiet() {
    let workspace = Workspace::new().tool("echo", "return args.text;");
    let prompt =
        "@think hm\n@plan A; B\n@say let me see\n@call echo {\"text\":\"found\"}\n@say $last";
    let args = ["run", "-a", "demo", "--permissions", "approve-all"];
    let quiet = workspace.run(&[&args[..], &["-q", prompt]].concat());
    assert_eq!((quiet.code, quiet.stdout.as_str()), (0, "found\n"), "{quiet:#?}");
    assert_eq!(quiet.stderr, "");
    let loud = workspace.run(&[&args[..], &[prompt]].concat());
    for said in ["let me see", "echo", "found"] {
        assert!(loud.stdout.contains(said), "{}", loud.stdout);
    }
    assert!(!loud.stdout.contains('\x1b'), "{}", loud.stdout);
}

async fn head() {
    let mark = mark_of("head");
    let workspace = Workspace::new().tool("echo", "return args.text;").env(MARK, &mark);
    let prompt = "@spawn-orphan\n@say begun\n@flood 100000000 100";
    let (mut child, lines) = working(&workspace, prompt, "begun");
    drop(lines);
    assert_eq!(ends(&mut child).code(), Some(1));
    nothing_remains(&mark).await;
}

/// Waits until a pipe is full that nobody reads.
fn fills(pipe: &impl AsRawFd) {
    // SAFETY: the command takes an integer and gives one back.
    let size = unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_GETPIPE_SZ) };
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut waiting: libc::c_int = 0;
        // SAFETY: the call writes one integer, which is ours.
        unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &raw mut waiting) };
        // A page that is not full stays so.
        if waiting > size / 2 {
            return;
        }
        assert!(Instant::now() < deadline, "{waiting} of {size} bytes");
        std::thread::sleep(Duration::from_millis(10));
    }
}

async fn nobody_reads() {
    let mark = mark_of("nobody-reads");
    let workspace = Workspace::new().tool("echo", "return args.text;").env(MARK, &mark);
    let prompt = "@spawn-orphan\n@flood 100000000 1000";
    let mut command = workspace.command(&["run", "-a", "demo", "--json", prompt]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let output = child.stdout.take().unwrap();
    fills(&output);
    // Once stops the agent; again, since nobody reads what that leads to, ends the program.
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        interrupt(&child);
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(Instant::now() < deadline, "it does not end");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!(status.code(), Some(130), "{status}");
    nothing_remains(&mark).await;
    drop(output);
}
