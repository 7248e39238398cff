//! Every case below `hostile`, beside an extension that behaves.

use std::time::Duration;

use libtest_mimic::Failed;
use libtest_mimic::Trial;
use serde_json::json;
use tenon_host::ExtensionInfo;
use tenon_host::LoadError;
use tenon_host::Session;
use tenon_host::Status;
use tenon_host::session::StartSource;
use tenon_host::tool::ResultType;
use tenon_host::tool::ToolResult;
use tenon_tests::trial;

use crate::case::Case;
use crate::case::Expect;
use crate::case::Trigger;
use crate::case::says;
use crate::world::World;
use crate::world::answer;
use crate::world::call;
use crate::world::info;
use crate::world::patiently;
use crate::world::until;
use crate::world::until_generation;
use crate::world::until_info;

/// The extension that misbehaves.
const CULPRIT: &str = "culprit";

/// The one that does not: it must not notice.
const BYSTANDER: &str = r#"
import { joinSession } from "@github/copilot-sdk/extension";
await joinSession({ tools: [
  { name: "ping", description: "Answers", handler: () => "pong" },
  { name: "poke", description: "Answers too", handler: () => "poked" },
] });
"#;

/// Between two calls of the bystander during the attack.
const BETWEEN_PINGS: Duration = Duration::from_millis(2);

/// Calls of the bystander after the attack.
const PINGS_AFTER: usize = 20;

/// One trial for each case; ignored on the engines that it is not for.
pub fn trials() -> Vec<Trial> {
    let engine = tenon_tests::ENGINE;
    let one = |(name, case): (String, Result<Case, String>)| {
        let name = format!("hostile::{name}");
        match case {
            Ok(case) => {
                let ignored = !case.runs_on(engine);
                trial(&name, move || run(case, engine)).with_ignored_flag(ignored)
            }
            Err(error) => Trial::test(name, move || Err(Failed::from(error))),
        }
    };
    Case::all().into_iter().map(one).collect()
}

async fn run(case: Case, engine: &'static str) {
    let world = World::new();
    world.extension("bystander", case.bystander().as_deref().unwrap_or(BYSTANDER));
    world.config(&case.configuration());
    let folder = world.folder(CULPRIT);
    if case.trigger != Trigger::Load {
        case.lay_out(&folder);
    }
    let session = world.open(world.options()).await;
    if case.trigger != Trigger::Load {
        let info = current(&session);
        assert_eq!(info.status, Status::Running, "{}\n{:?}", case.about, info.error);
    }
    assert_eq!(answer(&session, "ping").await, "pong");
    let before = (world.isolates.pids()[0], bystander(&session));
    let attack = tokio::spawn({
        let (case, session) = (case.clone(), session.clone());
        async move {
            if case.trigger == Trigger::Load {
                case.lay_out(&folder);
            }
            attack(&case, &session).await
        }
    });
    let mut pings = 0;
    while !attack.is_finished() || pings == 0 {
        assert_eq!(answer(&session, "ping").await, "pong");
        pings += 1;
        // The culprit needs a processor too, to reach its limit.
        tokio::time::sleep(BETWEEN_PINGS).await;
    }
    let result = attack.await.unwrap_or_else(|error| panic!("{}\n{error}", case.about));
    check(&case, engine, &session, result).await;
    for _ in 0..case.again {
        // Nearly any answer will do; that there is one is what counts.
        let said = match call(&session, "attack").await {
            Ok(result) => spoken(&result),
            Err(error) => error.to_string(),
        };
        case.never_said(&said);
        assert_eq!(answer(&session, "ping").await, "pong");
    }
    if let Some(wanted) = &case.log {
        until(&format!("the log says {wanted}"), || logged(&session, wanted)).await;
    }
    if case.process_ends {
        // The zygote, the bystander and the new load.
        until("no other process is left", || world.isolates.pids().len() == 3).await;
    }
    let after = (world.isolates.pids()[0], bystander(&session));
    assert_eq!(after, before, "{}: the zygote or the bystander has another process", case.about);
    for _ in 0..PINGS_AFTER {
        assert_eq!(answer(&session, "ping").await, "pong");
    }
    world.close(session).await;
}

/// The bystander's process and load.
fn bystander(session: &Session) -> (Option<u32>, u32) {
    let info = session.find("bystander").remove(0);
    (info.pid, info.generation)
}

