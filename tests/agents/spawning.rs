//! How agents are started, and how they are not: the table of edge cases, from outside.

use std::os::unix::fs::PermissionsExt;

use libtest_mimic::Trial;
use serde_json::Value;
use tenon_tests::Run;
use tenon_tests::Workspace;
use tenon_tests::trial;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("spawning::a_command_that_cannot_be_parsed_fails_before_launch", unparsable),
        trial("spawning::a_missing_program_is_named_with_how_to_get_it", missing_program),
        trial("spawning::a_missing_directory_fails_before_launch", missing_directories),
        trial("spawning::an_agent_without_modes_is_asked_for_none", no_modes),
        trial("spawning::an_agent_without_models_is_used_as_it_is", no_models),
        trial("spawning::resuming_needs_an_agent_that_can", no_load),
        trial("spawning::a_session_that_the_agent_has_forgotten_begins_anew", forgotten),
        trial("spawning::a_session_goes_on_where_it_ended", resumed),
        trial("spawning::the_agent_gets_its_variables_and_no_secrets", environment),
        trial("spawning::an_isolated_agent_gets_little_and_a_home_of_its_own", isolated),
        trial("spawning::a_required_credential_that_is_missing_is_named", credentials),
        trial("spawning::files_and_terminals_are_served_inside_the_workspace_only", services),
        trial("spawning::quoting_is_the_shells_but_there_is_no_shell", quoting),
        trial("spawning::an_unknown_agent_is_answered_with_those_there_are", unknown_agent),
        trial("spawning::the_startup_prompt_comes_with_the_first_prompt_only", startup_prompt),
    ]
}

fn run(workspace: &Workspace, more: &[&str], prompt: &str) -> Run {
    let mut args = vec!["run", "-a", "demo", "--permissions", "approve-all", "-q"];
    args.extend(more);
    args.push(prompt);
    workspace.run(&args)
}

fn with_demo(settings: &str) -> Workspace {
    let workspace = Workspace::new();
    workspace.home_file("config.toml", format!("[agents.demo]\n{settings}\n"));
    workspace
}

async fn unparsable() {
    let workspace = Workspace::new();
    workspace.home_file("config.toml", "[agents.mine]\ncommand = \"agent 'never closed\"\n");
    let run = workspace.run(&["run", "-a", "mine", "hello"]);
    assert_eq!(run.code, 1, "{run:#?}");
    assert!(run.stderr.contains("never closed"), "{}", run.stderr);
}

async fn missing_program() {
    let workspace = Workspace::new();
    workspace.home_file("config.toml", "[agents.mine]\ncommand = \"no-such-agent --acp\"\n");
    let run = workspace.run(&["run", "-a", "mine", "hello"]);
    assert_eq!(run.code, 1, "{run:#?}");
    assert!(run.stderr.contains("no-such-agent"), "{}", run.stderr);
    // Also where it is installed.
    let workspace = workspace.env("PATH", "/nonexistent");
    let claude = workspace.run(&["run", "-a", "claude", "hello"]);
    assert_eq!(claude.code, 1);
    assert!(claude.stderr.contains("@agentclientprotocol/claude-agent-acp"), "{}", claude.stderr);
}

async fn missing_directories() {
    for (directories, word) in
        [("\"relative\"", "absolute"), ("\"/no/such/folder\"", "/no/such/folder")]
    {
        let workspace = with_demo(&format!("additional-directories = [{directories}]"));
        let run = run(&workspace, &[], "@say hi");
        assert_eq!(run.code, 1, "{run:#?}");
        assert!(run.stderr.contains(word), "{}", run.stderr);
    }
    let workspace = Workspace::new();
    let run = workspace.run(&["run", "-a", "demo", "--cwd", "/no/such/folder", "hi"]);
    assert_ne!(run.code, 0);
    assert!(run.stderr.contains("/no/such/folder"), "{}", run.stderr);
}

async fn no_modes() {
    let workspace = with_demo("args = [\"--no-modes\"]");
    let run = run(&workspace, &[], "@say fine");
    assert_eq!((run.code, run.stdout.trim()), (0, "fine"), "{run:#?}");
    // Asking for one would be an error, and a warning.
    assert!(!run.stderr.contains("warning"), "{}", run.stderr);
}

