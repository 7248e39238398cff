//! What people do with extensions from the command line: make, check, install, switch, read, trust.

use std::io::BufRead;
use std::io::BufReader;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::mpsc::Receiver;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;
use serde_json::json;
use tenon_tests::Run;
use tenon_tests::Workspace;

const GREETER: &str = "import { joinSession } from '@github/copilot-sdk/extension';\n\
    await joinSession({ tools: [{ name: 'greet', description: 'Greets', handler: () => 'hi' }] });\n";

/// Says a secret that it asks for, and where it keeps its data.
const KEEPER: &str = "import { joinSession } from '@github/copilot-sdk/extension';\n\
    import fs from 'node:fs';\n\
    const data = process.env.TENON_EXTENSION_DATA;\n\
    fs.mkdirSync(data, { recursive: true });\n\
    fs.writeFileSync(data + '/kept', '');\n\
    await joinSession({ requestedEnvironmentVariables: ['KEEPER_TOKEN'], tools: [{ name: 'tell',\n\
      description: 'Tells', handler: () => `${process.env.KEEPER_TOKEN} ${data}` }] });\n";

/// The program without `--trust`, which the workspace's own commands have.
fn distrustful(workspace: &Workspace, args: &[&str]) -> Run {
    Run::new(distrustful_command(workspace, args).output().unwrap())
}

fn distrustful_command(workspace: &Workspace, args: &[&str]) -> Command {
    let home = workspace.home();
    let mut command = Command::new(tenon_tests::tenon());
    command.args(args).current_dir(workspace.cwd()).env_clear().stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", home.parent().unwrap()).env("TENON_HOME", &home);
    command
}

/// Lets an extension have its secret, as if the person had said yes before.
fn let_have(workspace: &Workspace, id: &str, folder: &Path, secret: &str) {
    let approvals = json!({ format!("{id} {}", folder.display()): [[secret]] });
    workspace.home_file("environment-approvals.json", approvals.to_string());
}

/// What is remembered of secrets that were given.
fn approvals(workspace: &Workspace) -> String {
    std::fs::read_to_string(workspace.home().join("environment-approvals.json")).unwrap()
}

