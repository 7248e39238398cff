//! Agents that do not behave, clients that should not be let in, and prompts out of the ordinary.

use std::io::Read;
use std::io::Write;
use std::process::Stdio;

use libtest_mimic::Trial;
use serde_json::Value;
use tenon_tests::Run;
use tenon_tests::Workspace;
use tenon_tests::trial;

use crate::cycles::MARK;
use crate::cycles::nothing_remains;
use crate::guarding::Working;
use crate::guarding::mark_of;
use crate::waiting::ends;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("bad_agents::garbage_on_the_output_is_reported_and_passed_over", garbage),
        trial("bad_agents::one_that_never_answers_is_given_up_and_ended", silent),
        trial("bad_agents::one_that_exits_is_reported_with_how", exits),
        trial("bad_agents::a_flood_of_updates_arrives_whole", flood),
        trial("bad_agents::asking_twice_gets_the_same_answer", twice),
        trial("bad_agents::one_that_ignores_cancelling_is_ended", deaf),
        trial("bad_agents::a_prompt_of_ten_megabytes_arrives", long_prompt),
        trial("bad_agents::an_unreadable_answer_to_initialize_is_an_error_at_once", deep_answer),
        trial("bad_agents::an_interrupt_is_obeyed_while_updates_are_large", || interrupt_of(LARGE)),
        trial("bad_agents::an_interrupt_is_obeyed_while_updates_are_many", || interrupt_of(MANY)),
        trial("bad_agents::an_empty_prompt_is_refused", empty_prompt),
        trial("bad_agents::two_fronts_on_one_session_are_one_too_many", two_fronts),
    ]
}

fn with_demo(settings: &str) -> Workspace {
    let workspace = Workspace::new();
    workspace.home_file("config.toml", format!("[agents.demo]\n{settings}\n"));
    workspace
}

fn run(workspace: &Workspace, prompt: &str) -> Run {
    workspace.run(&["run", "-a", "demo", "--json", "--permissions", "approve-all", prompt])
}

