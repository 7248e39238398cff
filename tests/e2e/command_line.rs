//! The commands, as a person and a script see them.

use serde_json::json;
use tenon_tests::Workspace;

const HELLO: &str = "import { joinSession } from '@github/copilot-sdk/extension';\n\
    await joinSession({ tools: [{ name: 'hello', description: 'Says hello', handler: () => 'hi' }], \
      hooks: { onSessionStart() {} }, commands: [{ name: '/greet', description: 'Greets', handler() {} }] });";

#[test]
fn version_and_engine_info_name_the_engine() {
    let workspace = Workspace::new();
    let engine = tenon_tests::ENGINE;
    let version = workspace.run(&["--version"]).stdout;
    assert!(version.starts_with("tenon ") && version.contains(&format!("({engine} ")), "{version}");
    let info = workspace.run(&["--engine-info", "--json"]).json();
    assert_eq!(info["name"], engine);
    assert!(version.contains(info["version"].as_str().unwrap()));
}

#[test]
fn list_is_a_table_and_an_array() {
    let workspace = Workspace::new().extension("hello", HELLO).extension("broken", "throw 1;");
    let text = workspace.scrub(&workspace.run(&["ext", "list"]).stdout);
    insta::assert_snapshot!(text, @r"
    ID              STATUS   TOOLS  ALSO
    project:broken  failed   -      
    project:hello   running  hello  1 hook, 1 command

    project:broken failed
      1
    ");
    let entry = &workspace.list()["hello"];
    let keys: Vec<&str> = entry.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "id",
        "name",
        "source",
        "path",
        "status",
        "error",
        "last_error",
        "tools",
        "hooks",
        "commands",
        "canvases",
        "generation",
        "failures",
        "limits",
        "log_file",
        "pid",
        "sandbox",
        "files",
        "hash",
        "engine",
    ];
    assert_eq!(keys[..expected.len()], expected);
    assert_eq!(entry["id"], "project:hello");
    assert_eq!(entry["error"], json!(null));
    assert_eq!(entry["generation"], 1);
    assert_eq!(entry["hash"].as_str().unwrap().len(), 64);
    assert_eq!(entry["commands"], json!([{ "name": "greet", "description": "Greets" }]));
}

