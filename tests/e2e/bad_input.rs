//! Broken extensions: each gets a clear status, and the one beside it works.

use serde_json::Value;
use serde_json::json;
use tenon_tests::Workspace;

const GOOD: &str = "import { joinSession } from '@github/copilot-sdk/extension';\n\
                    await joinSession({ tools: [{ name: 'good', handler: () => 'fine' }] });";

/// Loads a broken extension beside a good one; returns the broken one's error after checking that
/// the good one works.
fn error_of(source: &str) -> Value {
    let workspace = Workspace::new().extension("broken", source).extension("good", GOOD);
    error_in(&workspace)
}

fn error_in(workspace: &Workspace) -> Value {
    let list = workspace.list();
    assert_eq!(list["good"]["status"], "running");
    assert_eq!(list["broken"]["status"], "failed", "{:#}", list["broken"]);
    assert_eq!(list["broken"]["tools"], json!([]));
    assert_eq!(workspace.answer("good", &json!({})), "fine");
    list["broken"]["error"].clone()
}

fn message(error: &Value) -> &str {
    error["message"].as_str().unwrap()
}

#[test]
fn a_syntax_error_is_shown_with_its_place() {
    let error = error_of("const a = 1;\nconst b = ;\n");
    assert!(message(&error).contains("SyntaxError"), "{error}");
    assert!(error["file"].as_str().unwrap().ends_with("broken/extension.mjs"), "{error}");
    assert_eq!(error["line"], 2, "{error}");
    assert_eq!(error["source_line"], "const b = ;");
}

#[test]
fn a_syntax_error_in_an_imported_file_names_that_file() {
    let workspace =
        Workspace::new().extension("broken", "import './other.mjs';").extension("good", GOOD);
    workspace.file(".github/extensions/broken/other.mjs", "\n\nlet let = 1;");
    let error = error_in(&workspace);
    assert!(error["file"].as_str().unwrap().ends_with("broken/other.mjs"), "{error}");
    assert_eq!(error["line"], 3, "{error}");
}

#[test]
fn a_missing_file_is_named_with_the_line_that_wants_it() {
    let error = error_of("\nimport { x } from './missing.mjs';\n");
    assert!(message(&error).contains("missing.mjs"), "{error}");
    assert!(error["file"].as_str().unwrap().ends_with("broken/extension.mjs"), "{error}");
    assert_eq!(error["line"], 2, "{error}");
}

#[test]
fn a_missing_package_says_how_to_install_it() {
    let error = error_of("import x from 'left-pad';");
    assert!(message(&error).contains("left-pad"), "{error}");
    assert!(message(&error).contains("npm install left-pad"), "{error}");
}

#[test]
fn a_throw_at_the_top_level_is_shown_with_its_place_and_stack() {
    let error = error_of("function f() {\n  throw new TypeError('no luck');\n}\nf();\n");
    assert_eq!(message(&error), "TypeError: no luck");
    assert_eq!((&error["line"], &error["column"]), (&json!(2), &json!(9)));
    assert_eq!(error["source_line"], "  throw new TypeError('no luck');");
    assert_eq!(error["stack"].as_str().unwrap().lines().count(), 2, "{error}");
}

#[test]
fn a_rejection_at_the_top_level_is_shown() {
    let error = error_of("await Promise.reject(new Error('later'));");
    assert_eq!(message(&error), "Error: later");
}

#[test]
fn an_error_after_joining_takes_the_tools_away() {
    let error =
        error_of(&format!("{}\nthrow new Error('too late');", GOOD.replace("'good'", "'gone'")));
    assert_eq!(message(&error), "Error: too late");
}

