//! Serving one extension: load it, run its event loop, pass messages, end it.

use std::future::Future;
use std::future::poll_fn;
use std::path::Path;
use std::pin::Pin;
use std::pin::pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::time::Duration;
use std::time::Instant;

use deno_core::JsRuntime;
use deno_core::ModuleSpecifier;
use deno_core::PollEventLoopOptions;
use deno_core::error::CoreError;
use deno_core::v8;
use deno_runtime::deno_web::StartTime;
use tenon_platform::ops::bridge::Bridge;
use tenon_platform::ops::directory::OwnWorkingDirectory;
use tenon_platform::ops::environment::ExtensionEnv;
use tenon_platform::ops::exit::ExitRequested;
use tenon_platform::ops::signals::Signals;
use tokio::sync::mpsc;

use crate::children;
use crate::claim::Claim;
use crate::floor::thread_cpu_time;
use crate::heap;
use crate::interrupt;
use crate::limits::MEASURE_INTERVAL;
use crate::message::CallId;
use crate::message::CallKind;
use crate::message::EndReason;
use crate::message::FromIsolate;
use crate::message::LoadSpec;
use crate::message::ReadyReport;
use crate::message::ToIsolate;
use crate::outbox::Outbox;
use crate::permissions;
use crate::permissions::GuardedFs;
use crate::programs::Programs;
use crate::script_error;
use crate::terminator::Terminator;
use crate::watchdog::TurnFlag;
use crate::worker::Worker;
use crate::working_directory;
use crate::working_directory::Ownership;

/// Serves an extension to its end.
pub async fn serve(
    worker: &mut Worker,
    claim: Claim,
    outbox: &Outbox,
    terminator: &Terminator,
) -> EndReason {
    let (pid, layers) = (std::process::id(), claim.layers);
    outbox.send(FromIsolate::Started { pid, layers });
    let started = Started::now();
    let limits = claim.spec.limits;
    let turns = Arc::new(TurnFlag::default());
    let _watch = terminator.set_limits(limits, turns.clone());
    worker.buffers.set_limit(limits.buffer_bytes);
    worker.log.set_rate(limits.log_lines_per_second);
    if let Err(message) = adopt(worker, &claim.spec, claim.is_alone) {
        return EndReason::Setup { message };
    }
    if let Some(allotment) = worker.allotment.take() {
        heap::limit(&mut worker.runtime, limits.heap_bytes, allotment, terminator);
    }
    let url = match ModuleSpecifier::from_file_path(&claim.spec.entry) {
        Ok(url) => url,
        Err(()) => {
            let message = format!("{} is not an absolute path", claim.spec.entry.display());
            return EndReason::Setup { message };
        }
    };
    if let Some(feed) = claim.feed {
        // It ends with the thread's runtime.
        tokio::spawn(feed);
    }
    let driver = Driver {
        worker,
        turns: &turns,
        inbox: claim.inbox,
        outbox,
        terminator,
        spec: claim.spec,
        started,
        joined: Joined::No,
        ready: false,
        batches_delivered: 0,
        measured_at: Instant::now(),
    };
    driver.run(&url).await
}

/// Lets QuickJS find modules by the names under which its linker asks for them.
pub async fn register_names(worker: &mut Worker) {
    #[cfg(feature = "quickjs")]
    if let Ok(url) = ModuleSpecifier::parse(crate::modules::internal::ALL) {
        // Loading registers the names; if it failed, the first import that needs one would say so.
        let _ = worker.runtime.load_side_es_module(&url).await;
    }
    #[cfg(feature = "v8")]
    let _ = worker;
}

/// Loads what most extensions need.
#[cfg(target_os = "linux")]
pub async fn load_usual_modules(worker: &mut Worker) {
    if let Ok(url) = ModuleSpecifier::parse("tenon:usual") {
        // A module that cannot be loaded now is loaded when it is needed; the error shows then.
        if let Ok(id) = worker.runtime.load_side_es_module(&url).await {
            let evaluation = worker.runtime.mod_evaluate(id);
            let _ = worker.runtime.run_event_loop(PollEventLoopOptions::default()).await;
            let _ = evaluation.await;
        }
    }
}

