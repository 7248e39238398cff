//! The program `tenon-in-process`: extensions that are threads of this process, and the engine alone.

use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::Barrier;
use std::sync::mpsc;
use std::time::Duration;
use std::time::Instant;

use serde::Serialize;
use serde_json::Value;
use serde_json::json;
use tenon_console::error::CliError;
use tenon_console::output;
use tenon_console::preflight;
use tenon_host::Isolates;
use tenon_host::Session;
use tenon_protocol::engine::EngineIsolate;
use tenon_protocol::limits;
use tenon_protocol::message::FromIsolate;
use tenon_protocol::message::Grant;
use tenon_protocol::message::LoadSpec;
use tenon_protocol::message::Outside;
use tenon_protocol::message::ToIsolate;

use crate::in_process::Answer;
use crate::in_process::Order;
use crate::process;
use crate::process::Memory;
use crate::single::FIVE_MODULES;
use crate::single::Single;
use crate::single::WARM_UP;
use crate::single::write_module;
use crate::suite::calls;
use crate::suite::compute;

/// The engine that the program was linked with.
#[derive(Clone, Copy)]
pub struct Engine {
    /// Initialises it; to be called before any other thread exists.
    pub init: fn(),
    /// Starts isolates in this process.
    pub launcher: fn() -> Arc<dyn tenon_protocol::engine::Engine>,
    /// Makes an engine instance without any platform, and keeps it while the function runs.
    pub bare_isolate: fn(Box<dyn FnOnce()>),
    /// CPU time of the calling thread.
    pub thread_cpu_time: fn() -> Duration,
}

/// The program: does what it is told to on standard input, until that ends.
///
/// # Safety
///
/// It must be called first thing in `main`, while there is one thread: it changes the environment.
pub unsafe fn main(engine: Engine) -> ExitCode {
    // SAFETY: as demanded above.
    unsafe { tenon_host::environment::seal() };
    preflight::survive_file_limit();
    // Before any other thread exists: some processors let the engine's memory be touched only by
    // threads that descend from the one that initialised it.
    (engine.init)();
    let served = preflight::prepare(false).and_then(|runtime| runtime.block_on(serve(engine)));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error.print();
            ExitCode::FAILURE
        }
    }
}

async fn serve(engine: Engine) -> Result<(), CliError> {
    let folder = tempfile::tempdir()?;
    let mut sessions = Sessions { engine, folder: folder.path(), calls: None, compute: None };
    // Reading holds up this thread and nothing else: extensions and the event loop have threads of their own.
    for line in std::io::stdin().lines() {
        let order: Order = serde_json::from_str(&line?)?;
        let answer: Answer<Value> = match sessions.obey(order).await {
            Ok(answer) => Ok(answer),
            Err(error) => Err(error.message().to_owned()),
        };
        output::line(serde_json::to_string(&answer)?);
    }
    Ok(())
}

/// The sessions that were needed so far.
struct Sessions<'a> {
    engine: Engine,
    folder: &'a Path,
    calls: Option<Session>,
    compute: Option<Session>,
}

impl Sessions<'_> {
    async fn obey(&mut self, order: Order) -> Result<Value, CliError> {
        match order {
            Order::Extensions(count) => json_of(&extensions(self.engine, count.max(1)).await?),
            Order::Bare(count) => json_of(&bare(self.engine, count.max(1))),
            Order::Calls(count) => {
                let session = match self.calls.take() {
                    Some(session) => session,
                    None => calls::session(&self.folder.join("calls"), 0, self.isolates()).await?,
                };
                json_of(&calls::of_session(self.calls.insert(session), count).await?)
            }
            Order::Compute => {
                let session = match self.compute.take() {
                    Some(session) => session,
                    None => compute::session(&self.folder.join("compute"), self.isolates()).await?,
                };
                json_of(&compute::of_session(self.compute.insert(session)).await?)
            }
        }
    }

    fn isolates(&self) -> Isolates {
        Isolates::in_process((self.engine.launcher)())
    }
}

fn json_of(value: &impl Serialize) -> Result<Value, CliError> {
    Ok(serde_json::to_value(value)?)
}

