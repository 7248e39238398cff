//! What people do with extensions from the command line: make, check, install, switch, read, trust.

use std::io::BufRead;
use std::io::BufReader;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use serde_json::Value;
use serde_json::json;
use tenon_tests::Run;
use tenon_tests::Workspace;

const GREETER: &str = "import { joinSession } from '@github/copilot-sdk/extension';\n\
    await joinSession({ tools: [{ name: 'greet', description: 'Greets', handler: () => 'hi' }] });\n";

/// The program without `--trust`, which the workspace's own commands have.
fn distrustful(workspace: &Workspace, args: &[&str]) -> Run {
    let home = workspace.home();
    let mut command = Command::new(tenon_tests::tenon());
    command.args(args).current_dir(workspace.cwd()).env_clear().stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", home.parent().unwrap()).env("TENON_HOME", &home);
    Run::new(command.output().unwrap())
}

/// How long a program may say nothing before the test gives up: it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that goes on until it is dropped, with its output line by line.
struct Running {
    child: Child,
    output: Receiver<String>,
}

impl Running {
    fn start(workspace: &Workspace, args: &[&str]) -> Self {
        let mut child = workspace.command(args).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, output) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            // Nobody listens any more once the test is over.
            lines.map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, output }
    }

    fn line(&mut self) -> String {
        self.output.recv_timeout(PATIENCE).expect("the program says something")
    }

    /// Reads on until a line contains the text.
    fn until(&mut self, text: &str) -> String {
        loop {
            let line = self.line();
            if line.contains(text) {
                return line;
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn git(folder: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
    let output = command.args(args).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_new_extension_of_every_kind_loads_without_a_warning() {
    let workspace = Workspace::new();
    for kind in ["basic", "canvas", "hooks", "ts"] {
        let name = format!("new-{kind}");
        let run = workspace.run(&["ext", "new", &name, "--kind", kind]);
        assert_eq!(run.code, 0, "{run:#?}");
        let entry = run.stdout.lines().nth(1).unwrap().trim();
        assert!(Path::new(entry).is_file(), "{}", run.stdout);
    }
    let run = workspace.run(&["ext", "check"]);
    assert_eq!(run.stdout, "4 extensions checked, nothing wrong\n", "{run:#?}");
    let answer = workspace.answer("new_basic_example", &json!({ "name": "Ada" }));
    assert!(answer.contains("Hello, Ada!"), "{answer}");
}

#[test]
fn a_new_extension_of_the_users_is_in_the_users_folder() {
    let workspace = Workspace::new();
    let made = workspace.run(&["ext", "new", "mine", "--user", "--json"]).json();
    assert_eq!(made["id"], "user:mine");
    assert_eq!(made["folder"], json!(workspace.home().join("extensions/mine")));
    assert_eq!(workspace.list()["mine"]["status"], "running");
}

#[test]
fn a_name_that_will_not_do_or_is_taken_is_refused() {
    let workspace = Workspace::new().extension("taken", GREETER);
    for name in ["taken", "../up", ".hidden", ""] {
        let run = workspace.run(&["ext", "new", name]);
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{run:#?}");
    }
    assert_eq!(workspace.list().len(), 1);
}

#[test]
fn check_reports_errors_as_a_linter_does() {
    let workspace = Workspace::new()
        .extension("fine", GREETER)
        .extension("broken", "const a = 1;\nthrow new TypeError('no luck');\n");
    let run = workspace.run(&["ext", "check"]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.stdout, @r"
    .github/extensions/broken/extension.mjs:2:7: error: TypeError: no luck
    2 extensions checked: 1 error, 0 warnings
    ");
    let fine = workspace.run(&["ext", "check", "fine"]);
    assert_eq!((fine.code, fine.stdout.as_str()), (0, "1 extension checked, nothing wrong\n"));
    let reports = workspace.run(&["ext", "check", "--json"]).json();
    assert_eq!(reports[0]["name"], "project:broken");
    assert_eq!((&reports[0]["ok"], &reports[1]["ok"]), (&json!(false), &json!(true)));
    assert_eq!(reports[0]["error"]["line"], 2);
    assert_eq!(reports[1]["tools"][0]["name"], "greet");
}

#[test]
fn check_takes_a_folder_anywhere_and_warnings_count_only_if_they_should() {
    let workspace = Workspace::new();
    let source = "import { joinSession } from '@github/copilot-sdk/extension';\n\
                  await joinSession({ nmae: 'x' });";
    workspace.file("elsewhere/odd/extension.mjs", source);
    let run = workspace.run(&["ext", "check", "elsewhere/odd"]);
    assert_eq!(run.code, 0, "{run:#?}");
    let first = run.stdout.lines().next().unwrap();
    assert!(first.starts_with("elsewhere/odd/extension.mjs: warning: "), "{first}");
    assert!(first.contains("unknown key \"nmae\" is ignored"), "{first}");
    assert!(run.stdout.ends_with("1 extension checked: 0 errors, 1 warning\n"), "{}", run.stdout);
    assert_eq!(workspace.run(&["ext", "check", "elsewhere/odd", "--strict"]).code, 1);
    let run = workspace.run(&["ext", "check", "elsewhere/even"]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("no extensions were found"), "{}", run.stderr);
}

#[test]
fn an_extension_is_installed_replaced_and_removed() {
    let workspace = Workspace::new();
    workspace.file("source/greeter/extension.mjs", GREETER);
    let run = workspace.run(&["ext", "install", "source/greeter"]);
    assert_eq!(run.code, 0, "{run:#?}");
    assert!(run.stdout.starts_with("installed user:greeter\n"), "{}", run.stdout);
    assert_eq!(workspace.run(&["call", "greet"]).stdout, "hi\n");

    workspace.file("source/greeter/extension.mjs", GREETER.replace("'hi'", "'ho'"));
    let run = workspace.run(&["ext", "install", "source/greeter"]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("--replace replaces it"), "{}", run.stderr);
    assert_eq!(workspace.run(&["call", "greet"]).stdout, "hi\n");
    let replaced = workspace.run(&["ext", "install", "source/greeter", "--replace", "--json"]);
    assert_eq!(replaced.json()["replaced"], true);
    assert_eq!(workspace.run(&["call", "greet"]).stdout, "ho\n");

    // Nobody is there to be asked.
    let run = workspace.run(&["ext", "remove", "greeter"]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("say --yes to delete it"), "{}", run.stderr);
    assert!(workspace.home().join("extensions/greeter").is_dir());
    let run = workspace.run(&["ext", "remove", "greeter", "--yes"]);
    assert_eq!(run.code, 0, "{run:#?}");
    assert!(!workspace.home().join("extensions/greeter").exists());
    assert!(workspace.cwd().join("source/greeter/extension.mjs").is_file());
}

#[test]
fn an_extension_that_does_not_load_is_not_installed() {
    let workspace = Workspace::new();
    workspace.file("source/broken/extension.mjs", "\nthrow new Error('not today');");
    let run = workspace.run(&["ext", "install", "source/broken"]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("it was not installed: Error: not today"), "{}", run.stderr);
    assert!(run.stderr.contains("at extension.mjs:2:7"), "{}", run.stderr);
    assert!(!workspace.home().join("extensions/broken").exists());
    let run = workspace.run(&["ext", "install", "source/broken", "--no-check", "--project"]);
    assert_eq!(run.code, 0, "{run:#?}");
    assert_eq!(workspace.list()["broken"]["status"], "failed");
}

#[test]
fn an_extension_is_installed_from_a_git_repository() {
    let workspace = Workspace::new();
    let entry = workspace.file("upstream/tools/greeter/extension.mjs", GREETER);
    let upstream = workspace.cwd().join("upstream");
    git(&upstream, &["init", "--quiet", "--initial-branch=main"]);
    git(&upstream, &["add", "."]);
    git(&upstream, &["commit", "--quiet", "-m", "first"]);
    git(&upstream, &["tag", "one"]);
    std::fs::write(entry, GREETER.replace("'hi'", "'later'")).unwrap();
    git(&upstream, &["commit", "--quiet", "-am", "second"]);
    let url = format!("file://{}#one", upstream.display());
    let args = ["ext", "install", &url, "--path", "tools/greeter", "--name", "g", "--json"];
    let installed = workspace.run(&args).json();
    assert_eq!(installed["id"], "user:g");
    assert_eq!(installed["record"]["reference"], "one");
    assert_eq!(installed["record"]["commit"].as_str().unwrap().len(), 40);
    assert_eq!(workspace.run(&["call", "greet"]).stdout, "hi\n");
}

#[test]
fn what_is_disabled_stays_so_until_it_is_enabled() {
    let workspace = Workspace::new().extension("greeter", GREETER).extension("other", "throw 1;");
    let run = workspace.run(&["ext", "disable", "greeter", "--why", "too polite"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "project:greeter disabled\n"), "{run:#?}");
    let entry = &workspace.list()["greeter"];
    assert_eq!(entry["status"], "disabled");
    assert!(entry["error"]["message"].as_str().unwrap().contains("too polite"), "{entry:#}");
    assert_eq!(workspace.run(&["call", "greet"]).code, 1);
    let run = workspace.run(&["ext", "enable", "project:greeter"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "project:greeter enabled\n"), "{run:#?}");
    assert_eq!(workspace.run(&["call", "greet"]).stdout, "hi\n");
    let run = workspace.run(&["ext", "disable", "nobody"]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("there are: project:greeter, project:other"), "{}", run.stderr);
}

#[test]
fn a_name_in_two_places_wants_its_id() {
    let workspace = Workspace::new().extension("same", GREETER);
    workspace.home_file("extensions/same/extension.mjs", GREETER);
    for command in ["disable", "enable", "logs", "remove"] {
        let run = workspace.run(&["ext", command, "same"]);
        assert_eq!(run.code, 1, "{run:#?}");
        assert!(run.stderr.contains("use the id: user:same, project:same"), "{}", run.stderr);
    }
    assert_eq!(workspace.run(&["ext", "disable", "project:same"]).code, 0);
    let list = workspace.run(&["ext", "list", "--json"]).json();
    let project = list.as_array().unwrap().iter().find(|entry| entry["id"] == "project:same");
    assert_eq!(project.unwrap()["status"], "disabled");
}

#[test]
fn logs_outlive_the_session() {
    let workspace = Workspace::new().tool("speak", "console.log('spoke of', args.what); return ''");
    let run = workspace.run(&["ext", "logs", "speak"]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("project:speak has no log yet"), "{}", run.stderr);
    workspace.answer("speak", &json!({ "what": "the weather" }));
    workspace.answer("speak", &json!({ "what": "the sea" }));
    let log = workspace.run(&["ext", "logs", "speak"]).stdout;
    let weather = log.find("spoke of the weather").expect("the first session's line");
    assert!(log[weather..].contains("spoke of the sea"), "{log}");
    let log = workspace.run(&["ext", "logs", "speak", "-n", "1", "--json"]).json();
    assert_eq!(log["lines"].as_array().unwrap().len(), 1);
    assert!(Path::new(log["file"].as_str().unwrap()).is_file());
}

#[test]
fn logs_are_followed() {
    let workspace = Workspace::new().tool("speak", "console.log('spoke of', args.what); return ''");
    let mut follow = Running::start(&workspace, &["ext", "logs", "speak", "-f"]);
    workspace.answer("speak", &json!({ "what": "one" }));
    follow.until("spoke of one");
    workspace.answer("speak", &json!({ "what": "two" }));
    follow.until("spoke of two");
}

#[test]
fn trust_is_remembered_and_taken_back() {
    let workspace = Workspace::new().extension("greeter", GREETER);
    let status = || distrustful(&workspace, &["ext", "list", "--json"]).json()[0]["status"].clone();
    assert_eq!(status(), "untrusted");
    let run = distrustful(&workspace, &["trust"]);
    insta::assert_snapshot!(workspace.scrub(&run.stdout), @r"
    trusted [CWD]
      its extensions may run: greeter
    ");
    assert_eq!(status(), "running");
    let list = distrustful(&workspace, &["trust", "--list", "--json"]).json();
    assert_eq!(list[0]["path"], json!(workspace.cwd()));
    assert_eq!(distrustful(&workspace, &["trust", "--revoke"]).code, 0);
    assert_eq!(status(), "untrusted");
    assert_eq!(distrustful(&workspace, &["trust", "--list", "--json"]).json(), json!([]));
}

#[test]
fn trust_for_one_run_is_not_remembered() {
    let workspace = Workspace::new().extension("greeter", GREETER);
    assert_eq!(workspace.list()["greeter"]["status"], "running");
    let list = distrustful(&workspace, &["ext", "list", "--json"]).json();
    assert_eq!(list[0]["status"], "untrusted");
}

#[test]
fn what_is_not_trusted_is_not_even_checked() {
    let workspace = Workspace::new();
    let proof = workspace.cwd().join("executed");
    let source = format!("import fs from 'fs'; fs.writeFileSync({proof:?}, '');\n{GREETER}");
    let workspace = workspace.extension("greeter", &source);
    let run = distrustful(&workspace, &["ext", "check"]);
    assert_eq!(run.code, 1);
    assert!(run.stdout.contains("this workspace is not trusted"), "{}", run.stdout);
    assert!(!proof.exists());
}

#[test]
fn where_review_is_asked_for_a_change_takes_the_permission_away() {
    let workspace = Workspace::new().extension("greeter", GREETER);
    workspace.home_file("config.toml", "[trust]\nreview = true\n");
    let status = || distrustful(&workspace, &["ext", "list", "--json"]).json()[0]["status"].clone();
    assert_eq!(distrustful(&workspace, &["trust"]).code, 0);
    assert_eq!(status(), "untrusted");
    assert_eq!(distrustful(&workspace, &["trust", "--review", "greeter"]).code, 0);
    assert_eq!(status(), "running");
    workspace.file(".github/extensions/greeter/helper.mjs", "");
    assert_eq!(status(), "untrusted");
}

/// The states of the doctor's checks of that name.
fn states(report: &Value, name: &str) -> Vec<String> {
    let checks = report.as_array().unwrap().iter().filter(|check| check["name"] == name);
    checks.map(|check| check["state"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_doctor_finds_nothing_wrong_where_nothing_is() {
    let workspace = Workspace::new().extension("greeter", GREETER);
    let run = workspace.run(&["doctor"]);
    assert_eq!(run.code, 0, "{run:#?}");
    let report = workspace.run(&["doctor", "--json"]).json();
    for name in ["engine", "isolate host", "home", "logs", "configuration", "trust", "sessions"] {
        assert_eq!(states(&report, name), ["ok"], "{name}: {report:#}");
    }
    let found = report.to_string();
    assert!(found.contains(".github/extensions: greeter"), "{found}");
}

#[test]
fn the_doctor_says_what_is_wrong_and_what_to_do() {
    let workspace = Workspace::new().extension("greeter", GREETER);
    workspace.home_file("config.toml", "[extensions.a]\nprofil = 1\n");
    workspace.home_file("trust.json", "{");
    workspace.home_file("switches.json", "{");
    let run = distrustful(&workspace, &["doctor", "--json"]);
    assert_eq!(run.code, 1);
    let report = run.json();
    assert_eq!(states(&report, "configuration"), ["fail"]);
    assert_eq!(states(&report, "trust store"), ["fail"]);
    assert_eq!(states(&report, "switches"), ["fail"]);
    assert_eq!(states(&report, "trust"), ["warn"]);
    let text = distrustful(&workspace, &["doctor"]).stdout;
    assert!(text.contains("profil") && text.contains("move it away"), "{text}");
    assert!(text.contains("tenon trust lets them run"), "{text}");
}

#[test]
fn a_live_session_is_seen_reloaded_and_switched_from_another_process() {
    let workspace = Workspace::new().extension("greeter", GREETER);
    let run = workspace.run(&["ext", "reload"]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("no session is live in"), "{}", run.stderr);

    let mut top = Running::start(&workspace, &["ext", "top", "--json"]);
    let first: Value = serde_json::from_str(&top.line()).unwrap();
    let session = &first["sessions"][0];
    assert_eq!(session["extensions"][0]["id"], "project:greeter");
    assert_eq!(session["extensions"][0]["status"], "running");

    let told = workspace.run(&["ext", "reload", "--json"]).json();
    assert_eq!(told[0]["session"], session["id"]);
    assert_eq!(told[0]["answer"]["reloaded"], json!(["project:greeter"]));
    let run = workspace.run(&["ext", "reload", "nobody"]);
    assert_eq!(run.code, 1, "{run:#?}");

    let told = workspace.run(&["ext", "disable", "greeter", "--json"]).json();
    assert_eq!(told["sessions"][0]["answer"]["status"], "disabled");
    top.until("\"status\":\"disabled\"");
    let table = workspace.run(&["ext", "top", "--once"]).stdout;
    assert!(table.contains("RESTARTS") && table.contains("disabled"), "{table}");
}

#[test]
fn what_a_killed_session_leaves_behind_is_removed() {
    let workspace = Workspace::new().extension("greeter", GREETER);
    let mut top = Running::start(&workspace, &["ext", "top", "--json"]);
    top.line();
    let sockets = || std::fs::read_dir(workspace.home().join("run")).unwrap().count();
    assert_eq!(sockets(), 1);
    drop(top);
    assert_eq!(sockets(), 1);
    let text = workspace.run(&["doctor"]).stdout;
    assert!(text.contains("1 socket of dead processes removed"), "{text}");
    assert_eq!(sockets(), 0);
}

#[test]
fn every_command_for_people_has_examples() {
    let workspace = Workspace::new();
    let ext = ["new", "check", "reload", "enable", "disable", "install", "remove", "logs", "top"];
    let ext = ext.map(|name| vec!["ext", name, "--help"]);
    for command in ext.into_iter().chain([vec!["trust", "--help"], vec!["doctor", "--help"]]) {
        let help = workspace.run(&command).stdout;
        assert!(help.contains("Examples:"), "{command:?}: {help}");
    }
    assert!(!workspace.run(&["--help"]).stdout.contains("isolate-host"));
}