async fn no_models() {
    let workspace = with_demo("args = [\"--no-models\"]");
    let fine = run(&workspace, &[], "@say fine");
    assert_eq!((fine.code, fine.stdout.trim()), (0, "fine"), "{fine:#?}");
    assert!(!fine.stderr.contains("warning"), "{}", fine.stderr);
    let workspace = with_demo("args = [\"--no-models\"]\nmodel = \"large\"");
    let warned = run(&workspace, &[], "@say fine");
    assert_eq!((warned.code, warned.stdout.trim()), (0, "fine"), "{warned:#?}");
    assert!(warned.stderr.contains("large"), "{}", warned.stderr);
}

/// The id of the only session.
fn session_id(workspace: &Workspace) -> String {
    let sessions = workspace.run(&["sessions", "list", "--json"]).json();
    let sessions = sessions.as_array().unwrap();
    assert_eq!(sessions.len(), 1, "{sessions:#?}");
    sessions[0]["id"].as_str().unwrap().to_owned()
}

async fn no_load() {
    let workspace = with_demo("");
    assert_eq!(run(&workspace, &[], "@say one").code, 0);
    let id = session_id(&workspace);
    workspace.home_file("config.toml", "[agents.demo]\nargs = [\"--no-load\"]\n");
    let run = run(&workspace, &["--resume", &id], "@say two");
    assert_eq!(run.code, 1, "{run:#?}");
    assert!(run.stderr.contains("session/load"), "{}", run.stderr);
}

async fn forgotten() {
    let workspace = with_demo("");
    assert_eq!(run(&workspace, &[], "@say one").code, 0);
    let id = session_id(&workspace);
    workspace.home_file("config.toml", "[agents.demo]\nargs = [\"--forget\"]\n");
    let run = workspace.run(&["run", "-a", "demo", "--json", "--resume", &id, "@say two"]);
    assert_eq!(run.code, 0, "{run:#?}");
    assert!(run.stdout.contains("agent_session_lost"), "{}", run.stdout);
    assert_eq!(session_id(&workspace), id);
    // The new one is remembered in place of the lost one.
    workspace.home_file("config.toml", "[agents.demo]\n");
    let run = workspace.run(&["run", "-a", "demo", "--json", "--resume", &id, "@say three"]);
    assert_eq!(run.code, 0, "{run:#?}");
    assert!(!run.stdout.contains("agent_session_lost"), "{}", run.stdout);
}

async fn resumed() {
    let workspace = with_demo("");
    assert_eq!(run(&workspace, &[], "@say one").code, 0);
    let id = session_id(&workspace);
    let again = run(&workspace, &["--resume", &id[..8]], "@say two");
    assert_eq!((again.code, again.stdout.trim()), (0, "two"), "{again:#?}");
    let shown = workspace.run(&["sessions", "show", &id]);
    assert!(shown.stdout.contains("one") && shown.stdout.contains("two"), "{}", shown.stdout);
    let unknown = run(&workspace, &["--resume", "nonsense"], "@say three");
    assert_eq!(unknown.code, 1);
    assert!(unknown.stderr.contains("nonsense"), "{}", unknown.stderr);
    assert_eq!(workspace.run(&["sessions", "delete", "--yes", &id]).code, 0);
    let none = workspace.run(&["sessions", "list", "--json"]).json();
    assert_eq!(none, Value::Array(Vec::new()));
}

async fn environment() {
    let workspace = with_demo("").env("MY_SECRET_TOKEN", "hunter2").env("PLAIN_VALUE", "kept");
    let prompt = "@env MY_SECRET_TOKEN\n@env PLAIN_VALUE\n@env TENON_AGENT\n@env TENON_SESSION_ID\n@env TENON_BIN\n@env PATH\n@cwd";
    let run = run(&workspace, &[], prompt);
    assert_eq!(run.code, 0, "{run:#?}");
    assert!(!run.stdout.contains("hunter2"), "{}", run.stdout);
    assert!(run.stdout.contains("kept"), "{}", run.stdout);
    assert!(run.stdout.contains(&session_id(&workspace)), "{}", run.stdout);
    let tenon = tenon_tests::tenon();
    assert!(run.stdout.contains(&*tenon.parent().unwrap().to_string_lossy()), "{}", run.stdout);
    assert!(run.stdout.contains(&*workspace.cwd().to_string_lossy()), "{}", run.stdout);
}

