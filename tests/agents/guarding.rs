//! The guard between us and an agent: how an agent ends is told as it was, and nothing of it outlives us. And what is
//! not done for an agent: what nobody wants any more, and what an extension wants asked, without an answer.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Child;
use std::process::ChildStdout;
use std::process::Stdio;
use std::sync::mpsc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::Value;
use serde_json::json;
use tenon_tests::Run;
use tenon_tests::Workspace;
use tenon_tests::trial;

use crate::client::Client;
use crate::client::PATIENCE;
use crate::client::patiently;
use crate::client::permits;
use crate::client::select;
use crate::cycles::MARK;
use crate::cycles::are_there;
use crate::cycles::marked;
use crate::cycles::nothing_remains;
use crate::waiting::ends;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("guarding::an_exit_code_is_told_as_it_was", exit_codes),
        trial("guarding::a_signal_is_told_as_it_was", signals),
        trial("guarding::a_program_that_cannot_be_run_is_told_with_why", no_program),
        trial("guarding::an_agent_that_closes_its_output_and_stays_is_ended", closed_output),
        trial("guarding::what_an_agent_leaves_behind_is_ended", left_behind),
        trial("guarding::an_agent_that_ends_by_itself_is_not_signalled", not_signalled),
        trial("guarding::an_agent_that_stays_is_asked_before_it_is_killed", asked_first),
        trial("guarding::nothing_outlives_a_program_that_is_killed", killed),
        trial("guarding::nothing_outlives_a_program_that_is_told_to_end", told_to_end),
        trial("guarding::nothing_outlives_an_editor_front_that_is_told_to_end", front_told_to_end),
        trial("guarding::an_interrupt_reaches_the_agent_as_cancelling_only", interrupted),
        trial("guarding::a_secret_reaches_the_agent_and_nobody_else", secret),
        trial("guarding::an_agent_ends_with_its_guard", guard_killed),
        trial("guarding::nothing_is_permitted_once_a_turn_is_cancelled", permitted_late),
        trial("guarding::an_answer_after_the_turn_was_cancelled_changes_nothing", answered_late),
        trial("guarding::a_prompt_that_is_cancelled_before_it_is_sent_is_not_sent", not_sent),
        trial("guarding::the_startup_prompt_is_told_again_after_an_error", told_again),
        trial("guarding::a_call_that_is_cancelled_in_its_hook_begins_and_ends_once", once),
        trial("guarding::what_a_hook_wants_asked_is_asked_for_files_and_terminals", asked_here),
        trial("guarding::what_a_hook_wants_asked_is_asked_before_the_editor_does_it", asked_there),
    ]
}

/// A workspace with an agent `mine` that is a shell script, in which `$TENON` is the program; everything that
/// comes from it carries the mark.
fn with_agent(mark: &str, script: &str) -> Workspace {
    let workspace = Workspace::new().env(MARK, mark);
    let path = workspace.home_file("agent.sh", script);
    let tenon = tenon_tests::tenon();
    let command = format!("sh '{}'", path.display());
    let settings = format!(
        "[agents.mine]\ncommand = {}\nenv = {{ TENON = {} }}\n",
        Value::from(command),
        Value::from(tenon.to_string_lossy()),
    );
    workspace.home_file("config.toml", settings);
    workspace
}

/// A mark that no other test has.
pub fn mark_of(test: &str) -> String {
    format!("{test}-{}", std::process::id())
}

/// What `tenon run` says about a script that is no agent.
fn run(mark: &str, script: &str) -> Run {
    with_agent(mark, script).run(&["run", "-a", "mine", "hello"])
}

/// Two that have left the agent's process group and its session, one of whom does not want to end.
const STRAYS: &str = "setsid sleep 1000 >/dev/null &\n\
    setsid sh -c 'trap \"\" TERM INT HUP; while :; do sleep 1000; done' >/dev/null &\n";

/// The demo agent as the last thing that a script does.
const AGENT: &str = "exec \"$TENON\" demo-agent\n";

/// The same, but it ignores that its input ends, and polite signals.
const STUBBORN: &str = "trap '' TERM INT HUP\nexec \"$TENON\" demo-agent --deaf\n";

async fn exit_codes() {
    let mark = mark_of("exit-codes");
    for code in [0, 1, 7, 126, 255] {
        let run = run(&mark, &format!("exit {code}"));
        assert_eq!(run.code, 1, "{run:#?}");
        assert!(run.stderr.contains(&format!("exit code {code}")), "{}", run.stderr);
    }
    nothing_remains(&mark).await;
}

