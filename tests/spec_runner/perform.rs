//! One run of a script against a session.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tenon_host::Isolates;
use tenon_host::Session;
use tenon_host::SessionOptions;
use tenon_host::Timing;
use tenon_host::front::Front;
use tenon_host::session::Agent;
use tenon_host::session::Delivery;
use tenon_host::session::EndReason;
use tenon_host::session::Message;
use tenon_host::session::OpenCanvasRequest;
use tenon_host::session::StartSource;
use tenon_protocol::permission::PermissionRequest;

use crate::agent::Called;
use crate::agent::ScriptedAgent;
use crate::agent::ask_other;
use crate::agent::emit;
use crate::agent::run_call;
use crate::agent::run_calls;
use crate::case::Folders;
use crate::front::ScriptedFront;
use crate::script::Action;
use crate::script::Answer;
use crate::script::CancelCall;
use crate::script::Canvas;
use crate::script::End;
use crate::script::Ending;
use crate::script::File;
use crate::script::Header;
use crate::script::Line;
use crate::script::Mode;
use crate::script::Outgoing;
use crate::script::Place;
use crate::script::Start;
use crate::stage::Stage;
use crate::text;

/// Runs a script to its end. What happens is in the stage's transcript, also after an error.
pub fn perform(
    header: Header,
    lines: Vec<Line>,
    folders: &Folders,
    stage: Arc<Stage>,
) -> Result<(), String> {
    // One thread, so that what follows from what is the only thing that orders a transcript.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let mut performance = Performance::begin(header, folders, stage).await?;
        for Line { json, action } in lines {
            // What is waited for may have come already, so it is told first whenever it came.
            let waits = matches!(action, Action::Await(_));
            if !waits {
                performance.stage.write(format!("> {json}"));
            }
            performance.act(action).await?;
            if waits {
                performance.stage.write(format!("> {json}"));
            }
        }
        performance.finish().await;
        Ok(())
    })
}

struct Performance<'a> {
    header: Header,
    folders: &'a Folders,
    stage: Arc<Stage>,
    session: Session,
    /// Whether the session was ended.
    ended: bool,
    /// How many events were used up by `await`.
    awaited: usize,
}

impl<'a> Performance<'a> {
    async fn begin(
        header: Header,
        folders: &'a Folders,
        stage: Arc<Stage>,
    ) -> Result<Self, String> {
        for answer in header.answers.clone() {
            stage.push_answer(Answer { answer, wait: None });
        }
        let session = open(&header, folders, &stage, None).await?;
        Ok(Self { header, folders, stage, session, ended: false, awaited: 0 })
    }