fn events(run: &Run) -> Vec<Value> {
    run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn garbage() {
    let workspace = with_demo("args = [\"--garbage\"]");
    let run = run(&workspace, "@say one\n@garbage {broken\n@say two");
    assert_eq!(run.code, 0, "{run:#?}");
    let said: Vec<_> = events(&run)
        .iter()
        .filter(|event| event["type"] == "assistant.message")
        .map(|event| event["data"]["content"].as_str().unwrap().to_owned())
        .collect();
    assert!(said.concat().contains("one") && said.concat().contains("two"), "{said:?}");
    assert!(run.stdout.contains("agent_output"), "{}", run.stdout);
}

async fn silent() {
    let mark = mark_of("silent");
    let workspace = with_demo("args = [\"--silent\"]\nstart-deadline-s = 1").env(MARK, &mark);
    let run = run(&workspace, "@say never");
    assert_eq!(run.code, 1, "{run:#?}");
    assert!(run.stderr.contains("initialize") || run.stdout.contains("initialize"), "{run:#?}");
    nothing_remains(&mark).await;
}

async fn exits() {
    for place in ["initialize", "new", "prompt"] {
        let workspace = with_demo(&format!("args = [\"--exit-at\", \"{place}\"]"));
        let run = run(&workspace, "@say never");
        assert_eq!(run.code, 1, "at {place}: {run:#?}");
        let told = format!("{}{}", run.stdout, run.stderr);
        assert!(told.contains("exit code"), "at {place}: {told}");
    }
}

async fn flood() {
    let workspace = with_demo("");
    let run = run(&workspace, "@flood 20000 100\n@say dry");
    assert_eq!(run.code, 0, "{}", run.stderr);
    let events = events(&run);
    let deltas = events.iter().filter(|event| event["type"] == "assistant.message_delta").count();
    assert!(deltas >= 20_000, "{deltas} deltas of 20000");
    assert!(!run.stdout.contains("events_dropped"));
}

async fn twice() {
    let workspace = with_demo("");
    let run = run(&workspace, "@permit-twice something");
    assert_eq!(run.code, 0, "{run:#?}");
    let asked = events(&run).iter().filter(|event| event["type"] == "permission.requested").count();
    assert_eq!(asked, 1, "{}", run.stdout);
}

async fn deaf() {
    let mark = mark_of("deaf");
    let workspace = with_demo("").env(MARK, &mark);
    let working = Working::on(&workspace, "demo", "@deaf\n@say begun\n@wait 600000");
    working.signal(libc::SIGINT);
    let (rest, code) = working.end();
    assert_eq!(code, Some(130), "{rest}");
    nothing_remains(&mark).await;
}

async fn long_prompt() {
    let workspace = with_demo("");
    let mut command = workspace.command(&["run", "-a", "demo", "-q", "-"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        let line = "all work and no play makes a dull agent ".repeat(25) + "\n";
        for _ in 0..(10 << 20) / line.len() {
            input.write_all(line.as_bytes()).unwrap();
        }
        input.write_all(b"@say read it all\n").unwrap();
    });
    let run = Run::new(child.wait_with_output().unwrap());
    writer.join().unwrap();
    assert_eq!((run.code, run.stdout.trim()), (0, "read it all"), "{}", run.stderr);
}

/// An agent written in the shell: it answers `initialize` with the given text in its result, and a prompt with what the
/// commands print.
fn scripted(capabilities: &str, commands: &str) -> Workspace {
    let workspace = Workspace::new();
    let script = format!(
        "answer() {{ printf '{{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}}\\n' \"$1\" \"$2\"; }}\n\
         say() {{ printf '{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"s\",\"update\":{{\
         \"sessionUpdate\":\"agent_message_chunk\",\"content\":{{\"type\":\"text\",\"text\":\"%s\"}}}}}}}}\\n' \"$1\"; }}\n\
         while read -r line; do\n\
           id=$(printf %s \"$line\" | sed -n 's/.*\"id\":\\([0-9]*\\).*/\\1/p')\n\
           case $line in\n\
             *'\"initialize\"'*) answer \"$id\" '{{\"protocolVersion\":1,\"agentCapabilities\":{capabilities}}}';;\n\
             *session/new*) answer \"$id\" '{{\"sessionId\":\"s\"}}';;\n\
             *session/prompt*) say begun\n{commands}\nanswer \"$id\" '{{\"stopReason\":\"end_turn\"}}';;\n\
           esac\n\
         done\n"
    );
    let path = workspace.file("agent.sh", script);
    workspace
        .home_file("config.toml", format!("[agents.mine]\ncommand = \"sh {}\"\n", path.display()));
    workspace
}

async fn deep_answer() {
    let deep = format!("{{\"x\":{}{}}}", "[".repeat(500), "]".repeat(500));
    let run = scripted(&deep, "").run(&["run", "-a", "mine", "never"]);
    assert_eq!(run.code, 1, "{run:#?}");
    assert!(run.stderr.contains("initialize") && run.stderr.contains("cannot be read"), "{run:#?}");
}

/// Eight updates of thirty megabytes, and then nothing.
const LARGE: &str = "text=$(head -c 1000000 /dev/zero | tr '\\0' x)\n\
    for i in 1 2 3 4 5 6 7 8; do\n\
    printf '{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s\",\"update\":{\"sessionUpdate\":\
    \"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"'\n\
    for j in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do printf %s \"$text\"; done\n\
    printf '\"}}}}\\n'; done; sleep 600";

/// Half of the text in it, in bytes.
const HALF_OF_LARGE: u64 = 120_000_000;

/// Three hundred thousand small updates, and then nothing.
const MANY: &str = "yes \"$(say word)\" | head -n 300000; sleep 600";

#[allow(clippy::print_stdout, reason = "what it took is of interest, and no promise")]
async fn interrupt_of(updates: &'static str) {
    let workspace = scripted("{}", updates);
    let mut command = workspace.command(&["run", "-a", "mine", "go"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    // It has begun to print.
    let mut some = [0; 64 * 1024];
    output.read_exact(&mut some).unwrap();
    // SAFETY: the process is ours and has not been waited for.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGINT) };
    let begun = std::time::Instant::now();
    let reader =
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()).unwrap());
    let code = ends(&mut child).code();
    let printed = reader.join().unwrap();
    println!("an interrupt was obeyed after {:?}; {printed} bytes were printed", begun.elapsed());
    assert_eq!(code, Some(130));
    assert!(printed < HALF_OF_LARGE, "{printed} bytes were printed after the interrupt");
}

async fn empty_prompt() {
    let run = with_demo("").run(&["run", "-a", "demo", "  "]);
    assert_ne!(run.code, 0);
    assert!(run.stderr.contains("prompt"), "{}", run.stderr);
}

async fn two_fronts() {
    let workspace = with_demo("");
    let working = Working::on(&workspace, "demo", "@say begun\n@wait 600000");
    let sessions = workspace.run(&["sessions", "list", "--json"]).json();
    let id = sessions[0]["id"].as_str().unwrap();
    let second = workspace.run(&["run", "-a", "demo", "--resume", id, "@say me too"]);
    assert_eq!(second.code, 1, "{second:#?}");
    assert!(second.stderr.contains("another program"), "{}", second.stderr);
    working.signal(libc::SIGINT);
    working.end();
}