/// Everything in the folder of the user's extensions, also what is hidden.
fn in_users_folder(workspace: &Workspace) -> Vec<PathBuf> {
    let folder = workspace.home().join("extensions");
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// How long a program may say nothing before the test gives up: it hangs.
const PATIENCE: Duration = Duration::from_secs(300);

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

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(10));
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
fn an_extension_that_is_removed_leaves_nothing_behind() {
    for scope in ["user", "project"] {
        let workspace = Workspace::new().env("KEEPER_TOKEN", "hush");
        let install = |source: &str| {
            let mut args = vec!["ext", "install", source, "--no-check", "--json"];
            args.extend((scope == "project").then_some("--project"));
            PathBuf::from(workspace.run(&args).json()["folder"].as_str().unwrap())
        };
        workspace.file("one/keeper/extension.mjs", KEEPER);
        workspace.file("two/keeper/extension.mjs", KEEPER);
        let folder = install("one/keeper");
        assert_eq!(workspace.run(&["call", "tell"]).code, 1);
        let_have(&workspace, &format!("{scope}:keeper"), &folder, "KEEPER_TOKEN");
        let answer = workspace.answer("tell", &json!({}));
        let data = PathBuf::from(answer.strip_prefix("hush ").unwrap());
        let log = workspace.run(&["ext", "logs", "keeper", "--json"]).json()["file"].clone();
        let log = PathBuf::from(log.as_str().unwrap());
        let aside = log.with_extension("log.1");
        std::fs::write(&aside, "").unwrap();
        // One that another extension might have.
        let other = log.with_extension("log-b.log");
        std::fs::write(&other, "").unwrap();
        assert!(data.join("kept").exists() && log.exists(), "{data:?} {log:?}");

        let run = workspace.run(&["ext", "remove", "keeper", "--yes"]);
        assert_eq!(run.code, 0, "{run:#?}");
        for gone in [&folder, &data, &log, &aside] {
            assert!(!gone.exists(), "{gone:?}");
            assert!(run.stdout.contains(gone.to_str().unwrap()), "{gone:?}: {}", run.stdout);
        }
        assert!(run.stdout.contains("secrets that it was given are forgotten"), "{}", run.stdout);
        assert!(other.exists());
        assert_eq!(approvals(&workspace), "{}\n");

        assert_eq!(install("two/keeper"), folder);
        let run = workspace.run(&["call", "tell"]);
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{run:#?}");
    }
}

#[test]
fn what_a_removed_extension_says_at_its_end_leaves_no_log() {
    let workspace = Workspace::new();
    let source = format!("{GREETER}process.on('SIGTERM', () => console.log('last words'));\n");
    workspace.home_file("extensions/greeter/extension.mjs", source);
    let mut top = Running::start(&workspace, &["ext", "top", "--json"]);
    top.line();
    let log = workspace.home().join("logs/user-greeter.log");
    wait_until("there is a log", || log.exists());
    let run = workspace.run(&["ext", "remove", "greeter", "--yes"]);
    assert_eq!(run.code, 0, "{run:#?}");
    top.until("\"extensions\":[]");
    assert!(!log.exists());
}

#[test]
fn secrets_are_not_inherited_by_another_extension_of_the_same_name() {
    let workspace = Workspace::new().env("KEEPER_TOKEN", "hush");
    let folder = workspace.home().join("extensions/keeper");
    workspace.file("one/keeper/extension.mjs", KEEPER);
    workspace.file("two/keeper/extension.mjs", KEEPER);
    let install = |source: &str| {
        workspace.run(&["ext", "install", source, "--no-check", "--replace", "--json"]).json()
    };
    let says = || workspace.run(&["call", "tell"]).stdout;
    install("one/keeper");
    let_have(&workspace, "user:keeper", &folder, "KEEPER_TOKEN");
    assert!(says().starts_with("hush "));
    // A newer one of the same.
    assert_eq!(install("one/keeper")["secrets_forgotten"], false);
    assert!(says().starts_with("hush "));
    assert_eq!(install("two/keeper")["secrets_forgotten"], true);
    assert_eq!(says(), "");
    // One that came after another was deleted by hand.
    let_have(&workspace, "user:keeper", &folder, "KEEPER_TOKEN");
    assert!(says().starts_with("hush "));
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(install("two/keeper")["secrets_forgotten"], true);
    assert_eq!(says(), "");
    // What cannot be forgotten keeps the newcomer out.
    workspace.home_file("environment-approvals.json", "{");
    let run = workspace.run(&["ext", "install", "one/keeper", "--no-check", "--replace"]);
    assert_eq!(run.code, 1, "{run:#?}");
    assert!(run.stderr.contains("environment-approvals.json is damaged"), "{}", run.stderr);
    let run = workspace.run(&["ext", "remove", "keeper", "--yes"]);
    assert_eq!(run.code, 1, "{run:#?}");
    assert!(folder.is_dir());
}

#[test]
fn two_of_the_users_extensions_with_one_name_share_what_they_keep() {
    let workspace = Workspace::new();
    let copilot = workspace.home().parent().unwrap().join(".copilot/extensions/same");
    std::fs::create_dir_all(&copilot).unwrap();
    std::fs::write(copilot.join("extension.mjs"), GREETER).unwrap();
    workspace.home_file("extensions/same/extension.mjs", GREETER);
    let data = workspace.home_file("extension-data/user/same/kept", "");
    let remove = || workspace.run(&["ext", "remove", "same", "--yes", "--json"]);
    // A name that is in both means the one that is used.
    let run = workspace.run(&["ext", "remove", "user:same", "--yes", "--json"]);
    assert_eq!(run.json()["also_removed"], json!([]));
    assert!(data.exists());
    assert_eq!(remove().json()["also_removed"], json!([data.parent().unwrap()]));
    assert!(!data.exists());
}

#[test]
fn an_interrupted_install_leaves_nothing_behind() {
    let workspace = Workspace::new();
    let fetching = workspace.cwd().join("fetching");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *' fetch '*) touch '{}'; exec sleep 600 ;; esac\n",
        fetching.display()
    );
    let git = workspace.file("bin/git", script);
    std::fs::set_permissions(&git, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", git.parent().unwrap().display());
    // As a terminal does it: to everybody in the group. And as `kill` does: to the program alone.
    for (signal, to_group) in [(libc::SIGINT, true), (libc::SIGTERM, false)] {
        let mut command = workspace.command(&["ext", "install", "https://example.org/x.git"]);
        command.env("PATH", &path).process_group(0);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        wait_until("git fetches", || fetching.exists());
        assert_eq!(in_users_folder(&workspace).len(), 1);
        let process = child.id().cast_signed();
        // SAFETY: the process and its group are ours, and it was not waited for.
        unsafe { libc::kill(if to_group { -process } else { process }, signal) };
        wait_until("the program ends", || child.try_wait().unwrap().is_some());
        let run = Run::new(child.wait_with_output().unwrap());
        assert_eq!(run.code, 130, "{run:#?}");
        assert!(run.stderr.contains("error: interrupted"), "{}", run.stderr);
        assert_eq!(in_users_folder(&workspace), [""; 0].map(PathBuf::from));
        std::fs::remove_file(&fetching).unwrap();
    }
}

