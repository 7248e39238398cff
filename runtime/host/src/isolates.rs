//! Where isolates live: in this process, or in one of their own.
//!
//! Inside a JavaScript engine some failures end the whole process. So the `tenon` program keeps isolates in
//! a child process (`tenon isolate-host`), and starts another when that one dies; the session, the agent and
//! the person's side live on. A program that embeds the session may have them in its own process.

mod process;
mod remote;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::Weak;
use std::time::Duration;
use std::time::Instant;

use tenon_protocol::control::IsolateId;
use tenon_protocol::control::Order;
use tenon_protocol::engine::Engine;
use tenon_protocol::engine::EngineIsolate;
use tenon_protocol::engine::Spare;
use tenon_protocol::message::FromIsolate;
use tenon_protocol::message::IsolateUsage;
use tenon_protocol::message::LoadSpec;
use tenon_protocol::message::ToIsolate;

use process::HostProcess;
use remote::Remote;
pub use remote::Unsent;

/// How long a new isolate host may take to answer when it is tried out.
const PROBE_DEADLINE: Duration = Duration::from_secs(20);

/// Starts isolates. Clones share the process that isolates live in.
#[derive(Clone)]
pub struct Isolates(Arc<Where>);

enum Where {
    Nowhere,
    Here(Arc<dyn Engine>),
    There(Fleet),
}

/// The processes that isolates live in.
struct Fleet {
    program: PathBuf,
    spare: Spare,
    /// The process that extensions share, once there is one.
    shared: Mutex<Option<Arc<HostProcess>>>,
    /// Those that one extension has for itself, and those that were shared and have not been left by all.
    others: Mutex<Vec<Weak<HostProcess>>>,
}

/// With whom an isolate lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Company {
    /// With the others.
    Shared,
    /// Alone.
    Own,
}

/// An isolate could not be started.
#[derive(Debug, thiserror::Error)]
#[error("no isolate could be started: {0}")]
pub struct StartError(String);

impl Isolates {
    /// No isolates: every extension fails to start. For sessions that have none.
    pub fn none() -> Self {
        Self(Arc::new(Where::Nowhere))
    }

    /// Isolates in this process, made by the given engine, which must have been initialised on the main thread.
    pub fn in_process(engine: Arc<dyn Engine>) -> Self {
        Self(Arc::new(Where::Here(engine)))
    }

    /// Isolates in a process of their own: `PROGRAM isolate-host`, which calls `tenon_protocol::serve`. It is started when
    /// it is first needed, and again whenever it has died.
    pub fn process(program: PathBuf, spare: Spare) -> Self {
        let fleet = Fleet { program, spare, shared: Mutex::default(), others: Mutex::default() };
        Self(Arc::new(Where::There(fleet)))
    }

    /// The processes that isolates live in, if it is not this one.
    pub fn pids(&self) -> Vec<u32> {
        let Where::There(fleet) = &*self.0 else { return Vec::new() };
        let shared = fleet.shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let others = fleet.others.lock().unwrap_or_else(PoisonError::into_inner);
        shared
            .into_iter()
            .chain(others.iter().filter_map(Weak::upgrade))
            .filter(|host| host.is_alive())
            .map(|host| host.pid())
            .collect()
    }

    /// Tries whether an isolate host can be started, and how long it takes until it answers.
    pub async fn probe(&self) -> Result<Duration, String> {
        let started = Instant::now();
        let Where::There(fleet) = &*self.0 else { return Ok(Duration::ZERO) };
        let host = fleet.shared().map_err(|error| error.to_string())?;
        tokio::select! {
            answer = tokio::time::timeout(PROBE_DEADLINE, host.await_spare()) => match answer {
                Ok(()) if host.is_alive() => Ok(started.elapsed()),
                Ok(()) => Err(host.died().await.how),
                Err(_) => Err(format!("it did not answer within {PROBE_DEADLINE:?}")),
            },
            death = host.died() => Err(death.how),
        }
    }

    /// Waits until the spare isolate, if one is kept, is ready.
    pub async fn wait_for_spare(&self) {
        match &*self.0 {
            Where::Nowhere => {}
            Where::Here(engine) => engine.spare_is_warm().await,
            Where::There(fleet) => {
                if let Ok(host) = fleet.shared() {
                    host.await_spare().await;
                }
            }
        }
    }