async fn isolated() {
    let settings = "env-policy = \"isolated\"\nhome-policy = \"isolated\"\nenv = { GIVEN = \"yes\" }\n\
                    credentials = [{ slot = \"KEY\", from = \"env:OUR_KEY\" }]";
    let workspace = with_demo(settings).env("PLAIN_VALUE", "kept").env("OUR_KEY", "k-123");
    let run = run(&workspace, &[], "@env PLAIN_VALUE\n@env GIVEN\n@env KEY\n@env HOME");
    assert_eq!(run.code, 0, "{run:#?}");
    assert!(!run.stdout.contains("kept"), "{}", run.stdout);
    assert!(run.stdout.contains("yes") && run.stdout.contains("k-123"), "{}", run.stdout);
    let home = workspace.home().join("agents/demo");
    assert!(run.stdout.contains(&*home.to_string_lossy()), "{}", run.stdout);
    let mode = std::fs::metadata(home).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

async fn credentials() {
    let workspace =
        with_demo("credentials = [{ slot = \"KEY\", from = \"env:OUR_KEY\", required = true }]");
    let run = run(&workspace, &[], "@say hi");
    assert_eq!(run.code, 1, "{run:#?}");
    assert!(run.stderr.contains("OUR_KEY") && run.stderr.contains("KEY"), "{}", run.stderr);
}

async fn services() {
    let workspace = with_demo("client-fs = true\nclient-terminal = true");
    workspace.file("inside.txt", "inside");
    let outside = workspace.home_file("outside.txt", "outside");
    std::os::unix::fs::symlink(&outside, workspace.cwd().join("link.txt")).unwrap();
    let cwd = workspace.cwd();
    let prompt = format!(
        "@client-read {0}/inside.txt\n@client-read {0}/link.txt\n@client-read {1}\n\
         @client-write {0}/new.txt \"written\"\n@client-run echo from a terminal",
        cwd.display(),
        outside.display()
    );
    let run = run(&workspace, &[], &prompt);
    assert_eq!(run.code, 0, "{run:#?}");
    assert!(run.stdout.contains("inside"), "{}", run.stdout);
    assert!(!run.stdout.contains("outside\n"), "{}", run.stdout);
    assert_eq!(std::fs::read_to_string(cwd.join("new.txt")).unwrap(), "written");
    assert!(run.stdout.contains("from a terminal"), "{}", run.stdout);
    // What is permitted is decided before anything is done.
    let run = workspace.run(&["run", "-a", "demo", "-q", "--permissions", "deny-all", &format!(
        "@client-read {0}/inside.txt\n@client-write {0}/denied.txt \"x\"\n@client-run touch {0}/denied-too.txt",
        cwd.display(),
    )]);
    assert!(!run.stdout.contains("inside\n"), "{}", run.stdout);
    assert!(!cwd.join("denied.txt").exists() && !cwd.join("denied-too.txt").exists(), "{run:#?}");
    // Without the profile's wish there are no such methods.
    let workspace = with_demo("client-fs = false");
    workspace.file("inside.txt", "inside text");
    let refused = super::spawning::run(
        &workspace,
        &[],
        &format!("@client-read {}/inside.txt", workspace.cwd().display()),
    );
    assert!(!refused.stdout.contains("inside text"), "{}", refused.stdout);
}

async fn quoting() {
    let workspace = Workspace::new();
    let command = format!("'{}' demo-agent --slow \"0\"", tenon_tests::tenon().display());
    workspace
        .home_file("config.toml", format!("[agents.mine]\ncommand = {}\n", Value::from(command)));
    let run = workspace.run(&["run", "-a", "mine", "-q", "@say quoted"]);
    assert_eq!((run.code, run.stdout.trim()), (0, "quoted"), "{run:#?}");
    let marker = workspace.cwd().join("made-by-a-shell");
    let command =
        format!("{} demo-agent; touch {}", tenon_tests::tenon().display(), marker.display());
    workspace
        .home_file("config.toml", format!("[agents.mine]\ncommand = {}\n", Value::from(command)));
    workspace.run(&["run", "-a", "mine", "-q", "@say x"]);
    assert!(!marker.exists(), "the command went through a shell");
}

async fn unknown_agent() {
    let run = Workspace::new().run(&["run", "-a", "nobody", "hi"]);
    assert_eq!(run.code, 1, "{run:#?}");
    assert!(run.stderr.contains("nobody") && run.stderr.contains("claude"), "{}", run.stderr);
}

async fn startup_prompt() {
    let workspace = with_demo("startup-prompt = \"You are terse.\"");
    let first = run(&workspace, &[], "@prompt");
    assert!(first.stdout.contains("You are terse."), "{}", first.stdout);
    let id = session_id(&workspace);
    let second = run(&workspace, &["--resume", &id], "@prompt");
    assert_eq!(second.code, 0, "{second:#?}");
    assert!(!second.stdout.contains("You are terse."), "{}", second.stdout);
}
