//! What the answers of several extensions to one hook come to, beside a model of it.
//!
//! The strictest decision holds and says who made it first; a denial ends the chain; what is no decision is a problem, and of
//! one that fails closed a denial; contexts add up in order; what the next extension is told is always an object.

#![no_main]

use std::ops::ControlFlow;

use arbitrary::Result;
use arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::Serializer;
use serde::ser::SerializeMap;
use serde_json::Map;
use serde_json::Value;
use tenon_host::Permission;
use tenon_host::front::AgentError;
use tenon_host::front::Context;
use tenon_host::front::ErrorContext;
use tenon_host::fuzzing::Chain;
use tenon_host::fuzzing::Output;
use tenon_host::fuzzing::lifecycle;
use tenon_host::fuzzing::lifecycle::ErrorHandling;
use tenon_host::fuzzing::lifecycle::MAX_RETRIES;
use tenon_host::fuzzing::prompt;
use tenon_host::fuzzing::tool_use;
use tenon_host::tool::ToolResult;

const WORDS: &[&str] = &[
    "permissionDecision",
    "permissionDecisionReason",
    "allow",
    "ask",
    "deny",
    "Deny",
    "deny ",
    "modifiedArgs",
    "modifiedResult",
    "modifiedPrompt",
    "modifiedTransformedPrompt",
    "modifiedResponse",
    "additionalContext",
    "suppressOutput",
    "decision",
    "block",
    "reason",
    "errorHandling",
    "retry",
    "skip",
    "abort",
    "retryCount",
    "userNotification",
    "sessionSummary",
    "cleanupActions",
    "metaToUse",
    "textResultForLlm",
    "resultType",
    "success",
    "failure",
    "rejected",
    "denied",
    "timeout",
    "error",
    "stack",
    "location",
    "toolTelemetry",
    "",
    " ",
    "x",
    "at /w/a.mjs:1:2",
    "\n    at file:///w/a.mjs:3:4",
];

/// What one extension does.
enum Answer {
    Says(Output),
    /// It answers with something that is no object.
    Nothing,
    /// It throws or is late, and was declared to fail closed or not.
    Fails(bool),
}

fuzz_target!(|data: &[u8]| {
    // The end of the input ends it.
    let _ = run(data);
});

fn run(data: &[u8]) -> Result<()> {
    let u = &mut Unstructured::new(data);
    let kind = u.int_in_range(0..=7)?;
    let mut answers = Vec::new();
    while !u.is_empty() && answers.len() < 8 {
        answers.push(match u.int_in_range(0..=9)? {
            0 => Answer::Nothing,
            1 => Answer::Fails(u.arbitrary()?),
            2..=4 => {
                let mut output = tenon_fuzz::object(u, WORDS)?;
                let field = *u.choose(&["permissionDecision", "decision", "errorHandling"])?;
                let words = ["allow", "ask", "deny", "block", "retry", "skip", "abort", "no"];
                output.insert(field.to_owned(), (*u.choose(&words)?).into());
                Answer::Says(output)
            }
            _ => Answer::Says(tenon_fuzz::object(u, WORDS)?),
        });
    }
    match kind {
        0 | 1 => pre(answers),
        2 => submitted(answers),
        3 => post(answers),
        4 => failed(answers),
        5 => drop(chained(pre_mcp(), answers)),
        6 => drop(chained(lifecycle::SessionEnd::default(), answers)),
        _ => {
            let agent = Map::new();
            drop(chained(lifecycle::SubagentStart { agent, contexts: Vec::new() }, answers));
        }
    }
    Ok(())
}

/// What the extensions did that were asked, and the chain.
fn chained<C: Chain>(mut chain: C, answers: Vec<Answer>) -> (C, Vec<(String, Option<Output>)>) {
    let mut asked = Vec::new();
    for (number, answer) in answers.into_iter().enumerate() {
        let told = serde_json::to_string(&Told(&chain)).unwrap();
        assert!(serde_json::from_str::<Value>(&told).unwrap().is_object());
        let id = format!("user:{number}");
        // As `Runner::run` does it.
        let answer = match answer {
            Answer::Says(output) if C::problem(&output).is_some() => Answer::Fails(number % 2 == 0),
            answer => answer,
        };
        let (said, flow) = match answer {
            Answer::Says(output) => (Some(output.clone()), chain.take(&id, output)),
            Answer::Nothing => (Some(Map::new()), ControlFlow::Continue(())),
            Answer::Fails(true) if C::DECIDES => (None, chain.fail_closed(&id, "it failed")),
            Answer::Fails(_) => (Some(Map::new()), ControlFlow::Continue(())),
        };
        asked.push((id, said));
        if flow.is_break() {
            break;
        }
    }
    (chain, asked)
}

struct Told<'a, C>(&'a C);

impl<C: Chain> Serialize for Told<'_, C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut input = serializer.serialize_map(None)?;
        self.0.input(&mut input)?;
        input.end()
    }
}