#[test]
fn inspect_shows_what_an_extension_offers() {
    let workspace = Workspace::new().extension("hello", HELLO);
    let text = workspace.scrub(&workspace.run(&["ext", "inspect", "project:hello"]).stdout);
    let changes = ["hash ", "ready ", "log file ", "group ", "==="];
    let is_stable = |line: &&str| !changes.iter().any(|change| line.contains(change));
    let stable: Vec<&str> = text.lines().filter(is_stable).collect();
    insta::assert_snapshot!(stable.join("\n"), @r"
    project:hello  running
      path        [CWD]/.github/extensions/hello/extension.mjs
      generation  1
      sandbox     none: the grant restricts nothing
    Tools
      hello  Says hello
    Hooks
      onSessionStart
    Commands
      /greet  Greets
    Files
      extension.mjs
    Limits
      heap-mb               512 MB
      buffer-mb             512 MB
      memory-mb             1536 MB
      cpu-ms                10 s
      children              64
      log-lines-per-second  1000
      result-kb             16384 KB
      start-deadline-s      10 s
      hook-deadline-ms      30 s
      handler-deadline-ms   600 s
      tool-deadline-ms      none
    Log
    ");
}

#[test]
fn user_extensions_are_found_and_shadowed_by_the_projects() {
    let workspace = Workspace::new().extension("same", HELLO);
    workspace.home_file("extensions/same/extension.mjs", HELLO);
    workspace.home_file(
        "extensions/other/extension.mjs",
        HELLO.replace("'hello'", "'other'").replace("greet", "welcome"),
    );
    let list = workspace.run(&["ext", "list", "--json"]).json();
    let seen: Vec<_> =
        list.as_array().unwrap().iter().map(|e| (e["id"].clone(), e["status"].clone())).collect();
    assert_eq!(
        seen,
        [("user:other", "running"), ("user:same", "shadowed"), ("project:same", "running")]
            .map(|(id, status)| (json!(id), json!(status)))
    );
    let run = workspace.run(&["ext", "inspect", "same"]);
    assert!(run.stderr.contains("use the id: user:same, project:same"), "{}", run.stderr);
}

#[test]
fn the_sdk_is_found_from_a_sub_folder_a_worktree_and_behind_a_link() {
    let workspace = Workspace::new().extension("hello", HELLO);
    std::fs::remove_dir(workspace.cwd().join(".git")).unwrap();
    workspace.file(".git", "gitdir: /elsewhere/worktrees/x");
    workspace.file("deep/down/file", "");
    let deep = workspace.cwd().join("deep/down").to_string_lossy().into_owned();
    assert_eq!(workspace.run(&["call", "hello", "--cwd", &deep]).stdout, "hi\n");
}

#[test]
fn agents_are_listed() {
    let agents = Workspace::new().run(&["agents", "--json"]).json();
    assert_eq!(agents[0]["name"], "claude");
    assert_eq!(agents[2]["command"], "copilot --acp");
}

#[test]
fn the_demo_runs_to_its_end() {
    let run = Workspace::new().run(&["demo"]);
    assert_eq!(run.code, 0, "{run:#?}");
    for part in [
        "notes.txt: 2 lines, 9 words, 49 bytes",
        "TypeError: Cannot read properties of undefined",
        "project:curious has no read access to \"/etc/passwd\"",
        "rolled 2",
        "dice/extension.mjs:",
        // Which one depends on whether the scaffold was noticed before the agent had written its own.
        " goes on",
        "limit cpu-ms",
        "stuck/extension.mjs:",
        "stuck was started again",
        "done",
    ] {
        // QuickJS words the error in its own way.
        if cfg!(feature = "quickjs") && part.starts_with("TypeError") {
            assert!(run.stdout.contains("TypeError: "), "{}", run.stdout);
        } else {
            assert!(run.stdout.contains(part), "{part} is missing in\n{}", run.stdout);
        }
    }
}

#[test]
fn arguments_may_come_from_standard_input() {
    let workspace = Workspace::new().tool("echo", "return args.x");
    let input = workspace.file("input.json", r#"{ "x": "from a file" }"#);
    let mut command = workspace.command(&["call", "echo", "--args", "-"]);
    command.stdin(std::fs::File::open(input).unwrap());
    assert_eq!(command.output().unwrap().stdout, b"from a file\n");
}

#[cfg(target_os = "linux")]
#[test]
fn the_layers_of_the_sandbox_are_shown() {
    let workspace = Workspace::new().tool("free", "return 1;").tool("confined", "return 2;");
    workspace.home_file("config.toml", "[extensions.confined]\nprofile = \"none\"\n");
    let layers = tenon_sandbox::available();
    let doctor = workspace.run(&["doctor"]).stdout;
    let line = doctor.lines().find(|line| line.contains("sandbox")).unwrap();
    assert!(line.contains(&layers.to_string()), "{doctor}");
    let shown = |name: &str| {
        let text = workspace.run(&["ext", "inspect", name]).stdout;
        let line = text.lines().find_map(|line| line.trim().strip_prefix("sandbox"));
        line.unwrap_or_else(|| panic!("{text}")).trim().to_owned()
    };
    assert_eq!(shown("free"), "none: the grant restricts nothing");
    // A mount namespace is made where something inside of an allowed folder is denied, which is so with this profile or not.
    let with = |mount_namespace| {
        let mut layers = layers.clone();
        layers.mount_namespace = mount_namespace;
        layers.to_string()
    };
    let confined = shown("confined");
    assert!([with(true), with(false)].contains(&confined), "{confined} of {layers}");
}