#[test]
fn process_exit_while_loading_ends_that_extension_only() {
    let error = error_of("process.exit(3);");
    assert!(message(&error).contains("process.exit(3)"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("stays loaded"), "{error}");
}

#[test]
fn an_extension_that_never_joins_fails_at_its_deadline() {
    let workspace = Workspace::new()
        .extension("broken", "setInterval(() => {}, 1000);")
        .extension("good", GOOD);
    workspace.home_file("config.toml", "[extensions.broken]\nstart-deadline-s = 1\n");
    let error = error_in(&workspace);
    assert!(message(&error).contains("joinSession was not called within 1 second"), "{error}");
}

#[test]
fn only_join_session_counts_as_joining() {
    let source = "import { CopilotSession } from '@github/copilot-sdk';\n\
                  await new CopilotSession({}).log('hi');\nsetInterval(() => {}, 1000);";
    let workspace = Workspace::new().extension("broken", source).extension("good", GOOD);
    workspace.home_file("config.toml", "[extensions.broken]\nstart-deadline-s = 1\n");
    assert!(message(&error_in(&workspace)).contains("joinSession was not called"));
}

#[test]
fn an_endless_loop_while_loading_fails_at_its_deadline() {
    let workspace = Workspace::new().extension("broken", "for (;;) {}").extension("good", GOOD);
    workspace.home_file("config.toml", "[extensions.broken]\nstart-deadline-s = 1\n");
    let error = error_in(&workspace);
    assert!(message(&error).contains("joinSession was not called within 1 second"), "{error}");
}

#[test]
fn a_tool_name_used_twice_fails_the_extension() {
    let error = error_of(
        "import { joinSession } from '@github/copilot-sdk/extension';\n\
         const handler = () => '';\n\
         await joinSession({ tools: [{ name: 'same', handler }, { name: 'same', handler }] });",
    );
    assert!(message(&error).contains("\"same\" is used twice"), "{error}");
    assert_eq!(error["line"], 3);
}

#[test]
fn a_tool_name_that_is_taken_fails_the_newcomer_and_names_both_files() {
    let workspace = Workspace::new().extension("one", GOOD).extension("two", GOOD);
    let list = workspace.list();
    // Who comes second depends on who is faster.
    let (first, second) =
        if list["one"]["status"] == "running" { ("one", "two") } else { ("two", "one") };
    assert_eq!(list[first]["status"], "running");
    assert_eq!(list[second]["status"], "failed");
    let error = message(&list[second]["error"]);
    assert!(error.contains("one/extension.mjs") && error.contains("two/extension.mjs"), "{error}");
    assert_eq!(workspace.answer("good", &json!({})), "fine");
}

#[test]
fn an_invalid_tool_name_fails_the_extension() {
    let error = error_of(
        "import { joinSession } from '@github/copilot-sdk/extension';\n\
         await joinSession({ tools: [{ name: 'has space', handler() {} }] });",
    );
    assert!(message(&error).contains("invalid tool name \"has space\""), "{error}");
}

#[test]
fn a_tool_name_that_some_agents_refuse_is_a_warning() {
    let source = GOOD.replace("'good'", "'n'.repeat(65)");
    let workspace = Workspace::new().extension("long-name", &source);
    assert_eq!(workspace.list()["long-name"]["status"], "running");
    let log = crate::results::log_of(&workspace, "long-name");
    assert!(log.contains("65 characters long; some agents accept only 64"), "{log}");
}

#[test]
fn unknown_keys_and_hooks_are_warnings() {
    let source = "import { joinSession } from '@github/copilot-sdk/extension';\n\
                  await joinSession({ name: 'x', hooks: { onNothing() {} } });";
    let workspace = Workspace::new().extension("odd", source);
    let log = crate::results::log_of(&workspace, "odd");
    assert!(log.contains("unknown key \"name\" is ignored"), "{log}");
    assert!(log.contains("unknown hook \"onNothing\" is ignored"), "{log}");
}

#[test]
fn a_part_of_a_package_that_is_not_there_is_not_called_a_missing_package() {
    let workspace =
        Workspace::new().extension("broken", "import 'pkg/inner';").extension("good", GOOD);
    workspace.file(
        "node_modules/pkg/package.json",
        r#"{ "name": "pkg", "exports": { ".": "./i.js" } }"#,
    );
    workspace.file("node_modules/pkg/i.js", "");
    let error = error_in(&workspace);
    assert!(!message(&error).contains("npm install"), "{error}");
    assert!(message(&error).contains("./inner"), "{error}");
}

#[test]
fn a_file_that_is_not_utf8_is_named_with_the_byte() {
    let workspace = Workspace::new().extension("good", GOOD);
    workspace.file(".github/extensions/broken/extension.mjs", b"// ok\n// caf\xe9\n");
    let error = error_in(&workspace);
    assert!(message(&error).contains("not valid UTF-8: byte 0xe9 at offset 12"), "{error}");
    assert_eq!(error["line"], 2);
}

#[test]
fn an_entry_that_is_a_folder_or_leads_nowhere_is_listed_with_the_reason() {
    let workspace = Workspace::new().extension("good", GOOD);
    std::fs::create_dir_all(workspace.cwd().join(".github/extensions/broken/extension.mjs"))
        .unwrap();
    assert!(message(&error_in(&workspace)).contains("is a folder, not a file"));

    let workspace = Workspace::new().extension("good", GOOD);
    let folder = workspace.cwd().join(".github/extensions/broken");
    std::os::unix::fs::symlink("/no/where", folder).unwrap();
    assert!(message(&error_in(&workspace)).contains("a symbolic link to nothing"));
}

#[test]
fn importing_from_the_network_is_refused() {
    let error = error_of("import 'https://example.org/x.js';");
    assert!(message(&error).contains("modules are loaded from files"), "{error}");
}

#[test]
fn no_extensions_says_where_it_looked() {
    let workspace = Workspace::new();
    let run = workspace.run(&["ext", "list"]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(workspace.scrub(&run.stderr), @r"
    error: no extensions were found. Looked in:
      user          [HOME]/extensions (not there)
      user          [ROOT]/.copilot/extensions (not there)
      project       [CWD]/.github/extensions (not there)
    hint: an extension is a folder with an extension.mjs in one of these places
    ");
    assert_eq!(workspace.run(&["ext", "list", "--json"]).json(), json!([]));
}

#[test]
fn an_untrusted_workspace_executes_nothing() {
    let workspace = Workspace::new();
    let proof = workspace.cwd().join("executed");
    let source = format!("import fs from 'fs'; fs.writeFileSync({proof:?}, '');\n{GOOD}");
    let workspace = workspace.extension("good", &source);
    let mut command = std::process::Command::new(tenon_tests::tenon());
    command.args(["ext", "list", "--json"]).current_dir(workspace.cwd());
    command.env("TENON_HOME", workspace.home()).env("COPILOT_HOME", workspace.home());
    let run = tenon_tests::Run::new(command.output().unwrap());
    assert_eq!(run.json()[0]["status"], "untrusted");
    assert!(!proof.exists());
}

#[test]
fn bad_arguments_are_explained() {
    let workspace = Workspace::new().extension("good", GOOD);
    let run = workspace.run(&["call", "good", "--args", "{"]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("--args is not valid JSON"), "{}", run.stderr);
    let run = workspace.run(&["call", "nope"]);
    assert!(run.stderr.contains("there is no tool \"nope\""), "{}", run.stderr);
    assert!(run.stderr.contains("there are: good"), "{}", run.stderr);
    let run = workspace.run(&["ext", "inspect", "nope"]);
    assert!(run.stderr.contains("there are: project:good"), "{}", run.stderr);
    let run = workspace.run(&["ext", "list", "--cwd", "/no/where"]);
    assert!(run.stderr.contains("/no/where cannot be entered"), "{}", run.stderr);
}

#[test]
fn a_broken_configuration_is_shown_with_its_place() {
    let workspace = Workspace::new().extension("good", GOOD);
    workspace.home_file("config.toml", "[extensions.good]\nprofile = \"all\"\n");
    let run = workspace.run(&["ext", "list"]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("config.toml") && run.stderr.contains("profile"), "{}", run.stderr);
}

#[test]
fn inspect_shows_a_load_error_as_a_person_reads_it() {
    let workspace = Workspace::new()
        .extension("broken", "import fs from 'node:fs';\n\nfs.readFileSyncc('x');\n");
    let run = workspace.run(&["ext", "inspect", "broken"]);
    let text = workspace.scrub(&run.stdout);
    let changes = ["hash ", "log file ", "group ", "==="];
    let is_stable = |line: &&str| !changes.iter().any(|change| line.contains(change));
    let text: Vec<&str> = text.lines().filter(is_stable).collect();
    insta::assert_snapshot!(text.join("\n"), @r"
    project:broken  failed
      path        [CWD]/.github/extensions/broken/extension.mjs
      generation  1
      sandbox     none: the grant restricts nothing
    Error
      TypeError: fs.readFileSyncc is not a function
      --> [CWD]/.github/extensions/broken/extension.mjs:3:4
      3 | fs.readFileSyncc('x');
        |    ^
    Stack
      at file://[CWD]/.github/extensions/broken/extension.mjs:3:4
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
      TypeError: fs.readFileSyncc is not a function
          at [CWD]/.github/extensions/broken/extension.mjs:3:4
    ");
}
