//! One end of a JSON-RPC pipe.
//!
//! Two tasks serve it. One reads a line, deals with it, and only then reads the next; so what arrives
//! waits in the system's pipe, and at last at the sender. The other writes what is queued, all of it at
//! once. Both end when the other side is gone, when [`Connection::close`] is called, or with the last clone.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use parking_lot::Mutex;
use serde_json::Value;
use serde_json::json;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::oneshot;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Handler;
use super::RpcError;
use super::lines::Line;
use super::lines::Lines;
use super::lines::MAX_LINE_BYTES;
use super::lines::shown;
use super::message;
use super::message::Incoming;
use super::message::Outgoing;
use super::message::Params;

/// Messages that wait to be written; then whoever sends waits. Enough for one write to carry many small ones,
/// few enough that a reader which falls behind is felt at once.
pub const OUT_QUEUE: usize = 256;

/// Requests of the other side that are open at a time; more are refused. Each has a task, and no client or
/// agent that means well has more than a few dozen.
pub const MAX_OPEN_REQUESTS: usize = 512;

/// How long the other side has, after the end, to take what is queued.
const FLUSH_PATIENCE: Duration = Duration::from_secs(2);

/// How long what the other side has said is still read when it takes nothing any more. One that has ended
/// closes its output at once.
const BROKEN_GRACE: Duration = Duration::from_secs(2);

/// Bytes that are collected before they are written, unless nothing more is queued.
const WRITE_BYTES: usize = 256 * 1024;

/// Bytes of room that are kept for the next messages.
const KEPT_BYTES: usize = 1024 * 1024;

/// Tells the other side that nobody waits for its answer any more.
const CANCEL: &str = "$/cancel_request";

#[derive(Clone, Copy)]
struct Limits {
    line_bytes: usize,
    out_queue: usize,
    open_requests: usize,
    flush_patience: Duration,
    broken_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            line_bytes: MAX_LINE_BYTES,
            out_queue: OUT_QUEUE,
            open_requests: MAX_OPEN_REQUESTS,
            flush_patience: FLUSH_PATIENCE,
            broken_grace: BROKEN_GRACE,
        }
    }
}

/// One end of a JSON-RPC pipe. Clones are the same end; dropping the last one closes it.
#[derive(Clone)]
pub struct Connection(Arc<Owner>);

impl Connection {
    /// Begins to read and write. Must be called inside a tokio runtime.
    pub fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        handler: Arc<dyn Handler>,
    ) -> Self {
        Self::with_limits(reader, writer, handler, Limits::default())
    }

    fn with_limits(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        handler: Arc<dyn Handler>,
        limits: Limits,
    ) -> Self {
        let (out, queue) = mpsc::channel(limits.out_queue);
        let shared = Arc::new(Shared {
            out,
            calls: Mutex::default(),
            open: Mutex::default(),
            stage: watch::Sender::new(Stage::Open),
            runtime: tokio::runtime::Handle::current(),
        });
        tokio::spawn(read(Owner(shared.clone()), reader, handler, limits));
        tokio::spawn(write(shared.clone(), queue, writer, limits));
        Self(Arc::new(Owner(shared)))
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.0.0
    }

    /// Asks the other side and waits for its answer; [`RpcError::closed`] when it goes without one. Dropping
    /// the future tells the other side that nobody waits any more.
    pub async fn request(
        &self,
        method: &str,
        params: impl Into<Params>,
    ) -> Result<Value, RpcError> {
        let shared = self.shared();
        let (answer, answered) = oneshot::channel();
        let id = shared.register(answer)?;
        let mut call = Call { shared, id, sent: false };
        let message = Outgoing::Request { id, method: method.to_owned(), params: params.into() };
        shared.out.send(message).await.map_err(|_| RpcError::closed())?;
        call.sent = true;
        answered.await.unwrap_or_else(|_| Err(RpcError::closed()))
    }

    /// Tells the other side something. Waits while the queue is full.
    pub async fn notify(&self, method: &str, params: Value) -> Result<(), RpcError> {
        if self.is_closed() {
            return Err(RpcError::closed());
        }
        let message = Outgoing::Notification { method: method.to_owned(), params: params.into() };
        self.shared().out.send(message).await.map_err(|_| RpcError::closed())
    }

    /// Waits until the other side is gone or [`Connection::close`] was called. Everything that the other
    /// side had said before it went has been handled then.
    pub async fn closed(&self) {
        self.shared().reached(Stage::Gone).await;
    }

    /// Whether the other side is gone or [`Connection::close`] was called.
    pub fn is_closed(&self) -> bool {
        *self.shared().stage.borrow() != Stage::Open
    }

    /// Sends what is queued, and closes the writer, which is the end for the other side. Requests in both
    /// directions end. An other side that does not take what is queued is not waited for long.
    pub async fn close(&self) {
        self.shared().end();
        self.shared().reached(Stage::Flushed).await;
    }
}