/// Extensions as a program has them that embeds the session.
async fn extensions(engine: Engine, count: usize) -> Result<Single, CliError> {
    let folder = tempfile::tempdir()?;
    let launcher = (engine.launcher)();
    let (mut isolates, mut times, mut before) = (Vec::new(), Vec::new(), Memory::default());
    for number in 0..WARM_UP + count {
        if number == WARM_UP {
            before = Memory::of(std::process::id());
            times.clear();
        }
        let entry = write_module(folder.path(), number, FIVE_MODULES)?;
        let (started, cpu) = (Instant::now(), process::cpu_ms(std::process::id()));
        isolates.push(start(&*launcher, entry, folder.path()).await?);
        let cpu = process::cpu_ms(std::process::id()) - cpu;
        times.push((started.elapsed().as_secs_f64() * 1e3, cpu));
    }
    Ok(of_threads(times, before))
}

/// What threads of this process took, whose memory is what it has grown by.
fn of_threads(times: Vec<(f64, f64)>, before: Memory) -> Single {
    let (after, count) = (Memory::of(std::process::id()), times.len() as f64);
    let each = |pick: fn(Memory) -> u64| {
        vec![pick(after).saturating_sub(pick(before)) as f64 / count / 1e6]
    };
    let (ready_ms, cpu_ms) = times.into_iter().unzip();
    let (private_mb, whole_mb) = (each(|memory| memory.private), each(Memory::whole));
    Single { ready_ms, cpu_ms, private_mb, whole_mb, ..Single::default() }
}

/// Starts one extension in this process and lets it join.
async fn start(
    launcher: &dyn tenon_protocol::engine::Engine,
    entry: PathBuf,
    cwd: &Path,
) -> Result<Box<dyn EngineIsolate>, CliError> {
    let spec = LoadSpec {
        id: "bench".into(),
        entry,
        cwd: cwd.to_owned(),
        env: std::env::vars().collect(),
        grant: Grant::default(),
        sandbox_required: false,
        limits: limits::default_limits(),
        outside: Outside::default(),
    };
    let (sender, mut messages) = tokio::sync::mpsc::unbounded_channel();
    let isolate = launcher
        .start(spec, Box::new(move |message| drop(sender.send(message))))
        .map_err(CliError::new)?;
    while let Some(message) = messages.recv().await {
        match message {
            FromIsolate::Request { request, .. } => {
                isolate
                    .send(ToIsolate::Answer { request, result: Ok(json!({ "sessionId": "s" })) });
            }
            FromIsolate::Ready(_) => return Ok(isolate),
            FromIsolate::Ended(reason) => {
                return Err(CliError::new(format!("an extension ended: {reason:?}")));
            }
            FromIsolate::Started { .. }
            | FromIsolate::Measured(_)
            | FromIsolate::Reply { .. }
            | FromIsolate::Loaded { .. }
            | FromIsolate::EventsSeen
            | FromIsolate::Log(_) => {}
        }
    }
    Err(CliError::new("an extension ended without a word"))
}

/// The engine alone, one instance per thread, all idle at the end.
fn bare(engine: Engine, count: usize) -> Single {
    let release = Arc::new(Barrier::new(WARM_UP + count + 1));
    let (mut times, mut threads, mut before) = (Vec::new(), Vec::new(), Memory::default());
    for number in 0..WARM_UP + count {
        if number == WARM_UP {
            before = Memory::of(std::process::id());
            times.clear();
        }
        let (sender, receiver) = mpsc::channel();
        let release = release.clone();
        let started = Instant::now();
        threads.push(std::thread::spawn(move || {
            (engine.bare_isolate)(Box::new(move || {
                let _ = sender.send((engine.thread_cpu_time)());
                release.wait();
            }));
        }));
        let cpu = receiver.recv().unwrap_or_default();
        times.push((started.elapsed().as_secs_f64() * 1000.0, cpu.as_secs_f64() * 1000.0));
    }
    let single = of_threads(times, before);
    release.wait();
    for thread in threads {
        // A thread that panicked has sent no time and shows as zero.
        let _ = thread.join();
    }
    single
}
