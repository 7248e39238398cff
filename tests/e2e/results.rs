//! What a handler does and what the caller sees.

use serde_json::Value;
use serde_json::json;
use tenon_tests::Workspace;

/// The text and the result type of a tool whose handler has the given body.
fn outcome(body: &str) -> (String, String) {
    let result = Workspace::new().tool("t", body).call("t", &json!({}));
    let text = |key: &str| result[key].as_str().unwrap().to_owned();
    (text("textResultForLlm"), text("resultType"))
}

fn success(text: &str) -> (String, String) {
    (text.into(), "success".into())
}

#[test]
fn a_string_is_the_text() {
    assert_eq!(outcome("return 'hi'"), success("hi"));
}

#[test]
fn nothing_is_an_empty_success() {
    assert_eq!(outcome(""), success(""));
    assert_eq!(outcome("return null"), success(""));
    assert_eq!(outcome("return ''"), success(""));
}

#[test]
fn other_values_are_written_out() {
    assert_eq!(outcome("return 42"), success("42"));
    assert_eq!(outcome("return false"), success("false"));
    assert_eq!(outcome("return 10n"), success("10"));
}

#[test]
fn objects_and_arrays_are_their_json() {
    assert_eq!(outcome("return { a: [1] }"), success(r#"{"a":[1]}"#));
    assert_eq!(outcome("return [1, 'x']"), success(r#"[1,"x"]"#));
    assert_eq!(
        outcome("return { content: [{ type: 'text', text: 'x' }] }"),
        success(r#"{"content":[{"type":"text","text":"x"}]}"#)
    );
    assert_eq!(
        outcome("return { textResultForLlm: 'x', resultType: 'odd' }"),
        success(r#"{"textResultForLlm":"x","resultType":"odd"}"#)
    );
}

#[test]
fn a_result_object_passes_as_it_is() {
    for kind in ["success", "failure", "rejected", "denied", "timeout"] {
        let body =
            format!("return {{ textResultForLlm: 'x', resultType: '{kind}', sessionLog: 'l' }}");
        let workspace = Workspace::new().tool("t", &body);
        let run = workspace.run(&["call", "t", "--json"]);
        assert_eq!(run.json()["resultType"], kind);
        assert_eq!(run.json()["sessionLog"], "l");
        assert_eq!(run.code == 0, kind == "success", "{kind}");
    }
}

#[test]
fn a_thrown_errors_message_and_place_reach_the_caller() {
    let source = "import { joinSession } from '@github/copilot-sdk/extension';\n\
                  function deep() {\n  throw new RangeError('handler boom');\n}\n\
                  await joinSession({ tools: [{ name: 't', handler: () => deep() }] });\n";
    let workspace = Workspace::new().extension("thrower", source);
    let run = workspace.run(&["call", "t", "--json", "--args", r#"{"a":1}"#]);
    let result = run.json();
    assert_eq!(run.code, 1);
    assert_eq!(
        result["textResultForLlm"],
        "The tool t failed with the arguments {\"a\":1}: RangeError: handler boom"
    );
    assert_eq!(result["resultType"], "failure");
    assert_eq!(result["error"], "RangeError: handler boom");
    assert!(result["location"]["file"].as_str().unwrap().ends_with("thrower/extension.mjs"));
    assert_eq!(result["location"]["line"], 3);
    assert_eq!(result["location"]["column"], 9);
}

#[test]
fn anything_can_be_thrown() {
    let text = outcome("throw 'just a string'").0;
    assert!(text.ends_with(": just a string"), "{text}");
    let (text, kind) = outcome("const a = {}; a.a = a; return a");
    assert!(text.contains("circular"), "{text}");
    assert_eq!(kind, "failure");
}

#[test]
fn a_tool_without_a_handler_fails_when_called_and_warns_before() {
    let source = "import { joinSession } from '@github/copilot-sdk/extension';\n\
                  await joinSession({ tools: [{ name: 't' }] });";
    let workspace = Workspace::new().extension("empty", source);
    assert_eq!(workspace.call("t", &json!({}))["resultType"], "failure");
    assert!(log_of(&workspace, "empty").contains("has no handler"));
}

#[test]
fn a_result_over_the_limit_fails_and_says_what_to_do() {
    let (text, kind) = outcome("return 'x'.repeat(50 * 1024 * 1024)");
    assert_eq!(kind, "failure");
    assert!(text.contains("50.0 MB") && text.contains("16 MB") && text.contains("file"), "{text}");
}

#[test]
fn everything_in_a_result_counts_and_long_errors_are_cut() {
    let (text, kind) = outcome(
        "return { textResultForLlm: '', resultType: 'success', sessionLog: 'z'.repeat(50e6) }",
    );
    assert_eq!(kind, "failure");
    assert!(text.contains("the limit is 16 MB"), "{text}");
    let (text, _) = outcome("throw new Error('y'.repeat(50e6))");
    assert!(text.len() < 100_000 && text.ends_with("(cut)"), "{}", text.len());
}

#[test]
fn a_result_just_under_the_limit_arrives_whole() {
    let (text, kind) = outcome("return 'x'.repeat(16 * 1024 * 1024 - 7)");
    assert_eq!((text.len(), kind.as_str()), (16 * 1024 * 1024 - 7, "success"));
}

#[test]
fn the_invocation_tells_what_was_called() {
    let workspace = Workspace::new().tool(
        "t",
        "return { name: invocation.toolName, args: invocation.arguments, call: typeof invocation.toolCallId, \
         same: invocation.sessionId === process.env.SESSION_ID && session.sessionId === invocation.sessionId, \
         signal: invocation.signal instanceof AbortSignal }",
    );
    let answer: Value = serde_json::from_str(&workspace.answer("t", &json!({ "x": "y" }))).unwrap();
    assert_eq!(
        answer,
        json!({ "name": "t", "args": { "x": "y" }, "call": "string", "same": true, "signal": true })
    );
}

#[test]
fn arguments_that_do_not_fit_reach_the_handler_and_leave_a_warning() {
    let source = "import { joinSession } from '@github/copilot-sdk/extension';\n\
        await joinSession({ tools: [{ name: 't', \
          parameters: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },\n\
          handler: (args) => JSON.stringify(args) }] });";
    let workspace = Workspace::new().extension("typed", source);
    let run = workspace.run(&["call", "t", "--verbose", "--args", r#"{"n":"one"}"#]);
    assert_eq!(run.stdout.trim(), r#"{"n":"one"}"#);
    assert!(run.stderr.contains("do not fit its schema"), "{}", run.stderr);
    assert!(run.stderr.contains("/n"), "{}", run.stderr);
}

#[test]
fn zod_like_schemas_are_asked_for_their_json_schema() {
    let workspace = Workspace::new().extension(
        "zod",
        "import { joinSession } from '@github/copilot-sdk/extension';\n\
         const schema = { toJSONSchema: () => ({ type: 'object', properties: { q: { type: 'string' } } }) };\n\
         await joinSession({ tools: [{ name: 't', parameters: schema, handler: () => '' }] });",
    );
    let tool = &workspace.list()["zod"]["tools"][0];
    assert_eq!(tool["parameters"]["properties"]["q"]["type"], "string");
}

#[test]
fn what_a_session_without_agent_and_front_cannot_do_rejects_with_the_reason() {
    let workspace = Workspace::new().tool(
        "t",
        "const tries = [() => session.send('x'), () => session.ui.confirm('x'), \
         () => session.rpc.a.b.c({}), () => session.setModel('m')];\n\
         const said = [];\n\
         for (const one of tries) { try { await one(); said.push('resolved'); } catch (e) { said.push(e.message); } }\n\
         return said",
    );
    let said: Vec<String> = serde_json::from_str(&workspace.answer("t", &json!({}))).unwrap();
    assert_eq!(
        said,
        [
            "the session has no agent that could answer",
            "session.ui.confirm: this host cannot ask the person; \
             check session.capabilities.ui?.elicitation first",
            "session.rpc.a.b.c is not served by this host",
            "the session has no agent",
        ]
    );
}

#[test]
fn the_session_object_has_what_the_contract_names() {
    let workspace = Workspace::new().tool(
        "t",
        "await session.log('shown', { level: 'warning' });\n\
         const off = session.on('session.idle', () => {}); off();\n\
         return { path: session.workspacePath, ui: typeof session.capabilities.ui, on: typeof off, \
           missing: ['send','sendAndWait','log','abort','on','getEvents','getMessages','setModel','disconnect','destroy'] \
             .filter((name) => typeof session[name] !== 'function') }",
    );
    let answer: Value = serde_json::from_str(&workspace.answer("t", &json!({}))).unwrap();
    assert_eq!(answer["missing"], json!([]));
    assert_eq!(answer["ui"], "object");
    let path = answer["path"].as_str().unwrap();
    assert!(path.starts_with(&*workspace.home().join("session-state").to_string_lossy()), "{path}");
}

/// The log of an extension, as one text.
pub fn log_of(workspace: &Workspace, name: &str) -> String {
    let info = workspace.inspect(name);
    let lines = info["log"].as_array().unwrap().iter();
    lines
        .map(|line| {
            format!("{}: {}\n", line["level"].as_str().unwrap(), line["text"].as_str().unwrap())
        })
        .collect()
}
