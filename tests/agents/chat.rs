//! `tenon chat`: a person types, answers, interrupts and leaves.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Instant;

use libtest_mimic::Trial;
use tenon_tests::Run;
use tenon_tests::Workspace;
use tenon_tests::trial;

use crate::client::PATIENCE;
use crate::cycles::MARK;
use crate::cycles::are_there;
use crate::cycles::nothing_remains;
use crate::pty::Terminal;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("chat::an_answer_appears_while_it_is_given", streamed),
        trial("chat::a_tool_is_called_when_the_person_says_yes", permitted),
        trial("chat::what_the_person_refuses_is_not_done", refused),
        trial("chat::a_guard_refuses_also_what_is_always_allowed", guarded),
        trial("chat::commands_show_and_change_what_there_is", commands),
        trial("chat::a_reload_takes_what_was_written", reload),
        trial("chat::a_new_session_begins_and_the_old_one_goes_on", sessions),
        trial("chat::tab_completes_commands_and_what_follows_them", completion),
        trial("chat::esc_and_ctrl_c_interrupt_the_turn_only", interrupted),
        trial("chat::a_line_that_is_typed_meanwhile_comes_next", queued),
        trial("chat::a_form_takes_only_what_fits", form),
        trial("chat::a_form_can_be_cancelled_and_declined", form_left),
        trial("chat::what_was_entered_is_remembered_for_the_user_only", history),
        trial("chat::a_crashed_agent_is_back_with_the_next_prompt", crashed),
        trial("chat::nothing_remains_when_it_ends", ended),
        trial("chat::nothing_remains_when_the_terminal_is_closed", hung_up),
        trial("chat::an_agent_that_does_not_start_is_given_up_by_a_key", never_starts),
        trial("chat::lines_of_standard_input_are_what_would_be_typed", piped),
        trial("chat::a_wrong_agent_is_refused_before_anything_is_asked", wrong_agent),
    ]
}

const WORDS: &str = r#"import { joinSession } from "@github/copilot-sdk/extension";
const form = {
  message: "Deploy?",
  requestedSchema: {
    type: "object",
    properties: {
      target: { type: "string", enum: ["staging", "live"], default: "staging" },
      count: { type: "integer", minimum: 1, maximum: 5 },
    },
    required: ["count"],
  },
};
const session = await joinSession({
  tools: [
    { name: "count_words", description: "Counts words", parameters: { type: "object", properties: { text: { type: "string" } } },
      handler: ({ text }) => `${text.split(/\s+/).length} words` },
    { name: "shell", description: "Runs nothing", handler: () => "done" },
  ],
  commands: [
    { name: "wave", description: "Waves", handler: async ({ args }) => { await session.log(`waved at ${args}`); } },
    { name: "form", description: "Shows a form", handler: async () => { await session.log(`answered ${JSON.stringify(await session.ui.elicitation(form))}`); } },
  ],
  hooks: {
    onPreToolUse: ({ toolName, toolArgs }) => {
      if (JSON.stringify(toolArgs).includes("forbidden")) return { permissionDecision: "deny", permissionDecisionReason: "a forbidden word" };
    },
  },
});
console.log("words is here");
"#;

fn workspace() -> Workspace {
    Workspace::new().extension("words", WORDS)
}

/// A chat with the demo agent in which every permission is the person's.
fn chat(workspace: &Workspace) -> Terminal {
    let mut chat = Terminal::start(workspace, &["chat", "-a", "demo", "--permissions", "ask"]);
    chat.sees("Ctrl-D ends");
    chat.is_ready();
    chat
}

/// Leaves an idle chat.
fn leave(chat: &mut Terminal) {
    chat.keys("\x04");
    let status = chat.ends();
    assert!(status.success(), "{status}: {}", chat.text());
}

async fn streamed() {
    let workspace = workspace();
    let mut chat = chat(&workspace);
    let said = chat.does("hello there");
    assert!(said.contains("You said: hello there"), "{said}");
    // A backslash at the end of a line: another follows.
    chat.keys("@say begun\\\r@say \\\r@wait 600000\r");
    chat.sees("\nbegun");
    chat.keys("\x1b");
    chat.sees("interrupted");
    chat.is_ready();
    leave(&mut chat);
}