async fn signals() {
    let mark = mark_of("signals");
    for signal in ["KILL", "TERM", "SEGV", "HUP", "USR1"] {
        let run = run(&mark, &format!("echo last words >&2; kill -{signal} $$; sleep 1000"));
        assert_eq!(run.code, 1, "{run:#?}");
        assert!(run.stderr.contains(&format!("signal SIG{signal}")), "{}", run.stderr);
        assert!(run.stderr.contains("last words"), "{}", run.stderr);
    }
    nothing_remains(&mark).await;
}

async fn no_program() {
    let workspace = Workspace::new();
    let program = workspace.home_file("agent", "#!/no/such/interpreter\n");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let command = Value::from(program.to_string_lossy());
    workspace.home_file("config.toml", format!("[agents.mine]\ncommand = {command}\n"));
    let run = workspace.run(&["run", "-a", "mine", "hello"]);
    assert_eq!(run.code, 1, "{run:#?}");
    assert!(run.stderr.contains("could not be started"), "{}", run.stderr);
    assert!(run.stderr.contains("No such file or directory"), "{}", run.stderr);
}

async fn closed_output() {
    let mark = mark_of("closed-output");
    let script = format!("{STRAYS}exec >&-\nwhile :; do sleep 1000; done");
    let run = run(&mark, &script);
    assert_eq!(run.code, 1, "{run:#?}");
    assert!(run.stderr.contains("it closed its output"), "{}", run.stderr);
    nothing_remains(&mark).await;
}

async fn left_behind() {
    let mark = mark_of("left-behind");
    let workspace = with_agent(&mark, &format!("{STRAYS}{AGENT}"));
    let run = workspace.run(&["run", "-a", "mine", "-q", "@say all is well"]);
    assert_eq!((run.code, run.stdout.trim()), (0, "all is well"), "{run:#?}");
    assert_eq!(marked(&mark), [""; 0], "it returned before they had ended");
}

async fn not_signalled() {
    let mark = mark_of("not-signalled");
    // It has a few seconds to end, so it starts no program for that: this may take as long on a busy machine.
    let script = "trap ': >signalled' TERM INT HUP\n\"$TENON\" demo-agent\n: >ended\n";
    let workspace = with_agent(&mark, script);
    let run = workspace.run(&["run", "-a", "mine", "-q", "@say hello"]);
    assert_eq!((run.code, run.stdout.trim()), (0, "hello"), "{run:#?}");
    assert!(workspace.cwd().join("ended").exists(), "the script did not come to its end");
    assert!(!workspace.cwd().join("signalled").exists());
}

async fn asked_first() {
    let mark = mark_of("asked-first");
    // The agent stays when its input ends; the script that has started it cleans up when it is asked to end.
    let script = "exec 3<&0\ntrap ': >asked; exit 0' TERM\n\
                  \"$TENON\" demo-agent --deaf <&3 &\nwait\n";
    let workspace = with_agent(&mark, script);
    let run = workspace.run(&["run", "-a", "mine", "-q", "@say hello"]);
    assert_eq!((run.code, run.stdout.trim()), (0, "hello"), "{run:#?}");
    assert!(workspace.cwd().join("asked").exists());
    assert_eq!(marked(&mark), [""; 0]);
}

/// A turn that does not end.
const ENDLESS: &str = "@say begun\n@wait 600000";

/// A run whose agent is in the middle of a turn.
pub struct Working {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Working {
    fn start(workspace: &Workspace) -> Self {
        Self::on(workspace, "mine", ENDLESS)
    }

    /// An agent that works on a prompt, from where it says `begun`.
    pub fn on(workspace: &Workspace, agent: &str, prompt: &str) -> Self {
        let mut command = workspace.command(&["run", "-a", agent, "--json", prompt]);
        // A group of its own, as a shell does it.
        command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut working = Self { child, lines };
        // The prompt is printed too, and is not what the agent says.
        working.until(&["assistant.message", "begun"]);
        working
    }

    /// Reads to a line with all these texts in it.
    fn until(&mut self, texts: &[&str]) {
        in_time(&self.child, || {
            let mut line = String::new();
            while !texts.iter().all(|text| line.contains(text)) {
                line.clear();
                let count = self.lines.read_line(&mut line).unwrap();
                assert_ne!(count, 0, "the output ended before {texts:?}");
            }
        });
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: the process is ours and has not been waited for.
        unsafe { libc::kill(self.child.id().cast_signed(), signal) };
    }

