//! Where extensions run: each in a process of its own, or in this one.
//!
//! The `tenon` program has every extension's process forked by a zygote (`tenon zygote`), which sessions share. What
//! happens to one of these processes happens to one extension. A program that embeds the session may have extensions
//! in its own process instead, where only the engine separates them.

mod incoming;
mod last_lines;
mod remote;
mod zygote;

use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use tenon_protocol::engine::Engine;
use tenon_protocol::engine::EngineIsolate;
use tenon_protocol::message::FromIsolate;
use tenon_protocol::message::IsolateUsage;
use tenon_protocol::message::LoadSpec;
use tenon_protocol::message::ToIsolate;
use tracing::warn;

pub(crate) use incoming::Incoming;
use remote::Remote;
use remote::RemoteGauge;
pub use remote::Unsent;
use zygote::Zygote;

/// How long a zygote may take to answer when it is tried out.
const PROBE_DEADLINE: Duration = Duration::from_secs(20);

/// Starts extensions. Clones share the zygote.
#[derive(Clone)]
pub struct Isolates(Arc<Where>);

enum Where {
    Nowhere,
    Here(Arc<dyn Engine>),
    There(ZygoteConnector),
}

/// Connects to the zygote when it is first needed, and again when it has died.
struct ZygoteConnector {
    program: PathBuf,
    /// Where the sockets of shared zygotes are.
    folder: Option<PathBuf>,
    /// Held by whoever connects, which may take a while.
    connecting: Mutex<()>,
    zygote: Mutex<Option<Arc<Zygote>>>,
    /// Why the last attempt to start one failed.
    refused: Mutex<Option<String>>,
}

/// Everything that takes time before an extension can be started.
pub(crate) struct Prepared(Option<Arc<Zygote>>);

/// An extension could not be started.
#[derive(Debug, thiserror::Error)]
#[error("no process could be started for the extension: {0}")]
pub struct StartError(String);

impl Isolates {
    /// No engine: every extension fails to start. For sessions that have none.
    pub fn none() -> Self {
        Self(Arc::new(Where::Nowhere))
    }

    /// Extensions in this process, run by the given engine, which must have been initialised on the main thread. It is
    /// the weaker way: no limit covers all memory, nothing can be killed, and permissions are checked by the program
    /// alone.
    pub fn in_process(engine: Arc<dyn Engine>) -> Self {
        Self(Arc::new(Where::Here(engine)))
    }

    /// Every extension in a process of its own, forked by `PROGRAM zygote`, which must call
    /// `tenon_isolate::serve_if_asked`. The zygote is started when it is first needed, and again when it has died. Given
    /// a folder of the user's, it is shared with other sessions.
    pub fn processes(program: PathBuf, folder: Option<PathBuf>) -> Self {
        Self(Arc::new(Where::There(ZygoteConnector {
            program,
            folder,
            connecting: Mutex::default(),
            zygote: Mutex::default(),
            refused: Mutex::default(),
        })))
    }

    /// The zygote and the processes that extensions of this session run in, if that is not this one.
    pub fn pids(&self) -> Vec<u32> {
        let Where::There(connector) = &*self.0 else { return Vec::new() };
        connector
            .last()
            .filter(|zygote| zygote.is_alive())
            .map_or_else(Vec::new, |zygote| zygote.pids())
    }

    /// Why no extension at all can be started; `None` if nothing is known that speaks against it.
    pub fn trouble(&self) -> Option<String> {
        let Where::There(connector) = &*self.0 else { return None };
        let refused = connector.refused.lock().clone();
        let failing = || connector.last().filter(|zygote| zygote.keeps_failing());
        refused.or_else(|| failing().map(|zygote| zygote.how_it_died()))
    }

    /// Tries whether a zygote can be started, and how long it takes until it answers.
    pub async fn probe(&self) -> Result<Duration, String> {
        let started = Instant::now();
        match self.prepare().await.map_err(|StartError(why)| why)?.0 {
            Some(zygote) => probe(&zygote, started).await,
            None => Ok(Duration::ZERO),
        }
    }

    /// Waits until the next extension can be started without further preparation.
    pub async fn wait_until_prepared(&self) {
        match &*self.0 {
            Where::Nowhere | Where::Here(_) => {}
            Where::There(_) => drop(self.probe().await),
        }
    }

    /// Finds or starts the zygote, if there has to be one. It may connect to a socket, fork and execute a program, none of which
    /// is done in an async task or under a lock of others. Must be called inside a tokio runtime.
    pub(crate) async fn prepare(&self) -> Result<Prepared, StartError> {
        let Where::There(connector) = &*self.0 else { return Ok(Prepared(None)) };
        if let Some(zygote) = connector.alive() {
            return Ok(Prepared(Some(zygote)));
        }
        let isolates = self.clone();
        let connected = tokio::task::spawn_blocking(move || match &*isolates.0 {
            Where::There(connector) => connector.connect().map(Some),
            Where::Nowhere | Where::Here(_) => Ok(None),
        });
        let connected = connected.await.map_err(|error| StartError(error.to_string()))?;
        connected.map(Prepared).map_err(|error| StartError(error.to_string()))
    }

