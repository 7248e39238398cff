//! An isolate in another process, as the session sees it.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use serde_json::Value;
use tenon_protocol::control::IsolateId;
use tenon_protocol::control::Order;
use tenon_protocol::limits::MAX_UNSENT_BYTES;
use tenon_protocol::limits::STARVED_GRACE;
use tenon_protocol::limits::TERMINATE_GRACE;
use tenon_protocol::message::EndReason;
use tenon_protocol::message::FromIsolate;
use tenon_protocol::message::LoadSpec;
use tenon_protocol::message::ToIsolate;
use tenon_protocol::slots::Slot;
use tenon_protocol::wire;
use tenon_protocol::wire::Decoder;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::Notify;
use tokio::sync::watch;

use super::process::HostProcess;

/// What is sent to an isolate that does not take it waits in a queue of limited length.
#[derive(Debug, thiserror::Error)]
#[error("it does not take what is sent to it: {} MB wait for it", MAX_UNSENT_BYTES / (1024 * 1024))]
pub struct Unsent;

/// The deepest nesting of a value that can be read again on the other side.
const MAX_DEPTH: usize = 120;

fn is_too_deep(value: &Value, left: usize) -> bool {
    match value {
        Value::Array(values) => {
            left == 0 || values.iter().any(|value| is_too_deep(value, left - 1))
        }
        Value::Object(map) => left == 0 || map.values().any(|value| is_too_deep(value, left - 1)),
        _ => false,
    }
}

/// An isolate in another process. Dropping it ends the isolate without ceremony.
pub struct Remote {
    id: IsolateId,
    host: Arc<HostProcess>,
    link: Arc<Link>,
    ended: watch::Receiver<bool>,
    stop_deadline: Duration,
    /// Whether nobody else lives in its host.
    alone: bool,
}

impl Remote {
    /// Puts an extension into a host. Its messages go to `receive`; the last is `Ended`, also when the host
    /// dies. Must be called inside a tokio runtime.
    pub fn start(
        host: Arc<HostProcess>,
        alone: bool,
        spec: LoadSpec,
        receive: impl Fn(FromIsolate) + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let (reader, writer) = UnixStream::from_std(ours)?.into_split();
        let stop_deadline = Duration::from_millis(spec.limits.stop_deadline_ms);
        let (id, slot) = (host.number(), host.slots.take());
        let order = Order::Start { isolate: id, slot, spec: Box::new(spec) };
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&theirs);
        // A host that is already gone takes no order. Then the reader finds the socket closed, and says how
        // the host died.
        let _ = host.order_with(order, Some(descriptor));
        drop(theirs);
        host.one_starts();
        let link = Arc::new(Link { writer, queue: Mutex::default(), more: Notify::new() });
        tokio::spawn(link.clone().flush());
        let (end, ended) = watch::channel(false);
        tokio::spawn(read(reader, host.clone(), slot, receive, link.clone(), end));
        Ok(Self { id, host, link, ended, stop_deadline, alone })
    }

    /// Sends a message. An isolate that has ended ignores it.
    pub fn send(&self, message: &ToIsolate) -> Result<(), Unsent> {
        let too_deep;
        let message = match message {
            ToIsolate::Answer { request, result: Ok(value) } if is_too_deep(value, MAX_DEPTH) => {
                let result = Err("the answer is nested too deep to be passed on".to_owned());
                too_deep = ToIsolate::Answer { request: *request, result };
                &too_deep
            }
            message => message,
        };
        match wire::encode(message) {
            Ok(frame) => self.link.send(&frame),
            // Longer than all that may wait.
            Err(_) => Err(Unsent),
        }
    }

    /// Lets the extension say goodbye, and ends it; by force when it does not answer.
    pub fn stop(&self) -> impl Future<Output = ()> + Send + 'static {
        // A full queue means that it takes nothing, also not this; it is then ended by force.
        let _ = self.send(&ToIsolate::Stop);
        self.host.order(Order::ExpectEnd { isolate: self.id });
        // The host waits for its patience, twice where it has to use force.
        let patience = (self.stop_deadline + TERMINATE_GRACE) * 2 + STARVED_GRACE;
        let mut ended = self.ended.clone();
        async move {
            // An error means that nobody listens any more, which is what we wait for. One that hangs in a
            // system call does not end; nobody waits for it.
            let _ = tokio::time::timeout(patience, ended.wait_for(|ended| *ended)).await;
        }
    }

    pub fn hold_start(&self, held: bool) {
        self.host.order(Order::HoldStart { isolate: self.id, held });
    }

    pub fn terminate(&self, reason: &str) {
        let reason = reason.to_owned();
        self.host.order(Order::Terminate { isolate: self.id, reason });
    }

    pub fn host(&self) -> &Arc<HostProcess> {
        &self.host
    }

    pub fn id(&self) -> IsolateId {
        self.id
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.link.close();
        if self.alone {
            // Also one that cannot be interrupted ends then.
            self.host.end();
        } else if !*self.ended.borrow() {
            self.terminate("nobody needs it any more");
        }
    }
}