    /// The rest of what is printed, and the exit code.
    pub fn end(mut self) -> (String, Option<i32>) {
        let mut rest = String::new();
        in_time(&self.child, || self.lines.read_to_string(&mut rest).unwrap());
        (rest, ends(&mut self.child).code())
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        // It has ended, unless the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads what a process prints. Reading has no deadline, so the process has one: it is killed.
fn in_time<T>(child: &Child, read: impl FnOnce() -> T) -> T {
    let process = child.id().cast_signed();
    let (done, waiting) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if waiting.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                // SAFETY: the process is ours, and is not waited for while it is read from.
                unsafe { libc::kill(process, libc::SIGKILL) };
            }
        });
        let _done = done;
        read()
    })
}

async fn killed() {
    let mark = mark_of("killed");
    let workspace = with_agent(&mark, &format!("{STRAYS}{STUBBORN}"));
    let working = Working::start(&workspace);
    are_there(&mark, 5).await;
    working.signal(libc::SIGKILL);
    let (_, code) = working.end();
    assert_eq!(code, None);
    nothing_remains(&mark).await;
}

async fn told_to_end() {
    let mark = mark_of("told-to-end");
    let workspace = with_agent(&mark, &format!("{STRAYS}{STUBBORN}"));
    let working = Working::start(&workspace);
    are_there(&mark, 5).await;
    working.signal(libc::SIGTERM);
    let (rest, code) = working.end();
    assert_eq!(code, Some(130), "{rest}");
    assert!(rest.contains("\"outcome\":\"cancelled\""), "{rest}");
    nothing_remains(&mark).await;
}

async fn front_told_to_end() {
    let mark = mark_of("front-told-to-end");
    let workspace = with_agent(&mark, &format!("{STRAYS}{STUBBORN}"));
    for signal in [libc::SIGTERM, libc::SIGKILL] {
        let client = Client::start(&workspace, &["-a", "mine"], permits);
        client.initialize().await;
        let session = client.open(&workspace).await;
        client.prompt(&session, "@say begun").await.unwrap();
        are_there(&mark, 5).await;
        // SAFETY: the process is ours and has not been waited for.
        unsafe { libc::kill(client.pid().cast_signed(), signal) };
        nothing_remains(&mark).await;
    }
}

async fn interrupted() {
    let mark = mark_of("interrupted");
    let script = "trap ': >interrupted' INT\n\"$TENON\" demo-agent\n: >ended\n";
    let workspace = with_agent(&mark, script);
    let working = Working::start(&workspace);
    // As a terminal does it: to everybody in the group.
    // SAFETY: the group is ours; its leader has not been waited for.
    unsafe { libc::kill(-working.child.id().cast_signed(), libc::SIGINT) };
    let (rest, code) = working.end();
    assert_eq!(code, Some(130), "{rest}");
    assert!(rest.contains("\"outcome\":\"cancelled\""), "{rest}");
    assert!(!rest.contains("ended unexpectedly"), "{rest}");
    assert!(!workspace.cwd().join("interrupted").exists());
    // It was told to cancel, and ended by itself when its input did.
    assert!(workspace.cwd().join("ended").exists());
    nothing_remains(&mark).await;
}

/// The process whose command line contains a text, among those that carry the mark.
fn process(mark: &str, text: &str) -> String {
    let all = marked(mark);
    let found = all.iter().find(|it| it.contains(text));
    let found = found.unwrap_or_else(|| panic!("no {text} among {all:#?}"));
    found.split_once(':').unwrap().0.to_owned()
}