/// How far the connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Open,
    /// Nothing more is read or queued.
    Gone,
    /// What was queued is written, or given up, and the writer is closed.
    Flushed,
}

/// Ends the connection when it is dropped.
struct Owner(Arc<Shared>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// What both tasks and every handle know.
struct Shared {
    out: mpsc::Sender<Outgoing>,
    calls: Mutex<Calls>,
    /// The other side's requests that have no answer yet, each with the way to cancel it.
    open: Mutex<HashMap<Value, Arc<Notify>>>,
    stage: watch::Sender<Stage>,
    /// For what cannot wait where it happens.
    runtime: tokio::runtime::Handle,
}

/// Our own requests.
#[derive(Default)]
struct Calls {
    closed: bool,
    last: u64,
    /// Those without an answer. Where nobody waits any more there is no waiter, but an answer is expected.
    waiting: HashMap<u64, Option<Waiter>>,
}

type Waiter = oneshot::Sender<Result<Value, RpcError>>;

/// Whether a request is taken on.
enum Admission {
    /// It is, and this cancels it.
    Open(Arc<Notify>),
    Full,
    /// One of that id is open.
    Twice,
}

impl Shared {
    /// Nothing more is read or queued, and nobody waits for an answer any more.
    fn end(&self) {
        self.stage.send_if_modified(|stage| {
            let open = *stage == Stage::Open;
            if open {
                *stage = Stage::Gone;
            }
            open
        });
        let waiting = {
            let mut calls = self.calls.lock();
            calls.closed = true;
            std::mem::take(&mut calls.waiting)
        };
        // This tells those who wait.
        drop(waiting);
    }

    async fn reached(&self, stage: Stage) {
        let mut stages = self.stage.subscribe();
        // An error would mean that the sender is gone, and it is ours.
        let _ = stages.wait_for(|now| *now >= stage).await;
    }

    fn register(&self, waiter: Waiter) -> Result<u64, RpcError> {
        let mut calls = self.calls.lock();
        if calls.closed {
            return Err(RpcError::closed());
        }
        calls.last += 1;
        let id = calls.last;
        calls.waiting.insert(id, Some(waiter));
        Ok(id)
    }

    /// Hands an answer to whoever waits for it; whether one was expected.
    fn answer(&self, id: &Value, result: Result<Value, RpcError>) -> bool {
        let expected = id.as_u64().and_then(|id| self.calls.lock().waiting.remove(&id));
        let Some(waiter) = expected else { return false };
        if let Some(waiter) = waiter {
            // Somebody who has just stopped waiting misses nothing.
            let _ = waiter.send(result);
        }
        true
    }

    /// Tells the other side that nobody waits for the answer to request `id` any more.
    fn cancel_ours(&self, id: u64) {
        let params = json!({ "requestId": id });
        let message = Outgoing::Notification { method: CANCEL.to_owned(), params: params.into() };
        if let Err(TrySendError::Full(message)) = self.out.try_send(message) {
            let out = self.out.clone();
            self.runtime.spawn(async move {
                // An error means that the other side is gone, and the request with it.
                let _ = out.send(message).await;
            });
        }
    }

    /// Ends the work on a request of the other side; one that has its answer is left alone.
    fn cancel_theirs(&self, id: &Value) {
        if let Some(cancelled) = self.open.lock().get(id) {
            cancelled.notify_one();
        }
    }

    fn admit(&self, id: &Value, most: usize) -> Admission {
        let mut open = self.open.lock();
        if open.contains_key(id) {
            return Admission::Twice;
        }
        if open.len() >= most {
            return Admission::Full;
        }
        let cancelled = Arc::new(Notify::new());
        open.insert(id.clone(), cancelled.clone());
        Admission::Open(cancelled)
    }
}

/// A request of ours that somebody waits for.
struct Call<'a> {
    shared: &'a Shared,
    id: u64,
    /// It is queued or written; before that the other side need not hear that it is cancelled.
    sent: bool,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let waiter = {
            let mut calls = self.shared.calls.lock();
            if self.sent {
                // Its answer may still come and is then no surprise.
                calls.waiting.get_mut(&self.id).and_then(Option::take)
            } else {
                calls.waiting.remove(&self.id).flatten()
            }
        };
        if waiter.is_some() && self.sent {
            self.shared.cancel_ours(self.id);
        }
    }
}