/// The way to an isolate: what its socket does not take at once waits, and a task sends it on.
struct Link {
    writer: OwnedWriteHalf,
    queue: Mutex<Queue>,
    more: Notify,
}

#[derive(Default)]
struct Queue {
    bytes: std::collections::VecDeque<u8>,
    closed: bool,
}

impl Link {
    fn queue(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, frame: &[u8]) -> Result<(), Unsent> {
        let mut queue = self.queue();
        if queue.closed {
            return Ok(());
        }
        let mut sent = 0;
        if queue.bytes.is_empty() {
            // What goes wrong here goes wrong for the task too, which notices.
            sent = self.writer.try_write(frame).unwrap_or(0);
        } else if queue.bytes.len() + frame.len() > MAX_UNSENT_BYTES {
            return Err(Unsent);
        }
        if sent < frame.len() {
            queue.bytes.extend(&frame[sent..]);
            self.more.notify_one();
        }
        Ok(())
    }

    /// Takes nothing more; what waits is forgotten.
    fn close(&self) {
        let mut queue = self.queue();
        queue.closed = true;
        queue.bytes = Default::default();
        self.more.notify_one();
    }

    /// Sends what waits, as the isolate takes it.
    async fn flush(self: Arc<Self>) {
        loop {
            self.more.notified().await;
            loop {
                {
                    let mut queue = self.queue();
                    if queue.closed {
                        return;
                    }
                    if queue.bytes.is_empty() {
                        queue.bytes.shrink_to(64 * 1024);
                        break;
                    }
                    match self.writer.try_write(queue.bytes.as_slices().0) {
                        Ok(count) => {
                            queue.bytes.drain(..count);
                            continue;
                        }
                        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                        Err(_) => {
                            queue.closed = true;
                            return;
                        }
                    }
                }
                if self.writer.writable().await.is_err() {
                    return self.close();
                }
            }
        }
    }
}

/// Takes what an isolate says until its socket is closed.
async fn read(
    mut reader: OwnedReadHalf,
    host: Arc<HostProcess>,
    slot: Slot,
    receive: impl Fn(FromIsolate) + Send + Sync + 'static,
    link: Arc<Link>,
    end: watch::Sender<bool>,
) {
    let mut decoder = Decoder::default();
    let mut last_word = false;
    let problem = loop {
        match decoder.take::<FromIsolate>() {
            Ok(Some(message)) => {
                last_word = matches!(message, FromIsolate::Ended(_));
                receive(message);
                if last_word {
                    break None;
                }
                continue;
            }
            Ok(None) => {}
            Err(error) => break Some(error.to_string()),
        }
        match reader.read_buf(decoder.room()).await {
            Ok(0) | Err(_) => break None,
            Ok(_) => {}
        }
    };
    link.close();
    if !last_word {
        receive(FromIsolate::Ended(cause(&host, slot, problem).await));
    }
    host.slots.give_back(slot);
    host.one_ended();
    end.send_replace(true);
}

/// Why an isolate's socket was closed without its last word.
async fn cause(host: &HostProcess, slot: Slot, problem: Option<String>) -> EndReason {
    if let Some(problem) = problem {
        return EndReason::Terminated { reason: problem };
    }
    tokio::select! {
        death = host.died() => {
            EndReason::HostDied { how: death.how, running: death.running.contains(&slot) }
        }
        // A host that answers has lost only the isolate.
        () = host.answers() => {
            EndReason::Terminated { reason: "its thread ended without a word".to_owned() }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_nested_too_deep_is_noticed() {
        let mut value = Value::Null;
        for _ in 0..MAX_DEPTH {
            value = json!([{ "x": value }]);
        }
        assert!(is_too_deep(&value, MAX_DEPTH));
        assert!(!is_too_deep(&json!([[{ "x": 1 }]]), MAX_DEPTH));
    }
}