fn logged(session: &Session, wanted: &str) -> bool {
    let Some(info) = info(session, CULPRIT) else { return false };
    session.log(&info).iter().any(|line| line.text.contains(wanted))
}

/// Has the extension misbehave, and waits until it shows. The answer of its tool, if one was called.
async fn attack(case: &Case, session: &Session) -> Option<ToolResult> {
    let result = match case.trigger {
        // The tool may be gone with the process.
        Trigger::Tool => match call(session, "attack").await {
            Ok(result) => Some(result),
            Err(_) if case.may_die => None,
            Err(error) => panic!("{error}"),
        },
        Trigger::Load => {
            patiently("what is new is loaded", session.refresh()).await;
            None
        }
        Trigger::StartHook => {
            patiently("the session begins", session.begin(StartSource::New, None)).await;
            None
        }
        Trigger::ToolHook => {
            assert_eq!(answer(session, "poke").await, "poked");
            None
        }
        Trigger::Timer => {
            assert_eq!(answer(session, "attack").await, "armed");
            None
        }
        Trigger::Event => {
            session.emit_ephemeral("test.attack", json!({}));
            None
        }
    };
    if case.expect == Expect::Ended {
        until_info(session, CULPRIT, "ended", |info| info.last_error.is_some()).await;
    }
    result
}

/// Whether what came of it is what was expected.
async fn check(case: &Case, engine: &str, session: &Session, result: Option<ToolResult>) {
    let about = &case.about;
    let said = result.as_ref().map(spoken).unwrap_or_default();
    let last = info(session, CULPRIT).and_then(|info| info.last_error);
    case.never_said(&format!("{said}\n{}", last.map(|it| it.what.message).unwrap_or_default()));
    match case.expect {
        Expect::Ended => {
            if let Some(result) = &result {
                assert_eq!(result.result_type, ResultType::Failure, "{about}\n{said}");
                assert!(said.contains("project:culprit"), "{about}\n{said}");
                all_said(case, &said);
            }
            check_end(case, engine, session).await;
        }
        Expect::Fails | Expect::Harmless => {
            let Some(result) = result else { panic!("{about}\nnothing was called") };
            let succeeded = result.result_type == ResultType::Success;
            assert_eq!(succeeded, case.expect == Expect::Harmless, "{about}\n{said}");
            all_said(case, &said);
            let info = current(session);
            let state = (info.status, info.generation);
            assert_eq!(state, (Status::Running, 1), "{about}\n{:?}", info.last_error);
        }
        Expect::Contained => {
            let error = info(session, CULPRIT).and_then(|info| info.last_error);
            let message = error.map(|error| error.what.message).unwrap_or_default();
            all_said(case, &format!("{said}\n{message}"));
        }
    }
}

/// The extension says why it was ended, and where; if it had been running, it is back.
async fn check_end(case: &Case, engine: &str, session: &Session) {
    let error = current(session).last_error.expect("it was waited for");
    all_said(case, &error.what.message);
    if engine == "v8" {
        check_place(case, &error);
    }
    if case.trigger == Trigger::Load {
        let info = current(session);
        assert_eq!(info.status, Status::Failed, "{}\n{:?}", case.about, info.error);
        all_said(case, &info.error.expect("it failed").what.message);
        return;
    }
    let info = until_generation(session, CULPRIT, 2).await;
    assert!(info.last_error.is_some(), "{}: what happened is forgotten", case.about);
}

fn check_place(case: &Case, error: &LoadError) {
    let Some((first, last)) = case.place else { return };
    let what = &error.what;
    let file = what.file.as_deref().unwrap_or("no file");
    assert!(file.ends_with("culprit/extension.mjs"), "{}\n{file}: {what}", case.about);
    let line = what.line.unwrap_or(0);
    assert!((first..=last).contains(&line), "{}\n{line}: {what}", case.about);
}

fn all_said(case: &Case, text: &str) {
    for wanted in &case.text {
        assert!(says(text, wanted), "{}\n\"{wanted}\" is not in: {text}", case.about);
    }
}

/// Everything that a result says in words.
fn spoken(result: &ToolResult) -> String {
    let error = result.error.as_deref().unwrap_or_default();
    format!("{}\n{error}", result.text_result_for_llm)
}

fn current(session: &Session) -> ExtensionInfo {
    info(session, CULPRIT).expect("the extension is listed")
}