    async fn act(&mut self, action: Action) -> Result<(), String> {
        let session = &self.session;
        match action {
            Action::Turn(action) => self.stage.push_turn(action.turn),
            Action::Prompt(action) => {
                self.send(action);
                session.idle().await;
            }
            Action::Send(action) => self.send(action),
            Action::Idle(_) => session.idle().await,
            Action::Begin(action) => {
                let source = match action.begin {
                    Start::New => StartSource::New,
                    Start::Resume => StartSource::Resume,
                    Start::Startup => StartSource::Startup,
                };
                session.begin(source, action.initial_prompt.as_deref()).await;
            }
            Action::Call(call) => {
                self.show_call(&run_call(session, &call).await);
            }
            Action::Parallel(action) => {
                let outcomes = run_calls(session, &action.parallel).await;
                for outcome in &outcomes {
                    self.show_call(outcome);
                }
            }
            Action::CancelCall(action) => self.cancel_call(&action).await,
            Action::Command(action) => {
                match session.run_command(&action.command, &action.args).await {
                    Ok(()) => self.show("done"),
                    Err(error) => self.show(format!("error: {error}")),
                }
            }
            Action::Answer(answer) => self.stage.push_answer(answer),
            Action::Permission(action) => {
                let request = PermissionRequest::Other(action.permission);
                self.show_json(&session.request_permission(&request).await);
            }
            Action::Ask(action) => self.show_json(&session.ask_user(&action.ask).await),
            Action::Elicit(action) => {
                self.show_json(&session.elicit(&action.elicit, action.asker.as_deref()).await);
            }
            Action::Request(action) => {
                self.show_json(&ask_other(session, &action).await);
            }
            Action::Canvas(action) => self.canvas(action.canvas).await,
            Action::Emit(action) => emit(session, action),
            Action::Abort(action) => session.abort(&action.abort),
            Action::Await(action) => {
                let wanted =
                    self.stage.event(self.awaited, &action.r#await, action.r#where.as_ref());
                self.awaited = wanted.await;
            }
            Action::Signal(action) => self.stage.signal(action.signal),
            Action::End(action) => self.end(action).await,
            Action::Reopen(_) => self.reopen().await?,
            Action::Tools(_) => self.show_list(&session.tools()),
            Action::Commands(_) => self.show_list(&session.commands()),
            Action::Canvases(_) => self.show_list(&session.canvases()),
            Action::OpenCanvases(_) => self.show_list(&session.open_canvases()),
            Action::Extensions(_) => self.show_extensions(),
            Action::Events(_) => self.show_history(),
            Action::File(action) => self.show_file(&action),
            Action::Log(action) => {
                for info in session.list().iter().filter(|info| info.id == action.log) {
                    for line in own_lines(session.log(info)) {
                        self.show(log_line(&line));
                    }
                }
            }
        }
        Ok(())
    }

    fn send(&self, action: Outgoing) {
        let mut message = Message::new(action.text);
        message.display_prompt = action.display_prompt;
        message.attachments = action.attachments.into();
        message.agent_mode = action.agent_mode;
        message.source = action.source;
        if let Some(mode) = action.mode {
            message.delivery = match mode {
                Mode::Enqueue => Delivery::Enqueue,
                Mode::Immediate => Delivery::Immediate,
            };
        }
        if let Err(error) = self.session.send(message) {
            self.show(format!("error: {error}"));
        }
    }

    async fn cancel_call(&self, action: &CancelCall) {
        let start = self.stage.seen();
        let mut call = Box::pin(run_call(&self.session, &action.cancel_call));
        tokio::select! {
            biased;
            outcome = &mut call => self.show_call(&outcome),
            _ = self.stage.event(start, &action.after, None) => self.show("cancelled"),
        }
        // Not before it was told: what the extension does about it comes after.
        drop(call);
    }

    async fn canvas(&self, canvas: Canvas) {
        let shown = match canvas {
            Canvas::Open(action) => {
                let request = OpenCanvasRequest {
                    canvas_id: action.open,
                    extension_id: action.extension,
                    instance_id: action.instance,
                    input: action.input,
                };
                self.session.open_canvas(request).await.map(|canvas| text::json(&canvas))
            }
            Canvas::Action(action) => {
                let (instance, input) = (&action.instance, action.input);
                let result = self.session.invoke_canvas_action(instance, &action.action, input);
                result.await.map(|result| text::json(&result))
            }
            Canvas::Close(action) => {
                self.session.close_canvas(&action.close).await.map(|()| "closed".to_owned())
            }
        };
        match shown {
            Ok(shown) => self.show(shown),
            Err(fault) => self.show(format!("error {}: {}", fault.code, fault.message)),
        }
    }

    async fn end(&mut self, action: End) {
        let reason = match action.end {
            Ending::Complete => EndReason::Complete,
            Ending::Error => EndReason::Error(action.error.unwrap_or_default()),
            Ending::Abort => EndReason::Abort,
            Ending::Timeout => EndReason::Timeout,
            Ending::UserExit => EndReason::UserExit,
        };
        self.session.end(reason).await;
        self.ended = true;
    }

    /// Ends the session unless the script has done so, and shows what the extensions logged.
    async fn finish(&mut self) {
        if !self.ended {
            self.stage.write(r#"> {"end":"complete"}"#);
            self.end(End { end: Ending::Complete, error: None }).await;
        }
        for info in self.session.list() {
            let lines = own_lines(self.session.log(&info));
            if !lines.is_empty() {
                self.stage.write(format!("log of {}:", info.id));
            }
            for line in lines {
                self.stage.write(format!("  {}", log_line(&line)));
            }
        }
    }

    /// Opens the same session again, as after the program was started again.
    async fn reopen(&mut self) -> Result<(), String> {
        self.finish().await;
        let id = self.session.id().to_owned();
        self.session = open(&self.header, self.folders, &self.stage, Some(id)).await?;
        self.ended = false;
        Ok(())
    }

    fn show(&self, text: impl AsRef<str>) {
        self.stage.write(format!("= {}", text.as_ref()));
    }

    fn show_call(&self, outcome: &Called) {
        match outcome {
            Ok(outcome) => self.stage.write_outcome("=", outcome),
            Err(error) => self.show(format!("error: {error}")),
        }
    }

    fn show_json(&self, value: &impl Serialize) {
        self.show(text::json(value));
    }

    /// Each element on a line of its own.
    fn show_list(&self, list: &[impl Serialize]) {
        if list.is_empty() {
            self.show("none");
        }
        for element in list {
            self.show_json(element);
        }
    }

    fn show_extensions(&self) {
        for info in self.session.list() {
            let error =
                info.error.map(|error| format!(": {}", text::without_stack(&error.what.message)));
            self.show(format!("{} {}{}", info.id, info.status, error.unwrap_or_default()));
        }
    }

    /// The types of the events that were written to the session's folder.
    fn show_history(&self) {
        let path = self.session.folder().join("events.jsonl");
        let history = std::fs::read_to_string(path).unwrap_or_default();
        for line in history.lines() {
            match serde_json::from_str::<Value>(line) {
                Ok(event) => self.show(event["type"].as_str().unwrap_or("without a type")),
                Err(error) => self.show(format!("not JSON: {error}: {line}")),
            }
        }
        if history.is_empty() {
            self.show("none");
        }
    }

    fn show_file(&self, action: &File) {
        let folder: &Path = match action.r#in {
            Place::Session => self.session.folder(),
            Place::Workspace => &self.folders.workspace,
            Place::Home => &self.folders.home,
        };
        match std::fs::read_to_string(folder.join(&action.file)) {
            Ok(text) => self.show(format!("{}:\n{text}", action.file)),
            Err(error) => self.show(format!("{}: {}", action.file, error.kind())),
        }
    }
}

/// A session with every extension loaded.
async fn open(
    header: &Header,
    folders: &Folders,
    stage: &Arc<Stage>,
    id: Option<String>,
) -> Result<Session, String> {
    let agent = ScriptedAgent::new(header, stage.clone());
    let front = ScriptedFront::new(header, stage.clone());
    let session = Session::new(SessionOptions {
        cwd: folders.workspace.clone(),
        home: folders.home.clone(),
        user_folders: vec![folders.home.clone()],
        extension_folders: Vec::new(),
        trusted: true,
        isolates: Isolates::processes(tenon_tests::tenon(), None),
        watch: header.watch,
        timing: Timing {
            debounce: Duration::from_millis(20),
            // What a case shows is what the extensions do, not what is done about them.
            restart_after: Duration::from_secs(3600),
            ..Timing::default()
        },
        manage_tools: header.manage_tools,
        log_files: false,
        id,
        record: true,
        large_result_bytes: header.large_result_bytes,
        agent: agent.map(|agent| Arc::new(agent) as Arc<dyn Agent>),
        front: front.map(|front| Arc::new(front) as Arc<dyn Front>),
        tap: None,
    })
    .map_err(|error| error.to_string())?;
    stage.name_session(session.folder(), session.id());
    let seeing = stage.clone();
    session.tap(move |event| seeing.see(event));
    session.load().await;
    Ok(session)
}

/// A log without the host's markers, which name processes and times.
fn own_lines(mut log: Vec<tenon_host::LogLine>) -> Vec<tenon_host::LogLine> {
    log.retain(|line| !line.text.starts_with("=== "));
    log
}

fn log_line(line: &tenon_host::LogLine) -> String {
    let level = text::json(&line.level);
    format!("{} {}", level.trim_matches('"'), text::without_stack(&line.text))
}