#[test]
fn an_install_that_is_interrupted_on_trial_leaves_nothing_behind() {
    let workspace = Workspace::new();
    let loaded = workspace.cwd().join("loaded");
    let source = format!(
        "import fs from 'node:fs'; fs.writeFileSync({loaded:?}, '');\n\
         await new Promise((resolve) => setTimeout(resolve, 600_000));\n"
    );
    workspace.file("source/slow/extension.mjs", source);
    // Also on a busy machine it is still on trial when the interrupt comes.
    workspace.home_file("config.toml", "[extensions.\"*\"]\nstart-deadline-s = 600\n");
    let mut command = workspace.command(&["ext", "install", "source/slow"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the extension is loaded", || loaded.exists());
    // SAFETY: the process is ours, and it was not waited for.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGINT) };
    wait_until("the program ends", || child.try_wait().unwrap().is_some());
    let run = Run::new(child.wait_with_output().unwrap());
    assert_eq!(run.code, 130, "{run:#?}");
    assert_eq!(in_users_folder(&workspace), [""; 0].map(PathBuf::from));
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
fn no_variable_makes_folders_of_a_repository_the_users_own() {
    let workspace = Workspace::new();
    let proof = workspace.cwd().join("executed");
    let source = format!("import fs from 'fs'; fs.writeFileSync({proof:?}, '');\n{GREETER}");
    workspace.file("extensions/evil/extension.mjs", &source);
    workspace.file("sub/extensions/evil/extension.mjs", &source);
    for name in ["COPILOT_HOME", "TENON_HOME"] {
        for value in ["", ".", "sub"] {
            let mut command = distrustful_command(&workspace, &["ext", "list", "--json"]);
            let run = Run::new(command.env(name, value).output().unwrap());
            assert!(!proof.exists() && !run.stdout.contains("evil"), "{name}={value}: {run:#?}");
            let refused = run.stderr.contains(&format!("{name} is not an absolute path: {value}"));
            assert_eq!(refused, !value.is_empty(), "{name}={value}: {run:#?}");
        }
    }
    // Nor does a home that is seen from elsewhere.
    let mut command = distrustful_command(&workspace, &["ext", "list", "--json"]);
    command.args(["--cwd", "repo", "--home", "sub"]).current_dir(workspace.cwd().parent().unwrap());
    let run = Run::new(command.output().unwrap());
    assert!(!proof.exists() && !run.stdout.contains("evil"), "{run:#?}");
}

#[test]
fn names_of_folders_do_nothing_to_the_terminal() {
    let workspace = Workspace::new();
    let folder = workspace.cwd().join("odd\x1b]0;owned\x07\nfolder");
    std::fs::create_dir_all(folder.join(".git")).unwrap();
    let extension = folder.join(".github/extensions/odd\x1b[2J");
    std::fs::create_dir_all(&extension).unwrap();
    std::fs::write(extension.join("extension.mjs"), GREETER).unwrap();
    for args in [&["trust"][..], &["trust", "--list"], &["doctor"], &["trust", "--revoke"]] {
        let mut command = distrustful_command(&workspace, args);
        // Else all that looks like a colour would be left out.
        let run = command.current_dir(&folder).env("CLICOLOR_FORCE", "1").output().unwrap();
        let run = Run::new(run);
        assert!(run.stdout.contains("odd\\u{1b}]0;owned\\u{7}"), "{args:?}: {run:#?}");
        assert!(!run.stdout.contains("\x1b]") && !run.stdout.contains("\x1b[2J"), "{run:#?}");
    }
}

#[test]
fn what_extensions_say_does_nothing_to_the_terminal() {
    const NASTY: &str = "a\\x1b]0;owned\\x07\\x1b[31mred\\u202etxt\\x9b2Jb\\r\\x1b[2J";
    let source = format!(
        "import {{ joinSession }} from '@github/copilot-sdk/extension';\n\
         const nasty = '{NASTY}';\n\
         const session = await joinSession({{ tools: [{{ name: 'nasty', description: nasty, handler() {{ throw new Error(nasty); }} }}] }});\n\
         console.error(nasty);\nawait session.log(nasty);\n"
    );
    let workspace = Workspace::new().extension("nasty", &source);
    let commands = [
        &["call", "nasty", "-v"][..],
        &["ext", "inspect", "nasty"],
        &["ext", "logs", "nasty"],
        &["ext", "check", "nasty"],
        &["ext", "list"],
    ];
    for args in commands {
        let run = Run::new(workspace.command(args).env("CLICOLOR_FORCE", "1").output().unwrap());
        let printed = format!("{}{}", run.stdout, run.stderr);
        let said = printed.contains("redtxt");
        assert!(said || matches!(args[1], "check" | "list"), "{args:?}: {run:#?}");
        let obeyed = ["\x1b]", "\x1b[31mred", "\x1b[2J", "\r", "\u{7}", "\u{9b}", "\u{202e}"];
        for sequence in obeyed {
            assert!(!printed.contains(sequence), "{sequence:?} in {args:?}: {run:#?}");
        }
    }
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

#[test]
fn what_waits_for_an_approval_runs_once_it_is_reviewed() {
    let workspace = Workspace::new().extension("greeter", GREETER);
    assert_eq!(distrustful(&workspace, &["trust"]).code, 0);
    let file = workspace.home().join("trust.json");
    let mut store: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let folder = workspace.cwd().join(".github/extensions/greeter");
    let folder = std::fs::canonicalize(folder).unwrap().to_str().unwrap().to_owned();
    store["held"] =
        serde_json::json!({ folder: { "before": null, "held_at": "2026-01-01T00:00:00Z" } });
    std::fs::write(&file, store.to_string()).unwrap();
    let list = || distrustful(&workspace, &["ext", "list", "--json"]).json()[0].clone();
    let waits = list();
    assert_eq!(
        (&waits["status"], &waits["waits_for_approval"]),
        (&"untrusted".into(), &true.into())
    );
    let said = distrustful(&workspace, &["ext", "inspect", "greeter"]).stdout;
    assert!(said.contains("it waits for your approval"), "{said}");
    assert!(said.contains("tenon trust --review greeter"), "{said}");
    let run = distrustful(&workspace, &["trust", "--review", "greeter", "--json"]);
    assert_eq!(run.json()["waited"], true);
    assert_eq!(list()["status"], "running");
}

#[test]
fn inspect_shows_a_few_of_what_could_not_be_protected() {
    let workspace = Workspace::new().extension("greeter", GREETER);
    workspace.home_file("config.toml", "[extensions.greeter]\nprofile = \"workspace\"\n");
    let notes = workspace.run(&["ext", "inspect", "greeter", "--json"]).json();
    let notes = notes["sandbox"]["notes"].as_array().unwrap().len();
    assert!(notes > 3, "{notes}");
    let shown = workspace.run(&["ext", "inspect", "greeter"]).stdout;
    assert_eq!(shown.matches("is not denied").count(), 3, "{shown}");
    assert!(shown.contains(&format!("and {} more (--json lists all)", notes - 3)), "{shown}");
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
    for name in ["engine", "zygote", "home", "logs", "configuration", "trust", "sessions"] {
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
fn help_is_for_people() {
    let help = Workspace::new().run(&["--help"]).stdout;
    assert!(help.contains("tenon run -a claude") && !help.contains("zygote"), "{help}");
}