fn environment_of(process: &str) -> String {
    let bytes = std::fs::read(format!("/proc/{process}/environ")).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn secret() {
    let mark = mark_of("secret");
    let workspace = Workspace::new().env(MARK, &mark).env("OUR_API_KEY", "hunter2-of-ours");
    let settings = "[agents.mine]\nprofile = \"demo\"\n\
                    credentials = [{ slot = \"ITS_API_KEY\", from = \"env:OUR_API_KEY\" }]\n";
    workspace.home_file("config.toml", settings);
    let run = workspace.run(&["run", "-a", "mine", "-q", "@env ITS_API_KEY"]);
    assert!(run.stdout.contains("hunter2-of-ours"), "{run:#?}");
    let working = Working::start(&workspace);
    let guard = environment_of(&process(&mark, "agent-guard"));
    assert!(guard.contains(&mark), "{guard}");
    assert!(!guard.contains("hunter2"), "{guard}");
    let ours = environment_of(&working.child.id().to_string());
    assert!(ours.contains(&mark) && !ours.contains("hunter2"), "{ours}");
    working.signal(libc::SIGINT);
    let (rest, code) = working.end();
    assert_eq!(code, Some(130), "{rest}");
    nothing_remains(&mark).await;
}

async fn guard_killed() {
    let mark = mark_of("guard-killed");
    let workspace = with_agent(&mark, "trap '' TERM\n\"$TENON\" demo-agent --deaf\n");
    let working = Working::start(&workspace);
    let guard: i32 = process(&mark, "agent-guard").parse().unwrap();
    // SAFETY: a process that was found a moment ago, and that its parent waits for only when it has ended.
    unsafe { libc::kill(guard, libc::SIGKILL) };
    let (rest, code) = working.end();
    assert_eq!(code, Some(1), "{rest}");
    assert!(rest.contains("its guard ended with signal SIGKILL"), "{rest}");
    nothing_remains(&mark).await;
}

async fn permitted_late() {
    let workspace = Workspace::new();
    let args = ["-a", "demo", "--permissions", "approve-all"];
    let client = Client::start(&workspace, &args, permits);
    client.initialize().await;
    let session = client.open(&workspace).await;
    // It asks once while it is waited for to stop, and once when it is not listened to any more. It is waited for
    // for five seconds, so the first question comes as late as it can: cancelling must come before it.
    let ask = "@permit execute ask {\"command\":\"ls\"}";
    let text = format!("@deaf\n@say begun\n@wait 4500\n{ask}\n@wait 6000\n{ask}\n@say over");
    let prompt = client.prompt(&session, &text);
    let cancel = async {
        let begun = |client: &Client| client.said(&session).contains("begun").then_some(());
        client.until("the turn has begun", begun).await;
        client.connection.notify("session/cancel", json!({ "sessionId": session })).await.unwrap();
    };
    let (answer, ()) = tokio::join!(prompt, cancel);
    assert_eq!(answer.unwrap()["stopReason"], "cancelled");
    let over = |client: &Client| client.said(&session).contains("over").then_some(());
    client.until("the agent comes to its end", over).await;
    let said = client.said(&session);
    assert_eq!(said.matches("permission: cancelled").count(), 2, "{said}");
    assert!(client.end().await.success());
}

async fn answered_late() {
    let judge = r#"import { joinSession } from "@github/copilot-sdk/extension";
const session = await joinSession({
  onPermissionRequest: async () => {
    await session.abort();
    await new Promise((resolve) => setTimeout(resolve, 300));
    return { kind: "approve-once" };
  },
});
"#;
    let workspace = Workspace::new().extension("judge", judge);
    workspace.home_file("config.toml", "[agents.demo]\nclient-fs = true\nclient-terminal = true\n");
    for prompt in ["@deaf\n@client-write made \"x\"", "@deaf\n@client-run touch made"] {
        let run = workspace.run(&["run", "-a", "demo", "--json", "--permissions", "ask", prompt]);
        assert!(run.stdout.contains("The turn was cancelled"), "{run:#?}");
        // What was asked for too late would be done by now.
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(!workspace.cwd().join("made").exists(), "{run:#?}");
    }
}

async fn not_sent() {
    let mark = mark_of("not-sent");
    // From the second time on it starts when it may.
    let script = format!(
        "if [ -e \"$TENON_HOME/started\" ]; then\n\
         : >\"$TENON_HOME/again\"\nwhile [ ! -e \"$TENON_HOME/go\" ]; do sleep 0.1; done\nfi\n\
         : >\"$TENON_HOME/started\"\n{AGENT}"
    );
    let workspace = with_agent(&mark, &script);
    let client = Client::start(&workspace, &["-a", "mine"], permits);
    client.initialize().await;
    let session = client.open(&workspace).await;
    client.prompt(&session, "@crash").await.unwrap_err();
    let prompt = client.prompt(&session, ENDLESS);
    let cancel = async {
        patiently("it is started again", async {
            while !workspace.home().join("again").exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        client.connection.notify("session/cancel", json!({ "sessionId": session })).await.unwrap();
        // One thing after the other is read: when this is refused, the turn has been cancelled.
        let nothing = json!({ "sessionId": session });
        client.request("session/prompt", nothing).await.unwrap_err();
        workspace.home_file("go", "");
    };
    let (answer, ()) = tokio::join!(prompt, cancel);
    assert_eq!(answer.unwrap()["stopReason"], "cancelled");
    assert!(!client.said(&session).contains("begun"), "{}", client.said(&session));
    let answer = client.prompt(&session, "@say still there").await.unwrap();
    assert_eq!(answer["stopReason"], "end_turn");
    assert!(!client.said(&session).contains("begun"), "{}", client.said(&session));
    assert!(client.end().await.success());
    nothing_remains(&mark).await;
}

async fn told_again() {
    let workspace = Workspace::new();
    workspace.home_file("config.toml", "[agents.demo]\nstartup-prompt = \"You are terse.\"\n");
    let client = Client::with_demo(&workspace).await;
    let session = client.open(&workspace).await;
    client.prompt(&session, "@fail overloaded").await.unwrap_err();
    for _ in 0..2 {
        client.prompt(&session, "@prompt").await.unwrap();
    }
    let said = client.said(&session);
    assert_eq!(said.matches("You are terse.").count(), 1, "{said}");
    assert!(client.end().await.success());
}

async fn once() {
    let guard = r#"import { joinSession } from "@github/copilot-sdk/extension";
const session = await joinSession({
  hooks: {
    onPreToolUse: async () => {
      await session.abort();
      await new Promise((resolve) => setTimeout(resolve, 200));
      return { permissionDecision: "deny" };
    },
  },
});
"#;
    let workspace = Workspace::new().extension("guard", guard);
    let args = ["run", "-a", "demo", "--json", "--permissions", "approve-all", "@run touch made"];
    let run = workspace.run(&args);
    for kind in ["tool.execution_start", "tool.execution_complete"] {
        assert_eq!(run.stdout.matches(&format!("\"{kind}\"")).count(), 1, "{kind}: {run:#?}");
    }
    // It has asked, and was not permitted.
    assert!(!run.stdout.contains("denial_without_effect"), "{run:#?}");
    assert!(!workspace.cwd().join("made").exists());
}

/// Wants the person asked about everything.
const ASKS: &str = r#"import { joinSession } from "@github/copilot-sdk/extension";
await joinSession({
  hooks: { onPreToolUse: () => ({ permissionDecision: "ask", permissionDecisionReason: "careful" }) },
});
"#;

async fn asked_here() {
    let workspace = Workspace::new().extension("asks", ASKS);
    workspace.home_file("config.toml", "[agents.demo]\nclient-fs = true\nclient-terminal = true\n");
    workspace.file("inside", "what is inside");
    let prompt = "@client-write made \"x\"\n@client-run touch made\n@client-read inside";
    for mode in ["approve-all", "approve-reads"] {
        let run = workspace.run(&["run", "-a", "demo", "--json", "--permissions", mode, prompt]);
        assert_eq!(run.code, 0, "{run:#?}");
        assert_eq!(run.stdout.matches("\"hookMessage\":\"careful\"").count(), 3, "{run:#?}");
        // There is nobody.
        assert!(!workspace.cwd().join("made").exists(), "{run:#?}");
        assert!(!run.stdout.contains("what is inside"), "{run:#?}");
    }
}

async fn asked_there() {
    let workspace = Workspace::new().extension("asks", ASKS);
    let answers = |method: &str, params: &Value| match method {
        "session/request_permission" if params["toolCall"]["title"].to_string().contains("yes") => {
            select(params, "allow_once")
        }
        "session/request_permission" => select(params, "reject_once"),
        "fs/write_text_file" => Ok(json!({})),
        _ => permits(method, params),
    };
    let client = Client::start(&workspace, &["-a", "demo"], answers);
    client.initialize().await;
    let session = client.open(&workspace).await;
    client.prompt(&session, "@client-write no \"x\"\n@client-write yes \"x\"").await.unwrap();
    assert_eq!(client.requests("session/request_permission").len(), 2);
    let written = client.requests("fs/write_text_file");
    assert_eq!(written.len(), 1, "{written:#?}");
    assert_eq!(written[0]["path"], json!(workspace.cwd().join("yes")));
    assert!(client.end().await.success());
}
