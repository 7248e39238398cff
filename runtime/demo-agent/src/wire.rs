//! The demo agent's end of the line: messages go out in order, with garbage between them if that is wanted, and
//! it can be waited for that everything was written.
//!
//! The library's queue of outgoing messages is all there is to keep an order by. So what is no message travels
//! through it as a notification with a name of our own, which is taken out again just before it would be written.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use agent_client_protocol::Client;
use agent_client_protocol::Error;
use agent_client_protocol::Lines;
use agent_client_protocol::UntypedMessage;
use agent_client_protocol::v1::ConnectionTo;
use futures::Sink;
use futures::Stream;
use parking_lot::Mutex;
use parking_lot::MutexGuard;
use serde_json::Value;
use serde_json::json;
use tokio::io::AsyncBufReadExt;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::AsyncWriteExt;
use tokio::io::BufReader;
use tokio::sync::oneshot;

/// A line to be written as it is. Like the next it is never written itself.
const RAW: &str = "_tenon-demo-agent/raw";

/// Says that everything before it was written.
const BARRIER: &str = "_tenon-demo-agent/barrier";

/// Lines that are no messages, as programs print them.
const JUNK: [&str; 5] = [
    "demo agent: starting up",
    "{\"jsonrpc\": \"2.0\", \"method\":",
    "Warning: this is not JSON",
    "\u{1b}[31mnor\u{1b}[0m is this",
    "[1, 2",
];

/// Who waits for what was sent before to be written.
#[derive(Default)]
pub(super) struct Outlet {
    waiting: Mutex<HashMap<u64, oneshot::Sender<()>>>,
    next: AtomicU64,
}

impl Outlet {
    /// Waits until everything that was sent before is written.
    pub(super) async fn drained(&self, cx: &ConnectionTo<Client>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (written, told) = oneshot::channel();
        self.waiting().insert(number, written);
        if ours(cx, BARRIER, json!({ "number": number })).is_ok() {
            let _ = told.await;
        }
    }

    fn reached(&self, number: u64) {
        if let Some(waiter) = self.waiting().remove(&number) {
            // Whoever waited may have been cancelled.
            let _ = waiter.send(());
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<()>>> {
        self.waiting.lock()
    }
}

/// Writes a line that is no message, after everything that was sent before.
pub(super) fn send_raw(cx: &ConnectionTo<Client>, text: &str) -> Result<(), Error> {
    ours(cx, RAW, json!({ "text": text }))
}

fn ours(cx: &ConnectionTo<Client>, method: &str, params: Value) -> Result<(), Error> {
    cx.send_notification(UntypedMessage::new(method, params)?)
}

/// The connection's two directions, line by line. Whoever is deaf never hears that the other side has gone.
pub(super) fn transport<R, W>(
    reader: R,
    writer: W,
    outlet: Arc<Outlet>,
    garbage: bool,
    deaf: bool,
) -> Lines<
    impl Sink<String, Error = io::Error> + Send + 'static,
    impl Stream<Item = io::Result<String>> + Send + 'static,
>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let output = Output { writer, outlet, junk: garbage.then_some(0) };
    let outgoing = futures::sink::unfold(output, |mut output, line: String| async move {
        output.write(&line).await?;
        Ok::<_, io::Error>(output)
    });
    let lines = BufReader::new(reader).lines();
    let incoming = futures::stream::unfold(lines, move |mut lines| async move {
        match lines.next_line().await {
            Ok(Some(line)) => Some((Ok(line), lines)),
            Ok(None) if deaf => std::future::pending().await,
            Ok(None) => None,
            Err(error) => Some((Err(error), lines)),
        }
    });
    Lines::new(outgoing, incoming)
}

/// Where lines go.
struct Output<W> {
    writer: W,
    outlet: Arc<Outlet>,
    /// How many lines of garbage were written, if there is to be garbage.
    junk: Option<usize>,
}

impl<W: AsyncWrite + Unpin> Output<W> {
    async fn write(&mut self, line: &str) -> io::Result<()> {
        if let Some(own) = own_notification(line) {
            match own["method"].as_str() {
                Some(RAW) => {
                    self.line(own["params"]["text"].as_str().unwrap_or_default()).await?;
                }
                _ => self.outlet.reached(own["params"]["number"].as_u64().unwrap_or_default()),
            }
            return Ok(());
        }
        if let Some(written) = self.junk {
            self.line(JUNK[written % JUNK.len()]).await?;
            self.junk = Some(written + 1);
        }
        self.line(line).await
    }

    async fn line(&mut self, text: &str) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(text.len() + 1);
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(b'\n');
        self.writer.write_all(&bytes).await?;
        self.writer.flush().await
    }
}

/// The message in a line, if it is one of our own. Parsing is left to lines that could be one.
fn own_notification(line: &str) -> Option<Value> {
    if !line.contains(RAW) && !line.contains(BARRIER) {
        return None;
    }
    let message: Value = serde_json::from_str(line).ok()?;
    (message["method"] == RAW || message["method"] == BARRIER).then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn written(junk: Option<usize>, lines: &[&str]) -> String {
        let mut output = Output { writer: Vec::new(), outlet: Arc::default(), junk };
        for line in lines {
            output.write(line).await.unwrap();
        }
        String::from_utf8(output.writer).unwrap()
    }

    #[tokio::test]
    async fn a_message_that_only_speaks_of_our_notifications_is_written() {
        let line = json!({ "method": "session/update", "params": { "text": RAW } }).to_string();
        assert_eq!(written(None, &[&line]).await, format!("{line}\n"));
    }

    #[tokio::test]
    async fn raw_text_is_written_as_it_is_and_a_barrier_is_not() {
        let raw = json!({ "method": RAW, "params": { "text": "no {json" } }).to_string();
        let barrier = json!({ "method": BARRIER, "params": { "number": 3 } }).to_string();
        assert_eq!(written(None, &[&raw, &barrier]).await, "no {json\n");
    }

    #[tokio::test]
    async fn garbage_comes_before_every_message_and_is_no_json() {
        let message = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let text = written(Some(0), &[message; JUNK.len()]).await;
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2 * JUNK.len());
        for pair in lines.chunks(2) {
            assert!(serde_json::from_str::<Value>(pair[0]).is_err(), "{}", pair[0]);
            assert_eq!(pair[1], message);
        }
    }
}