    /// Puts an extension into an isolate. Its messages go to `receive`; the last is `Ended`. Must be called
    /// inside a tokio runtime.
    pub(crate) fn start(
        &self,
        spec: LoadSpec,
        company: Company,
        receive: impl Fn(FromIsolate) + Send + Sync + 'static,
    ) -> Result<Handle, StartError> {
        let failed = |error: &dyn std::fmt::Display| StartError(error.to_string());
        match &*self.0 {
            Where::Nowhere => Err(StartError("the session was given no engine".to_owned())),
            Where::Here(engine) => {
                engine.start(spec, Box::new(receive)).map(Handle::Here).map_err(StartError)
            }
            Where::There(fleet) => {
                let host = match company {
                    Company::Shared => fleet.shared(),
                    Company::Own => fleet.another(),
                };
                let host = host.map_err(|error| failed(&error))?;
                Remote::start(host, company == Company::Own, spec, receive)
                    .map(Handle::There)
                    .map_err(|error| failed(&error))
            }
        }
    }
}

impl Fleet {
    /// The process that extensions share; a new one if there is none, or if it has died or is worn out. A
    /// worn-out one ends when the last of its extensions has ended or was loaded again.
    fn shared(&self) -> std::io::Result<Arc<HostProcess>> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let left = shared.take_if(|host| !host.is_alive() || host.is_worn_out());
        if let Some(host) = shared.as_ref() {
            return Ok(host.clone());
        }
        let worn_out = left.filter(|host| host.is_alive());
        let host = match (HostProcess::start(&self.program, self.spare), worn_out) {
            (Ok(host), Some(worn_out)) => {
                worn_out.order(Order::GiveUpSpare);
                self.remember(&worn_out);
                host
            }
            // Better than none.
            (Err(_), Some(worn_out)) => worn_out,
            (started, None) => started?,
        };
        *shared = Some(host.clone());
        Ok(host)
    }

    /// A process for one extension; it ends with the isolate.
    fn another(&self) -> std::io::Result<Arc<HostProcess>> {
        let host = HostProcess::start(&self.program, Spare::None)?;
        self.remember(&host);
        Ok(host)
    }

    /// Lists a process that lives as long as somebody is in it.
    fn remember(&self, host: &Arc<HostProcess>) {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.retain(|host| host.strong_count() > 0);
        others.push(Arc::downgrade(host));
    }
}

/// A running isolate. Dropping it ends the isolate without ceremony.
pub(crate) enum Handle {
    Here(Box<dyn EngineIsolate>),
    There(Remote),
}

impl Handle {
    /// Sends a message. An isolate that has ended ignores it.
    pub fn send(&self, message: ToIsolate) -> Result<(), Unsent> {
        match self {
            Self::Here(isolate) => {
                isolate.send(message);
                Ok(())
            }
            Self::There(remote) => remote.send(&message),
        }
    }

    /// Lets the extension say goodbye, and ends it; by force when it does not answer. Its requests can be
    /// answered until then.
    pub fn stop(&self) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        match self {
            Self::Here(isolate) => isolate.stop(),
            Self::There(remote) => Box::pin(remote.stop()),
        }
    }

    /// Says whether the start deadline counts: not while a person is asked about the extension.
    pub fn hold_start(&self, held: bool) {
        match self {
            Self::Here(isolate) => isolate.hold_start(held),
            Self::There(remote) => remote.hold_start(held),
        }
    }

    /// The process it is in.
    pub fn pid(&self) -> u32 {
        match self {
            Self::Here(_) => std::process::id(),
            Self::There(remote) => remote.host().pid(),
        }
    }

    /// Something to ask for what it uses, without holding on to the isolate.
    pub fn gauge(&self) -> Gauge {
        match self {
            Self::Here(isolate) => Gauge::Here(isolate.usage()),
            Self::There(remote) => Gauge::There(remote.host().clone(), remote.id()),
        }
    }
}

/// What an isolate uses, or whom to ask.
pub(crate) enum Gauge {
    Here(IsolateUsage),
    There(Arc<HostProcess>, IsolateId),
}

/// What isolates use; every process is asked once.
pub(crate) async fn measure(gauges: Vec<Gauge>) -> Vec<IsolateUsage> {
    let mut asked: Vec<(u32, std::collections::HashMap<_, _>)> = Vec::new();
    let mut all = Vec::with_capacity(gauges.len());
    for gauge in gauges {
        match gauge {
            Gauge::Here(usage) => all.push(usage),
            Gauge::There(host, id) => {
                let known = asked.iter().position(|(pid, _)| *pid == host.pid());
                let known = match known {
                    Some(known) => known,
                    None => {
                        asked.push((host.pid(), host.usage().await));
                        asked.len() - 1
                    }
                };
                all.push(asked[known].1.get(&id).copied().unwrap_or_default());
            }
        }
    }
    all
}