/// Reads until the other side is gone or the connection is closed; then it is over.
async fn read(
    owner: Owner,
    reader: impl AsyncRead + Unpin,
    handler: Arc<dyn Handler>,
    limits: Limits,
) {
    let shared = &owner.0;
    tokio::select! {
        biased;
        () = receive(shared, reader, handler, limits) => {}
        () = shared.reached(Stage::Gone) => {}
    }
}

/// Deals with one line after the other.
async fn receive(
    shared: &Arc<Shared>,
    reader: impl AsyncRead + Unpin,
    handler: Arc<dyn Handler>,
    limits: Limits,
) {
    let mut lines = Lines::new(reader, limits.line_bytes);
    // Dropped with the rest of this: what was asked by somebody who is gone is not worked on.
    let mut requests = JoinSet::new();
    // An error is an end like any other.
    while let Ok(Some(line)) = lines.next().await {
        let line = match line {
            Line::Whole(line) => line.trim_ascii(),
            Line::TooLong { start, length } => {
                let most = limits.line_bytes;
                let why = format!("it has {length} bytes, and a message at most {most}");
                handler.garbage(&shown(start), &why);
                continue;
            }
        };
        if line.is_empty() {
            continue;
        }
        match message::read(line) {
            Ok(Incoming::Notification { method, params }) if method == CANCEL => {
                shared.cancel_theirs(&params["requestId"]);
            }
            Ok(Incoming::Notification { method, params }) => {
                // A panic has been reported where it happened; what comes next is no worse for it.
                let handled = async { handler.notification(method, params).await };
                let _ = AssertUnwindSafe(handled).catch_unwind().await;
            }
            Ok(Incoming::Request { id, method, params }) => {
                while requests.try_join_next().is_some() {}
                match shared.admit(&id, limits.open_requests) {
                    Admission::Open(cancelled) => {
                        let (shared, handler) = (shared.clone(), handler.clone());
                        requests.spawn(serve(shared, handler, cancelled, id, method, params));
                    }
                    Admission::Full => {
                        let most = limits.open_requests;
                        let message = format!("more than {most} requests at a time");
                        let result = Err(RpcError::internal(message));
                        // An error means that the connection is closed.
                        let _ = shared.out.send(Outgoing::Response { id, result }).await;
                    }
                    Admission::Twice => {
                        let why = "a request of the same id has no answer yet";
                        handler.garbage(&shown(line), why);
                    }
                }
            }
            Ok(Incoming::Response { id, result }) => {
                if !shared.answer(&id, result) {
                    handler.garbage(&shown(line), "it answers no request of ours");
                }
            }
            Err(why) => {
                handler.garbage(&shown(line), &why);
                // Whoever waits for it must not wait for ever.
                if let Some(id) = message::answered(line) {
                    let error = RpcError::internal(format!("its answer cannot be read: {why}"));
                    shared.answer(&id, Err(error));
                }
            }
        }
    }
}