/// Makes the isolate the extension's: directory, environment, permissions.
fn adopt(worker: &mut Worker, spec: &LoadSpec, is_alone: bool) -> Result<(), String> {
    let entered = working_directory::enter(&spec.cwd, is_alone);
    let ownership = entered.map_err(|error| error.to_string())?;
    let permissions = permissions::permissions(&spec.grant).map_err(|error| error.to_string())?;
    let exec_path = node_program(spec.env.get("PATH").map(String::as_str));
    let shown_exec_path = exec_path.to_string_lossy().into_owned();
    {
        let state = worker.runtime.op_state();
        let mut state = state.borrow_mut();
        if ownership == Ownership::Own {
            state.put(OwnWorkingDirectory);
        }
        // Its clock begins now, not when the instance was made.
        state.put(StartTime::default());
        state.borrow::<ExtensionEnv>().fill(spec.env.clone(), exec_path);
        state.borrow::<GuardedFs>().guard(permissions.clone());
        let path = spec.env.get("PATH").map(String::as_str);
        state.borrow::<Programs>().guard(&spec.grant, path);
        state.put(permissions.clone());
    }
    let folder = spec.entry.parent().unwrap_or(Path::new("/")).to_owned();
    worker.home.fill(spec.id.clone(), folder, permissions, spec.outside.clone());
    let entry = spec.entry.to_string_lossy().into_owned();
    call(
        &mut worker.runtime,
        &worker.functions.adopt,
        &[
            entry.into(),
            spec.id.clone().into(),
            shown_exec_path.into(),
            spec.limits.result_chars.into(),
        ],
    )
    .map_err(|error| error.to_string())
}

/// What runs a script when an extension starts `process.execPath`: node, where there is one.
fn node_program(path: Option<&str>) -> std::path::PathBuf {
    std::env::split_paths(path.unwrap_or_default())
        .map(|folder| folder.join("node"))
        .find(|program| program.is_file())
        .or_else(|| std::env::current_exe().ok())
        .unwrap_or_else(|| "node".into())
}

/// When the extension was taken on.
struct Started(Instant);

impl Started {
    fn now() -> Self {
        Self(Instant::now())
    }

    fn report(&self) -> ReadyReport {
        ReadyReport {
            wall_us: self.0.elapsed().as_micros() as u64,
            // The thread was started for this extension.
            cpu_us: thread_cpu_time().as_micros() as u64,
            engine: crate::engine::NAME,
        }
    }
}

/// How far an extension is on its way into the session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Joined {
    No,
    /// The host said yes; so many turns of the event loop ago.
    Yes(u32),
}

/// Turns of the event loop that a module gets after `joinSession` to run to its end. One that still
/// awaits something then is ready nevertheless.
const TURNS_TO_SETTLE: u32 = 2;

struct Driver<'a> {
    worker: &'a mut Worker,
    inbox: mpsc::UnboundedReceiver<ToIsolate>,
    outbox: &'a Outbox,
    terminator: &'a Terminator,
    turns: &'a TurnFlag,
    spec: LoadSpec,
    started: Started,
    joined: Joined,
    ready: bool,
    /// Batches of events that were handed out and not reported seen.
    batches_delivered: u32,
    /// When its memory was last measured.
    measured_at: Instant,
}

/// The evaluation of the entry module.
type Evaluation = Pin<Box<dyn Future<Output = Result<(), CoreError>>>>;