fn permission(output: Option<&Output>) -> Option<Permission> {
    let Some(output) = output else { return Some(Permission::Deny) };
    match output.get("permissionDecision")?.as_str()? {
        "allow" => Some(Permission::Allow),
        "ask" => Some(Permission::Ask),
        "deny" => Some(Permission::Deny),
        other => panic!("{other} is no decision and no problem"),
    }
}

fn pre(answers: Vec<Answer>) {
    let args = Value::Object(Map::new());
    let count = answers.len();
    let (chain, asked) =
        chained(tool_use::Pre::new(tool_use::Caller::default(), args.clone()), answers);
    let decisions: Vec<_> =
        asked.iter().map(|(id, said)| (id, permission(said.as_ref()))).collect();
    let strictest = decisions.iter().filter_map(|(_, permission)| *permission).max();
    assert_eq!(chain.decided.as_ref().map(|decided| decided.permission), strictest);
    if let Some(decided) = &chain.decided {
        let first = decisions.iter().find(|(_, permission)| *permission == strictest);
        assert_eq!(Some(&decided.by), first.map(|(id, _)| *id));
        assert!(decided.reason.as_ref().is_none_or(|reason| !reason.trim().is_empty()));
    }
    let denied = decisions.iter().position(|(_, permission)| *permission == Some(Permission::Deny));
    assert_eq!(
        decisions.len(),
        denied.map_or(count, |at| at + 1),
        "a denial ends the chain, nothing else does"
    );
    let last = asked
        .iter()
        .rev()
        .filter_map(|(_, said)| said.as_ref()?.get("modifiedArgs"))
        .find(|args| !args.is_null());
    assert_eq!(chain.args, last.cloned().unwrap_or(args));
    contexts(&chain.contexts, &asked);
}

fn contexts(contexts: &[Context], asked: &[(String, Option<Output>)]) {
    let expected = asked.iter().filter_map(|(id, said)| {
        let text = said.as_ref()?.get("additionalContext")?.as_str()?;
        (!text.trim().is_empty()).then_some((id.as_str(), text))
    });
    assert!(contexts.iter().map(|it| (it.extension.as_str(), it.text.as_str())).eq(expected));
}

fn submitted(answers: Vec<Answer>) {
    let count = answers.len();
    let (chain, asked) = chained(prompt::Submitted::new("go"), answers);
    let is_block = |said: &Option<Output>| {
        said.as_ref().is_none_or(|said| said.get("decision").is_some_and(|it| it == "block"))
    };
    let blocked = asked.iter().position(|(_, said)| is_block(said));
    assert_eq!(chain.blocked.map(|blocked| blocked.by), blocked.map(|at| asked[at].0.clone()));
    assert_eq!(asked.len(), blocked.map_or(count, |at| at + 1));
    let prompts =
        asked.iter().filter_map(|(_, said)| said.as_ref()?.get("modifiedPrompt")?.as_str());
    assert_eq!(chain.prompt, prompts.last().unwrap_or("go"));
    assert!(chain.rewritten || chain.prompt == "go");
    contexts(&chain.contexts, &asked);
}

fn post(answers: Vec<Answer>) {
    let chain = tool_use::Post {
        caller: tool_use::Caller::default(),
        args: Value::Null.into(),
        result: ToolResult::success("done"),
        contexts: Vec::new(),
        suppress_output: false,
    };
    let count = answers.len();
    let (chain, asked) = chained(chain, answers);
    assert_eq!(asked.len(), count);
    contexts(&chain.contexts, &asked);
    // A result is read again as it was written: it goes to agents and into events.
    let written = serde_json::to_string(&chain.result).unwrap();
    let read: Value = serde_json::from_str(&written).unwrap();
    let again = serde_json::to_value(ToolResult::from_reply(read.clone())).unwrap();
    assert!(tenon_fuzz::is_same(&read, &again), "{read} became {again}");
}

fn failed(answers: Vec<Answer>) {
    let error = AgentError {
        message: "x".into(),
        context: ErrorContext::System,
        recoverable: true,
        native: None,
    };
    let (chain, asked) = chained(lifecycle::ErrorOccurred::new(&error), answers);
    let handling = asked.iter().filter_map(|(_, said)| {
        match said.as_ref()?.get("errorHandling")?.as_str()? {
            "retry" => Some(ErrorHandling::Retry),
            "skip" => Some(ErrorHandling::Skip),
            "abort" => Some(ErrorHandling::Abort),
            _ => None,
        }
    });
    assert_eq!(chain.handling, handling.clone().max());
    assert!(chain.retries <= MAX_RETRIES);
    assert_eq!(chain.skip, handling.clone().any(|it| it == ErrorHandling::Skip));
}

fn pre_mcp() -> tool_use::PreMcp {
    tool_use::PreMcp {
        tool_call_id: "1".into(),
        agent_id: None,
        server: "docs".into(),
        tool: "find".into(),
        args: Value::Null.into(),
        meta: None,
        denied: None,
    }
}