/// Works on one request and sends the answer.
async fn serve(
    shared: Arc<Shared>,
    handler: Arc<dyn Handler>,
    cancelled: Arc<Notify>,
    id: Value,
    method: String,
    params: Value,
) {
    let handled = async { handler.request(method, params).await };
    let result = tokio::select! {
        biased;
        () = cancelled.notified() => Err(RpcError::new(RpcError::CANCELLED, "cancelled")),
        handled = AssertUnwindSafe(handled).catch_unwind() => {
            handled.unwrap_or_else(|_| Err(RpcError::internal("internal error")))
        }
    };
    // It counts as open until there is room for its answer: who does not take answers cannot ask for more
    // and more. From then on its id may be used again.
    let Ok(room) = shared.out.reserve().await else { return };
    shared.open.lock().remove(&id);
    room.send(Outgoing::Response { id, result });
}

/// Says that the writer is closed, however that came about.
struct Flushed(Arc<Shared>);

impl Drop for Flushed {
    fn drop(&mut self) {
        self.0.end();
        self.0.stage.send_replace(Stage::Flushed);
    }
}

/// Writes what is queued, until the connection is closed or the other side takes nothing any more.
async fn write(
    shared: Arc<Shared>,
    mut queue: mpsc::Receiver<Outgoing>,
    mut writer: impl AsyncWrite + Unpin,
    limits: Limits,
) {
    let _flushed = Flushed(shared.clone());
    let mut unsent = Vec::new();
    let patience = async {
        shared.reached(Stage::Gone).await;
        tokio::time::sleep(limits.flush_patience).await;
    };
    let written = tokio::select! {
        biased;
        written = send(&shared, &mut queue, &mut writer, &mut unsent, limits) => written,
        () = patience => Ok(()),
    };
    // For a pipe this is what closes it.
    drop(writer);
    queue.close();
    while let Ok(message) = queue.try_recv() {
        unsent.push(message);
    }
    for message in unsent {
        if let Outgoing::Request { id, .. } = message {
            // It did not go out, so it will not be answered.
            shared.calls.lock().waiting.remove(&id);
        }
    }
    if written.is_err() {
        // What it has said before may still be on its way to us, the answers to other requests among it.
        let _ = tokio::time::timeout(limits.broken_grace, shared.reached(Stage::Gone)).await;
    }
}

/// Writes until the connection is closed and nothing is queued. On an error `unsent` has the messages that
/// may not have gone out.
async fn send(
    shared: &Shared,
    queue: &mut mpsc::Receiver<Outgoing>,
    writer: &mut (impl AsyncWrite + Unpin),
    unsent: &mut Vec<Outgoing>,
    limits: Limits,
) -> std::io::Result<()> {
    let mut gone = std::pin::pin!(shared.reached(Stage::Gone));
    let mut closing = false;
    let mut buffer = Vec::new();
    loop {
        tokio::select! {
            biased;
            () = &mut gone, if !closing => {
                closing = true;
                // What is in the queue still comes out of it.
                queue.close();
                continue;
            }
            count = queue.recv_many(unsent, limits.out_queue) => {
                if count == 0 {
                    break;
                }
            }
        }
        for message in unsent.iter() {
            message.write(&mut buffer);
            if buffer.len() >= WRITE_BYTES {
                writer.write_all(&buffer).await?;
                buffer.clear();
            }
        }
        writer.write_all(&buffer).await?;
        writer.flush().await?;
        unsent.clear();
        buffer.clear();
        buffer.shrink_to(KEPT_BYTES);
    }
    writer.shutdown().await
}

#[cfg(test)]
mod tests;
