//! A program with extensions in it: an agent of its own, one front, one prompt.
//!
//!     cargo run --example embed -- DIR
//!
//! loads every extension in DIR/*/ and sends one prompt through their hooks to an agent that calls the
//! first tool it finds.
//!
//! Isolates live in this process. To have them in a process of their own, so that nothing an extension does can
//! end this one, call `tenon_isolate::serve_if_asked` first thing in `main` and end with its code if it gives one,
//! leave out `init_engine`, and set `isolates: Isolates::processes(std::env::current_exe()?, None)`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use tenon_host::Isolates;
use tenon_host::Session;
use tenon_host::SessionOptions;
use tenon_host::front::AgentError;
use tenon_host::front::AgentPrompt;
use tenon_host::front::Answer;
use tenon_host::front::Decision;
use tenon_host::front::Front;
use tenon_host::front::StopReason;
use tenon_host::session::Agent;
use tenon_host::session::EndReason;
use tenon_host::session::Message;
use tenon_host::session::SessionError;
use tenon_host::session::ToolCall;
use tenon_host::session::Turn;
use tenon_isolate::Launcher;
use tenon_protocol::permission::PermissionRequest;

/// Answers prompts. A real one asks a model.
struct Parrot;

#[async_trait]
impl Agent for Parrot {
    async fn prompt(
        &self,
        turn: Arc<Turn>,
        prompt: Arc<AgentPrompt>,
    ) -> Result<Answer, AgentError> {
        turn.message(&format!("You said: {}", prompt.text));
        if let Some(listing) = turn.session().tools().first() {
            let call = ToolCall::new(&listing.tool.name, json!({}));
            if let Ok(outcome) = turn.session().call_tool(call).await {
                turn.message(&outcome.text_for_model());
            }
        }
        Ok(StopReason::end_turn().into())
    }

    fn cancel(&self) {}
}

/// Where the person would be. This one says yes.
struct Nod;

#[async_trait]
impl Front for Nod {
    async fn request_permission(&self, _request: &PermissionRequest) -> Option<Decision> {
        Some(Decision::approve())
    }
}

fn main() -> ExitCode {
    // Before any other thread exists. A program whose isolates live elsewhere needs no engine.
    tenon_isolate::init_engine();
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return ExitCode::FAILURE;
    };
    let Ok(runtime) = tokio::runtime::Runtime::new() else { return ExitCode::FAILURE };
    match runtime.block_on(run(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

#[expect(clippy::print_stdout, reason = "this is what the example is for")]
async fn run(folder: PathBuf) -> Result<(), SessionError> {
    let cwd = std::env::temp_dir();
    let options = SessionOptions {
        extension_folders: vec![folder],
        isolates: Isolates::in_process(Arc::new(Launcher)),
        agent: Some(Arc::new(Parrot)),
        front: Some(Arc::new(Nod)),
        ..SessionOptions::new(cwd.clone(), cwd.join("tenon-embed"))
    };
    let session = Session::new(options)?;
    session.tap(|event| println!("{} {}", event.kind, event.data.value()));
    session.load().await;
    // A session with an agent takes messages until it has ended.
    let _ = session.send(Message::new("hello"));
    session.idle().await;
    session.end(EndReason::Complete).await;
    Ok(())
}