impl Driver<'_> {
    async fn run(mut self, url: &ModuleSpecifier) -> EndReason {
        let deadline = Duration::from_millis(self.spec.limits.start_deadline_ms);
        self.terminator.watch_start(deadline, self.outbox);
        let mut evaluation = match self.load(url).await {
            Ok(evaluation) => Some(evaluation),
            Err(reason) => {
                self.report_loaded();
                return self.with_sources(reason);
            }
        };
        let mut start_deadline = pin!(tokio::time::sleep(deadline));
        // The module's first part has run. If it ended the extension, nothing runs after it.
        if let Some(reason) = self.ended_by_itself() {
            let reason = self.finish(reason).await;
            return self.with_sources(reason);
        }
        let reason = poll_fn(|cx| {
            self.terminator.notify(cx.waker());
            let turns = self.turns;
            let inside = turns.enter();
            if let Poll::Ready(reason) = self.turn(cx, &mut evaluation) {
                return Poll::Ready(reason);
            }
            self.measure(MEASURE_INTERVAL);
            drop(inside);
            self.report_loaded();
            if self.joined == Joined::No && start_deadline.as_mut().poll(cx).is_ready() {
                if self.terminator.start_is_held() {
                    start_deadline.as_mut().reset(tokio::time::Instant::now() + deadline);
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                let deadline_ms = self.spec.limits.start_deadline_ms;
                return Poll::Ready(EndReason::NoJoin { deadline_ms });
            }
            Poll::Pending
        })
        .await;
        self.terminator.notice();
        let reason = self.finish(reason).await;
        self.report_loaded();
        self.with_sources(reason)
    }

    /// Loads the entry module with everything it imports, and begins to evaluate it.
    async fn load(&mut self, url: &ModuleSpecifier) -> Result<Evaluation, EndReason> {
        let (terminator, turns) = (self.terminator, self.turns);
        let loaded = {
            let mut loading = pin!(self.worker.runtime.load_main_es_module(url));
            poll_fn(|cx| {
                terminator.notify(cx.waker());
                let inside = turns.enter();
                let polled = loading.as_mut().poll(cx);
                drop(inside);
                match (polled, terminator.reason()) {
                    (Poll::Ready(loaded), _) => Poll::Ready(Ok(loaded)),
                    (Poll::Pending, Some(reason)) => Poll::Ready(Err(reason)),
                    (Poll::Pending, None) => Poll::Pending,
                }
            })
            .await?
        };
        let id = loaded.map_err(|error| self.failure(&error))?;
        // Before it runs: if it takes the process with it, it is known what did.
        self.report_loaded();
        // Nobody may want it any more.
        if let Some(reason) = terminator.reason() {
            return Err(reason);
        }
        let _inside = turns.enter();
        Ok(Box::pin(self.worker.runtime.mod_evaluate(id)))
    }

    /// Says which files were loaded as modules.
    fn report_loaded(&self) {
        let files = self.worker.home.take_loaded();
        if !files.is_empty() {
            self.outbox.send(FromIsolate::Loaded { files });
        }
    }

    /// Measures the isolate's memory, unless it was done a short time ago.
    fn measure(&mut self, interval: Duration) {
        let now = Instant::now();
        if now.duration_since(self.measured_at) >= interval {
            self.measured_at = now;
            self.terminator.measure_now(self.worker.runtime.v8_isolate());
        }
    }

    /// Leads the stack of a limit that was reached back to where it was written.
    fn with_sources(&self, reason: EndReason) -> EndReason {
        match reason {
            EndReason::Limit(mut breach) => {
                breach.stack = interrupt::map_to_sources(&breach.stack, self.worker.loader.clone());
                EndReason::Limit(breach)
            }
            other => other,
        }
    }

    /// One turn: messages in, event loop, module.
    fn turn(
        &mut self,
        cx: &mut Context<'_>,
        evaluation: &mut Option<Evaluation>,
    ) -> Poll<EndReason> {
        while let Poll::Ready(message) = self.inbox.poll_recv(cx) {
            match message {
                // Nobody can reach this extension any more.
                None | Some(ToIsolate::Stop) => return Poll::Ready(EndReason::Stopped),
                Some(message) => {
                    if let Err(error) = self.receive(message) {
                        return Poll::Ready(self.failure(&error));
                    }
                }
            }
        }
        self.worker.run_foreground(cx);
        let polled = self.worker.runtime.poll_event_loop(cx, PollEventLoopOptions::default());
        self.report_events_seen();
        // A module that fails says more about it than the event loop does.
        if let Some(running) = evaluation
            && let Poll::Ready(result) = running.as_mut().poll(cx)
        {
            *evaluation = None;
            if let Err(error) = result {
                return Poll::Ready(self.failure(&error));
            }
        }
        if let Poll::Ready(Err(error)) = polled {
            return Poll::Ready(self.failure(&error));
        }
        if let Some(reason) = self.ended_by_itself() {
            return Poll::Ready(reason);
        }
        self.settle(cx, evaluation.is_none());
        Poll::Pending
    }

    /// Says that events were seen, once what their handlers began has run as far as it can.
    fn report_events_seen(&mut self) {
        for _ in 0..std::mem::take(&mut self.batches_delivered) {
            self.outbox.send(FromIsolate::EventsSeen);
        }
    }

    /// Reports the extension ready once it has joined and its module has run as far as it can.
    fn settle(&mut self, cx: &Context<'_>, evaluated: bool) {
        let Joined::Yes(turns) = self.joined else { return };
        if self.ready {
            return;
        }
        if evaluated || turns >= TURNS_TO_SETTLE {
            self.ready = true;
            self.outbox.send(FromIsolate::Ready(self.started.report()));
            // QuickJS walks the whole heap to measure it, which is a third of what such a start costs. It measures when it
            // is asked, or at the next interval.
            #[cfg(feature = "v8")]
            self.measure(Duration::ZERO);
        } else {
            self.joined = Joined::Yes(turns + 1);
            cx.waker().wake_by_ref();
        }
    }

    fn receive(&mut self, message: ToIsolate) -> Result<(), CoreError> {
        match message {
            ToIsolate::Call { call, kind, payload } => self.dispatch(call, kind, payload),
            ToIsolate::Cancel { call: id, reason } => {
                let arguments = [serde_json::json!(id), reason.into()];
                call(&mut self.worker.runtime, &self.worker.functions.cancel, &arguments)
            }
            ToIsolate::Answer { request, result } => {
                let state = self.worker.runtime.op_state();
                let has_joined = state.borrow_mut().borrow_mut::<Bridge>().answer(request, result);
                if has_joined && self.joined == Joined::No {
                    self.joined = Joined::Yes(0);
                    self.terminator.end_start();
                }
                Ok(())
            }
            ToIsolate::Events { batch } => {
                let deliver = &self.worker.functions.deliver;
                self.batches_delivered += 1;
                call(&mut self.worker.runtime, deliver, &[batch.into()])
            }
            ToIsolate::HoldStart { held } => {
                self.terminator.hold_start(held);
                Ok(())
            }
            ToIsolate::Measure => {
                self.measure(Duration::ZERO);
                self.outbox.send(FromIsolate::Measured(self.terminator.usage()));
                Ok(())
            }
            // Handled by whoever polls the inbox.
            ToIsolate::Stop => Ok(()),
        }
    }

    fn dispatch(&mut self, id: CallId, kind: CallKind, payload: String) -> Result<(), CoreError> {
        let arguments = [kind.as_str().into(), serde_json::json!(id), payload.into()];
        call(&mut self.worker.runtime, &self.worker.functions.dispatch, &arguments)
    }

    /// Whether the extension called `process.exit`, or was terminated.
    fn ended_by_itself(&self) -> Option<EndReason> {
        let state = self.worker.runtime.op_state();
        if let Some(exit) = state.borrow().try_borrow::<ExitRequested>() {
            let joined = self.joined != Joined::No;
            return Some(EndReason::Exited { code: exit.code, joined });
        }
        self.terminator.reason()
    }

    fn failure(&self, error: &CoreError) -> EndReason {
        let described = script_error::from_core_error(error);
        // A limit may refuse something before it ends the extension; then the limit is the reason, and
        // not what the refusal made the extension throw.
        let stack = described.stack.clone().unwrap_or_default();
        self.terminator.conclude(children::current_thread(), stack);
        self.ended_by_itself().unwrap_or(EndReason::Script(described))
    }

    /// Lets the extension say goodbye, if it still can.
    async fn finish(&mut self, reason: EndReason) -> EndReason {
        // One that was terminated says no goodbye.
        let was_asked = self.terminator.reason().is_none();
        if was_asked && matches!(reason, EndReason::Stopped | EndReason::NoJoin { .. }) {
            let deadline = Duration::from_millis(self.spec.limits.stop_deadline_ms);
            self.worker.runtime.op_state().borrow().borrow::<Bridge>().let_go();
            if self.deliver_sigterm() {
                // It ends when the handler calls `process.exit`, when nothing is left to do, or when
                // its time is up.
                let _ = tokio::time::timeout(deadline, self.run_until_exit()).await;
            }
            if self.ended_by_itself().is_none() {
                let emit_exit = &self.worker.functions.emit_exit;
                let _inside = self.turns.enter();
                // What an exit handler throws has nowhere to go: the log is closing.
                let _ = call(&mut self.worker.runtime, emit_exit, &[0.into()]);
            }
        }
        #[cfg(feature = "quickjs")]
        {
            self.terminator.notice();
            self.close_handles().await;
        }
        reason
    }

    /// Closes what the engine does not close when it is dropped.
    #[cfg(feature = "quickjs")]
    async fn close_handles(&mut self) {
        let _inside = self.turns.enter();
        let runtime = &mut self.worker.runtime;
        // A terminated instance runs nothing until the termination is taken back.
        runtime.v8_isolate().cancel_terminate_execution();
        let _ = call(runtime, &self.worker.functions.close_handles, &[]);
        let turn = poll_fn(|cx| {
            let _ = runtime.poll_event_loop(cx, PollEventLoopOptions::default());
            Poll::Ready(())
        });
        turn.await;
    }

    fn deliver_sigterm(&mut self) -> bool {
        let state = self.worker.runtime.op_state();
        state.borrow_mut().borrow_mut::<Signals>().deliver(libc::SIGTERM)
    }

    async fn run_until_exit(&mut self) {
        let turns = self.turns;
        poll_fn(|cx| {
            self.terminator.notify(cx.waker());
            let _inside = turns.enter();
            while let Poll::Ready(Some(message)) = self.inbox.poll_recv(cx) {
                let _ = self.receive(message);
            }
            let polled = self.worker.runtime.poll_event_loop(cx, PollEventLoopOptions::default());
            self.report_events_seen();
            if polled.is_ready() || self.ended_by_itself().is_some() {
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
    }
}

/// Calls one of the platform's functions with plain values. Its result is not needed; what it
/// throws is an error of the platform or of a synchronous handler.
pub fn call(
    runtime: &mut JsRuntime,
    function: &v8::Global<v8::Function>,
    arguments: &[serde_json::Value],
) -> Result<(), CoreError> {
    deno_core::scope!(scope, runtime);
    v8::tc_scope!(let scope, scope);
    let mut values = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let value = deno_core::serde_v8::to_v8(scope, argument)
            .map_err(|error| CoreError::from(std::io::Error::other(error.to_string())))?;
        values.push(value);
    }
    let function = v8::Local::new(scope, function);
    let undefined = v8::undefined(scope);
    if function.call(scope, undefined.into(), &values).is_none()
        && let Some(exception) = scope.exception()
    {
        let error = deno_core::error::JsError::from_v8_exception(scope, exception);
        return Err(CoreError::from(error));
    }
    Ok(())
}