    /// Starts an extension, without waiting for anything. If the zygote has died since it was prepared, the extension ends
    /// with it. Its messages go to `receive`; the last is `Ended`. Must be called inside a tokio runtime.
    pub(crate) fn start(
        &self,
        prepared: Prepared,
        spec: LoadSpec,
        receive: impl Fn(FromIsolate) + Send + Sync + 'static,
    ) -> Result<Handle, StartError> {
        match (&*self.0, prepared) {
            (Where::Here(engine), _) => {
                engine.start(spec, Box::new(receive)).map(Handle::Here).map_err(StartError)
            }
            (Where::There(_), Prepared(Some(zygote))) => {
                let started = Remote::start(zygote, spec, receive);
                started.map(Handle::There).map_err(|error| StartError(error.to_string()))
            }
            (Where::Nowhere | Where::There(_), _) => {
                Err(StartError("the session was given no engine".to_owned()))
            }
        }
    }
}

/// How long it takes, from `started` on, until a zygote answers.
async fn probe(zygote: &Zygote, started: Instant) -> Result<Duration, String> {
    match tokio::time::timeout(PROBE_DEADLINE, zygote.answers()).await {
        Ok(true) => Ok(started.elapsed()),
        Ok(false) => Err(zygote.how_it_died()),
        Err(_) => Err(format!("it did not answer within {PROBE_DEADLINE:?}")),
    }
}

impl ZygoteConnector {
    /// The last zygote there was. It may have died.
    fn last(&self) -> Option<Arc<Zygote>> {
        self.zygote.lock().clone()
    }

    fn alive(&self) -> Option<Arc<Zygote>> {
        self.last().filter(|zygote| zygote.is_alive())
    }

    /// The zygote; another if it has died. This blocks.
    fn connect(&self) -> std::io::Result<Arc<Zygote>> {
        let _alone = self.connecting.lock();
        if let Some(zygote) = self.alive() {
            return Ok(zygote);
        }
        let dead = self.last();
        let failed_boots = dead.as_ref().map_or(0, |dead| dead.failed_boots());
        if dead.is_some() {
            warn!(failed_boots, "the zygote has died, and another takes its place");
        }
        let made = Zygote::connect(&self.program, self.folder.as_deref(), failed_boots);
        let refused = made
            .as_ref()
            .err()
            .map(|error| format!("the zygote process cannot be started: {error}"));
        *self.refused.lock() = refused;
        let zygote = made?;
        *self.zygote.lock() = Some(zygote.clone());
        Ok(zygote)
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

    /// Sends messages, of which none is an answer, one directly after the other.
    pub fn send_all(&self, messages: Vec<ToIsolate>) -> Result<(), Unsent> {
        match self {
            Self::Here(isolate) => {
                messages.into_iter().for_each(|message| isolate.send(message));
                Ok(())
            }
            Self::There(remote) => remote.send_all(&messages),
        }
    }

    /// What the isolate says, where whoever waits for a reply can look for it.
    pub fn incoming(&self) -> Option<Arc<Incoming>> {
        match self {
            Self::Here(_) => None,
            Self::There(remote) => Some(remote.incoming()),
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

    /// Something to ask for what it uses, without holding on to the isolate.
    pub fn gauge(&self) -> Gauge {
        match self {
            Self::Here(isolate) => Gauge::Here(isolate.usage()),
            Self::There(remote) => Gauge::There(remote.gauge()),
        }
    }
}

/// What an isolate uses, or whom to ask.
pub(crate) enum Gauge {
    Here(IsolateUsage),
    There(RemoteGauge),
}

/// What isolates use. All have been asked when their gauges were made, so the slowest counts alone.
pub(crate) async fn measure(gauges: Vec<Gauge>) -> Vec<IsolateUsage> {
    let mut all = Vec::with_capacity(gauges.len());
    for gauge in gauges {
        all.push(match gauge {
            Gauge::Here(usage) => usage,
            Gauge::There(gauge) => gauge.read().await,
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixListener;
    use std::os::unix::net::UnixStream;
    use std::path::Path;

    use super::*;

    /// If it did, this would hang: the runtime has one thread.
    #[tokio::test]
    async fn a_zygote_that_takes_no_connection_keeps_no_task_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let program = Path::new("/bin/true");
        let socket = zygote::meeting_place(program, folder.path()).unwrap();
        let listener = UnixListener::bind(&socket).unwrap();
        // SAFETY: the descriptor is open; listen takes integers.
        assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
        // The queue has one place.
        let first = UnixStream::connect(&socket).unwrap();
        let isolates = Isolates::processes(program.to_owned(), Some(folder.path().to_owned()));
        let asked = isolates.clone();
        let preparing = tokio::spawn(async move { asked.prepare().await.map(drop) });
        tokio::task::yield_now().await;
        assert!(!preparing.is_finished());
        // Nor does it keep those waiting who ask what there is.
        assert!(isolates.pids().is_empty() && isolates.trouble().is_none());
        listener.accept().unwrap();
        drop(first);
        preparing.await.unwrap().unwrap();
    }
}