async fn permitted() {
    let workspace = workspace();
    let mut chat = chat(&workspace);
    chat.enter(r#"@call count_words {"text":"one two three"}"#);
    chat.sees("count_words · project:words");
    chat.sees("wants to use count_words");
    chat.sees("one two three");
    chat.sees("say why");
    chat.keys("y");
    chat.sees("allowed, once");
    chat.sees("✓ count_words · project:words");
    chat.is_ready();
    // Once is once.
    chat.enter(r#"@call count_words {"text":"four"}"#);
    chat.sees("say why");
    chat.keys("a");
    chat.sees("✓ count_words");
    chat.is_ready();
    let third = chat.does(r#"@call count_words {"text":"five"}"#);
    assert!(third.contains("✓ count_words") && !third.contains("say why"), "{third}");
    leave(&mut chat);
}

async fn refused() {
    let workspace = workspace();
    let mut chat = chat(&workspace);
    chat.enter("@run touch made");
    chat.sees("touch made");
    chat.sees("say why");
    chat.keys("n");
    chat.sees("not allowed");
    chat.is_ready();
    chat.enter("@run touch made");
    chat.sees("say why");
    chat.keys("N");
    chat.sees("why not?");
    chat.keys("not on a Monday\r");
    chat.sees("not allowed");
    chat.is_ready();
    // Whoever dismisses a question has not said yes.
    chat.enter("@run touch made");
    chat.sees("say why");
    chat.keys("\x1b");
    chat.sees("not allowed");
    chat.is_ready();
    assert!(!workspace.cwd().join("made").exists());
    chat.enter("@run touch made");
    chat.sees("say why");
    chat.keys("y");
    chat.sees("✓ bash");
    chat.is_ready();
    assert!(workspace.cwd().join("made").exists());
    leave(&mut chat);
}

async fn guarded() {
    let workspace = workspace();
    let mut chat = chat(&workspace);
    chat.enter("@run echo fine");
    chat.sees("say why");
    chat.keys("a");
    chat.sees("✓ bash");
    chat.is_ready();
    let denied = chat.does("@run touch forbidden");
    assert!(denied.contains("⊘ bash") && denied.contains("a forbidden word"), "{denied}");
    let denied = chat.does(r#"@call count_words {"text":"forbidden"}"#);
    assert!(denied.contains("⊘ count_words") && denied.contains("a forbidden word"), "{denied}");
    assert!(!workspace.cwd().join("forbidden").exists());
    // What was always allowed was so in that session.
    chat.does("/clear");
    chat.enter("@run echo fine");
    chat.sees("say why");
    chat.keys("n");
    chat.sees("not allowed");
    chat.is_ready();
    leave(&mut chat);
}

/// What `/help` says once a command of the agent is known, which it tells when it likes.
fn help_with(chat: &mut Terminal, command: &str) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let help = chat.does("/help");
        if help.contains(command) {
            return help;
        }
        assert!(Instant::now() < deadline, "{command} is never there: {help}");
    }
}

async fn commands() {
    let workspace = workspace();
    let mut chat = chat(&workspace);
    let help = help_with(&mut chat, "/shout");
    for command in ["/clear", "/quit", "/wave", "/form", "project:words", "Esc or Ctrl-C"] {
        assert!(help.contains(command), "{command}: {help}");
    }
    let tools = chat.does("/tools");
    assert!(tools.contains("count_words") && tools.contains("Counts words"), "{tools}");
    assert!(tools.contains("extensions_manage"), "{tools}");
    let extensions = chat.does("/extensions");
    assert!(extensions.contains("project:words") && extensions.contains("running"), "{extensions}");
    let waved = chat.does("/wave the sea");
    assert!(waved.contains("project:words: waved at the sea"), "{waved}");
    let shouted = chat.does("/shout at me");
    assert!(shouted.contains("AT ME"), "{shouted}");
    let models = chat.does("/model");
    assert!(models.contains("*  demo-small") && models.contains("demo-large"), "{models}");
    chat.does("/model demo-large");
    let models = chat.does("/model");
    assert!(models.contains("*  demo-large"), "{models}");
    let wrong = chat.does("/model no-such-model");
    assert!(wrong.contains("no-such-model"), "{wrong}");
    let mode = chat.does("/mode plan");
    assert!(mode.contains("mode: plan"), "{mode}");
    let modes = chat.does("/mode");
    assert!(modes.contains("*  plan"), "{modes}");
    let log = chat.does("/log words");
    assert!(log.contains("words is here"), "{log}");
    let log = chat.does("/log nobody");
    assert!(log.contains("there is no extension nobody; there are: project:words"), "{log}");
    let none = chat.does("/no-such-command");
    assert!(none.contains("there is no command /no-such-command"), "{none}");
    // A path is a prompt.
    let path = chat.does("/usr/bin is a folder");
    assert!(path.contains("You said: /usr/bin is a folder"), "{path}");
    chat.enter("/quit");
    assert!(chat.ends().success());
}

async fn reload() {
    let workspace = workspace();
    let mut chat = chat(&workspace);
    let reloaded = chat.does("/reload");
    assert!(reloaded.contains("1 reloaded"), "{reloaded}");
    let entry = ".github/extensions/words/extension.mjs";
    workspace.file(entry, "throw new Error('not today');");
    // It is noticed without a command as well; whoever is first, the command says how it went.
    chat.enter("/reload");
    chat.sees("1 failed");
    chat.sees("not today");
    chat.is_ready();
    workspace.file(entry, WORDS.replace("Counts words", "Counts them all"));
    chat.sees("project:words: reloaded");
    chat.is_ready();
    let tools = chat.does("/tools");
    assert!(tools.contains("Counts them all"), "{tools}");
    leave(&mut chat);
}

async fn sessions() {
    let workspace = workspace();
    let mut chat = chat(&workspace);
    chat.does("@title The first of two");
    let none = chat.does("/resume");
    assert!(none.contains("no other sessions"), "{none}");
    chat.does("/clear");
    let listed = chat.does("/resume");
    assert!(listed.contains("The first of two"), "{listed}");
    let records = workspace.run(&["sessions", "list", "--json"]).json();
    let is_first = |it: &&serde_json::Value| it["title"] == "The first of two";
    let first = records.as_array().unwrap().iter().find(is_first).unwrap();
    let first = first["id"].as_str().unwrap();
    let resumed = chat.does(&format!("/resume {}", &first[..8]));
    assert!(resumed.contains("goes on with: The first of two"), "{resumed}");
    let said = chat.does("still here");
    assert!(said.contains("You said: still here"), "{said}");
    leave(&mut chat);
    // The last of this folder, by itself.
    let mut chat = Terminal::start(&workspace, &["chat", "--resume"]);
    chat.sees("goes on with: The first of two");
    chat.is_ready();
    leave(&mut chat);
}

async fn completion() {
    let workspace = workspace();
    let mut chat = chat(&workspace);
    chat.keys("/wa\t");
    chat.sees("> /wave ");
    chat.keys("all\r");
    chat.sees("waved at all");
    chat.is_ready();
    // What several have in common, then what there is to choose from.
    chat.keys("/mo\t");
    chat.sees("> /mode");
    chat.keys("\t");
    chat.sees("the agent's models");
    chat.sees("> /mode");
    chat.keys(" pl\t");
    chat.sees("> /mode plan");
    chat.keys("\r");
    chat.sees("the agent's mode: plan");
    chat.is_ready();
    leave(&mut chat);
}

async fn interrupted() {
    let workspace = workspace();
    let mut chat = chat(&workspace);
    for key in ["\x1b", "\x03"] {
        chat.keys("@say begun\\\r@say \\\r@wait 600000\r");
        chat.sees("\nbegun");
        chat.keys(key);
        chat.sees("interrupted");
        chat.is_ready();
        let said = chat.does("and now?");
        assert!(said.contains("You said: and now?"), "{said}");
    }
    // Without anything to interrupt, once is not enough.
    chat.keys("half a line\x03");
    chat.sees("Ctrl-C again");
    chat.is_ready();
    let said = chat.does("whole");
    assert!(said.contains("You said: whole"), "{said}");
    chat.keys("\x03");
    chat.sees("Ctrl-C again");
    chat.is_ready();
    chat.keys("\x03");
    assert!(chat.ends().success());
}

async fn queued() {
    let workspace = workspace();
    let release = workspace.cwd().join("go");
    let mut chat =
        Terminal::start(&workspace, &["chat", "-a", "demo", "--permissions", "approve-all"]);
    chat.is_ready();
    chat.enter("@run while ! test -e go; do sleep 0.01; done");
    chat.sees("● bash");
    chat.keys("what comes next\r");
    chat.sees("queued: what comes next");
    std::fs::write(release, "").unwrap();
    chat.sees("You said: what comes next");
    chat.is_ready();
    leave(&mut chat);
}

async fn form() {
    let workspace = workspace();
    let mut chat = chat(&workspace);
    chat.enter("/form");
    chat.sees("Deploy?");
    chat.sees("2) live");
    chat.sees("target");
    chat.keys("2\r");
    chat.sees("count");
    chat.keys("9\r");
    chat.sees("at most 5");
    chat.sees("count");
    chat.keys("many\r");
    chat.sees("whole number");
    chat.sees("count");
    chat.keys("3\r");
    chat.sees(r#"answered {"action":"accept","content":{"target":"live","count":3}}"#);
    chat.is_ready();
    leave(&mut chat);
}

async fn form_left() {
    let workspace = workspace();
    let mut chat = chat(&workspace);
    for (key, answer) in [("\x1b", "cancel"), ("\x04", "decline")] {
        chat.enter("/form");
        chat.sees("target");
        chat.keys(key);
        chat.sees(&format!(r#"answered {{"action":"{answer}""#));
        chat.is_ready();
    }
    leave(&mut chat);
}

async fn history() {
    let workspace = workspace();
    let mut first = chat(&workspace);
    first.does("something to remember");
    first.does(" nothing to remember");
    leave(&mut first);
    let file = workspace.home().join("chat-history");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains("nothing to remember"), "{text}");
    let mut second = chat(&workspace);
    second.keys("\x1b[A");
    second.sees("> something to remember");
    second.keys("\r");
    second.sees("You said: something to remember");
    second.is_ready();
    leave(&mut second);
}

async fn crashed() {
    let workspace = workspace();
    let mut chat = chat(&workspace);
    let said = chat.does("@crash 7");
    assert!(said.contains("exit code 7") && said.contains("started again"), "{said}");
    let said = chat.does("after the crash");
    assert!(said.contains("You said: after the crash"), "{said}");
    chat.enter(r#"@call count_words {"text":"one two"}"#);
    chat.sees("say why");
    chat.keys("y");
    chat.sees("✓ count_words · project:words");
    chat.is_ready();
    leave(&mut chat);
}

async fn ended() {
    let mark = format!("chat-{}", std::process::id());
    let workspace = workspace().env(MARK, &mark);
    let mut chat = chat(&workspace);
    chat.does("@spawn-orphan");
    are_there(&mark, 4).await;
    leave(&mut chat);
    nothing_remains(&mark).await;
}

async fn hung_up() {
    let mark = format!("hung-up-{}", std::process::id());
    let workspace = workspace().env(MARK, &mark);
    for idle in [true, false] {
        let mut chat = chat(&workspace);
        chat.does("@spawn-orphan");
        if !idle {
            chat.keys("@say begun\\\r@say \\\r@wait 600000\r");
            chat.sees("\nbegun");
        }
        are_there(&mark, 4).await;
        chat.hang_up();
        chat.ends();
        nothing_remains(&mark).await;
    }
}

async fn never_starts() {
    let mark = format!("never-starts-{}", std::process::id());
    let workspace = workspace().env(MARK, &mark);
    let command = "sh -c 'echo waiting > started; exec sleep 1000'";
    workspace.home_file("config.toml", format!("[agents.mute]\ncommand = {command:?}\n"));
    let mut chat = Terminal::start(&workspace, &["chat", "-a", "mute"]);
    chat.sees("starting mute");
    chat.keys("\x1b");
    assert_eq!(chat.ends().code(), Some(1), "{}", chat.text());
    chat.sees("interrupted");
    nothing_remains(&mark).await;
}

async fn piped() {
    let mark = format!("piped-{}", std::process::id());
    let workspace = workspace().env(MARK, &mark);
    let mut command = workspace.command(&["chat", "-a", "demo"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let lines = "hello\n/tools\n\n@say one\\\n@say  two\n/wave the sea\n@run touch made\nlast";
    input.write_all(lines.as_bytes()).unwrap();
    drop(input);
    let run = Run::new(child.wait_with_output().unwrap());
    assert_eq!(run.code, 0, "{run:#?}");
    let mut rest = run.stdout.as_str();
    let in_order =
        ["You said: hello", "count_words", "one", "two", "waved at the sea", "You said: last"];
    for said in in_order {
        let at = rest.find(said).unwrap_or_else(|| panic!("{said:?} is missing in {run:#?}"));
        rest = &rest[at + said.len()..];
    }
    assert!(!run.stdout.contains('\x1b'), "{run:#?}");
    // Nobody is there to be asked.
    assert!(!workspace.cwd().join("made").exists());
    nothing_remains(&mark).await;
}

async fn wrong_agent() {
    let workspace = workspace();
    let mut chat = Terminal::start(&workspace, &["chat", "-a", "nobody"]);
    assert_eq!(chat.ends().code(), Some(1));
    chat.sees("nobody");
    assert!(!chat.text().contains("Ctrl-D"), "{}", chat.text());
}
