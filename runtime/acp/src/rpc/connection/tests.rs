//! A connection against an other end by hand, and against another connection.

use async_trait::async_trait;
use tokio::io::AsyncBufReadExt;
use tokio::io::BufReader;
use tokio::io::DuplexStream;
use tokio::io::ReadHalf;
use tokio::io::WriteHalf;
use tokio::sync::Semaphore;

use super::*;

/// What the pipe between both ends holds, in bytes.
const PIPE: usize = 64 * 1024;

/// Long enough for whatever is waited for in vain to be a mistake.
const FOREVER: Duration = Duration::from_secs(600);

/// Does what the methods' names say, and reports what happens.
struct Scripted {
    events: mpsc::UnboundedSender<String>,
    gate: Arc<Semaphore>,
}

impl Scripted {
    fn report(&self, event: String) {
        let _ = self.events.send(event);
    }
}

/// Reports that it was dropped.
struct Dropped(mpsc::UnboundedSender<String>, String);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(format!("dropped {}", self.1));
    }
}

#[async_trait]
impl Handler for Scripted {
    async fn notification(&self, method: String, params: Value) {
        match method.as_str() {
            "panic" => panic!("as asked"),
            "slow" => {
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
            }
            "gate" => {
                self.report("began gate".into());
                self.gate.acquire().await.unwrap().forget();
            }
            _ => {}
        }
        self.report(format!("{method} {params}"));
    }

    async fn request(&self, method: String, params: Value) -> Result<Value, RpcError> {
        match method.as_str() {
            "echo" => Ok(params),
            "hang" => {
                let _dropped = Dropped(self.events.clone(), format!("hang {params}"));
                self.report(format!("began hang {params}"));
                std::future::pending().await
            }
            "panic" => panic!("as asked"),
            other => Err(RpcError::method_not_found(other)),
        }
    }

    fn garbage(&self, line: &str, why: &str) {
        self.report(format!("garbage {line}: {why}"));
    }
}

/// The other end, by hand.
struct Peer {
    lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

impl Peer {
    async fn write(&mut self, bytes: &[u8]) {
        self.writer.write_all(bytes).await.unwrap();
    }

    async fn send(&mut self, message: Value) {
        self.write(format!("{message}\n").as_bytes()).await;
    }

    async fn request(&mut self, id: Value, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
    }

    async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    async fn hear(&mut self) -> Option<Value> {
        let line = self.lines.next_line().await.unwrap()?;
        Some(serde_json::from_str(&line).unwrap())
    }
}

/// What the handler reports.
struct Events(mpsc::UnboundedReceiver<String>);

impl Events {
    async fn next(&mut self) -> String {
        self.0.recv().await.unwrap()
    }

    /// All that have happened.
    fn so_far(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.0.try_recv().ok()).collect()
    }
}

fn scripted() -> (Arc<Scripted>, Events) {
    let (events, seen) = mpsc::unbounded_channel();
    (Arc::new(Scripted { events, gate: Arc::new(Semaphore::new(0)) }), Events(seen))
}

/// A connection over a pipe of `pipe` bytes.
fn narrow(pipe: usize, limits: Limits) -> (Connection, Peer, Events, Arc<Semaphore>) {
    let (ours, theirs) = tokio::io::duplex(pipe);
    let (reader, writer) = tokio::io::split(ours);
    let (handler, events) = scripted();
    let gate = handler.gate.clone();
    let connection = Connection::with_limits(reader, writer, handler, limits);
    let (reader, writer) = tokio::io::split(theirs);
    (connection, Peer { lines: BufReader::new(reader).lines(), writer }, events, gate)
}

fn limited(limits: Limits) -> (Connection, Peer, Events) {
    let (connection, peer, events, _) = narrow(PIPE, limits);
    (connection, peer, events)
}

fn start() -> (Connection, Peer, Events) {
    limited(Limits::default())
}

/// Two connections that talk to each other.
fn pair(left: Arc<dyn Handler>, right: Arc<dyn Handler>) -> (Connection, Connection) {
    let (one, other) = tokio::io::duplex(PIPE);
    let (reader, writer) = tokio::io::split(one);
    let left = Connection::new(reader, writer, left);
    let (reader, writer) = tokio::io::split(other);
    (left, Connection::new(reader, writer, right))
}

#[tokio::test]
async fn an_answer_is_delivered_after_every_notification_before_it() {
    let (connection, mut peer, mut events) = start();
    let asked = async {
        let answer = connection.request("ask", json!({ "a": 1 })).await;
        (answer, events.so_far())
    };
    let answered = async {
        let request = peer.hear().await.unwrap();
        assert_eq!(request["method"], "ask");
        assert_eq!(request["params"], json!({ "a": 1 }));
        for number in 0..20 {
            peer.notify("slow", json!(number)).await;
        }
        peer.send(json!({ "jsonrpc": "2.0", "id": request["id"], "result": "done" })).await;
    };
    let ((answer, seen), ()) = tokio::join!(asked, answered);
    assert_eq!(answer, Ok(json!("done")));
    let expected: Vec<_> = (0..20).map(|number| format!("slow {number}")).collect();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_handler_that_waits_stops_the_reader_and_then_the_sender() {
    let (_connection, mut peer, mut events, gate) = narrow(PIPE, Limits::default());
    peer.notify("gate", json!(0)).await;
    let sent = tokio::spawn(async move {
        let padding = "x".repeat(1024);
        for number in 1..=1024 {
            peer.notify("gate", json!([number, padding])).await;
        }
        peer
    });
    assert_eq!(events.next().await, "began gate");
    // On one thread everybody has had a turn after this.
    for _ in 0..10_000 {
        tokio::task::yield_now().await;
    }
    assert!(!sent.is_finished(), "a megabyte was taken although nobody handles it");
    assert!(events.so_far().is_empty());
    gate.add_permits(1025);
    let _peer = sent.await.unwrap();
    assert_eq!(events.next().await, "gate 0");
    for number in 1..=1024 {
        assert_eq!(events.next().await, "began gate");
        assert!(events.next().await.starts_with(&format!("gate [{number},")));
    }
}

#[tokio::test]
async fn a_line_that_is_no_message_is_reported_and_skipped() {
    let (_connection, mut peer, mut events) = start();
    let lines: [(&[u8], &str); 8] = [
        (b"Starting up...", "not a JSON object"),
        (b"[{\"method\":\"m\"}]", "not a JSON object"),
        (b"42", "not a JSON object"),
        (b"{\"level\":30,\"msg\":\"hi\"}", "neither a method nor an id"),
        (b"{\"method\":\"m\"", "EOF"),
        (b"{\"method\":\"\xFF\xFE\"}", "invalid unicode"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":1}", "answers no request of ours"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":1}", "answers no request of ours"),
    ];
    for (line, why) in lines {
        peer.write(line).await;
        peer.write(b"\n").await;
        let event = events.next().await;
        let start = format!("garbage {}: ", String::from_utf8_lossy(line));
        assert!(event.starts_with(&start), "{event}");
        assert!(event.contains(why), "{event}");
    }
    peer.write(b"\n\r\n  \n\t{\"method\":\"fine\"} \r\n").await;
    assert_eq!(events.next().await, "fine null");
    peer.request(json!(1), "echo", json!("alive")).await;
    assert_eq!(peer.hear().await.unwrap()["result"], "alive");
    assert!(events.so_far().is_empty());
}

#[tokio::test]
async fn a_line_over_the_limit_is_skipped_and_reported() {
    let longest = r#"{"method":"fits","params":[]}"#;
    let limits = Limits { line_bytes: longest.len(), ..Limits::default() };
    let (_connection, mut peer, mut events) = limited(limits);
    peer.write(format!("{longest}\n{longest} \n").as_bytes()).await;
    assert_eq!(events.next().await, "fits []");
    let why =
        format!("it has {} bytes, and a message at most {}", longest.len() + 1, longest.len());
    assert_eq!(events.next().await, format!("garbage {longest} : {why}"));
    peer.write("x".repeat(100_000).as_bytes()).await;
    peer.write(format!("\n{longest}\n").as_bytes()).await;
    let event = events.next().await;
    assert!(
        event.starts_with(&format!("garbage {}: it has 100000 bytes", "x".repeat(200))),
        "{event}"
    );
    assert_eq!(events.next().await, "fits []");
    // Also one that never ends.
    peer.write("y".repeat(1000).as_bytes()).await;
    drop(peer);
    assert!(events.next().await.starts_with("garbage yyy"));
}

#[tokio::test]
async fn a_request_is_dropped_when_the_other_side_cancels_it() {
    let (_connection, mut peer, mut events) = start();
    peer.request(json!("a"), "hang", json!(1)).await;
    peer.request(json!(2), "hang", json!(2)).await;
    assert_eq!(events.next().await, "began hang 1");
    assert_eq!(events.next().await, "began hang 2");
    peer.notify(CANCEL, json!({ "requestId": "unknown" })).await;
    peer.notify(CANCEL, Value::Null).await;
    peer.notify(CANCEL, json!({ "requestId": "a" })).await;
    assert_eq!(events.next().await, "dropped hang 1");
    let answer = peer.hear().await.unwrap();
    assert_eq!(answer["id"], "a");
    assert_eq!(answer["error"]["code"], RpcError::CANCELLED);
    // The id is free again, and the other request is still open.
    peer.request(json!("a"), "echo", json!("again")).await;
    assert_eq!(peer.hear().await.unwrap()["result"], "again");
    assert!(events.so_far().is_empty());
}

#[tokio::test]
async fn dropping_a_request_of_ours_cancels_it_at_the_other_side() {
    let (connection, mut peer, mut events) = start();
    let mut call = Box::pin(connection.request("ask", Value::Null));
    let request = tokio::select! {
        answer = &mut call => panic!("{answer:?}"),
        request = peer.hear() => request.unwrap(),
    };
    drop(call);
    let cancel = peer.hear().await.unwrap();
    assert_eq!(cancel["method"], CANCEL);
    assert_eq!(cancel["params"], json!({ "requestId": request["id"] }));
    assert!(cancel.get("id").is_none());
    // An answer that was on its way is expected, once.
    for _ in 0..2 {
        peer.send(json!({ "id": request["id"], "result": null })).await;
    }
    assert!(events.next().await.contains("answers no request of ours"));
    peer.notify("next", Value::Null).await;
    assert_eq!(events.next().await, "next null");
}

#[tokio::test]
async fn a_request_that_did_not_go_out_is_not_cancelled_at_the_other_side() {
    let limits = Limits { out_queue: 1, ..Limits::default() };
    let (connection, mut peer, _events, _) = narrow(16, limits);
    // One is being written, one waits in the queue, and the third waits for room.
    let mut calls: Vec<_> =
        (0..3).map(|number| Box::pin(connection.request("ask", json!(number)))).collect();
    for _ in 0..100 {
        for call in &mut calls {
            assert!(futures::poll!(call.as_mut()).is_pending());
        }
        tokio::task::yield_now().await;
    }
    drop(calls.pop());
    let mut heard = Vec::new();
    for _ in 0..2 {
        heard.push(peer.hear().await.unwrap()["params"].clone());
    }
    assert_eq!(heard, [json!(0), json!(1)]);
    connection.notify("last", Value::Null).await.unwrap();
    assert_eq!(peer.hear().await.unwrap()["method"], "last");
}

#[tokio::test]
async fn requests_end_when_the_other_side_goes() {
    let (connection, mut peer, mut events) = start();
    peer.request(json!(1), "hang", Value::Null).await;
    assert_eq!(events.next().await, "began hang null");
    let asked = connection.request("ask", Value::Null);
    let leaving = async {
        peer.hear().await.unwrap();
        drop(peer);
    };
    let (answer, ()) = tokio::join!(asked, leaving);
    assert!(answer.unwrap_err().is_closed());
    assert!(connection.is_closed());
    connection.closed().await;
    assert_eq!(events.next().await, "dropped hang null");
    assert!(connection.request("ask", Value::Null).await.unwrap_err().is_closed());
    assert!(connection.notify("tell", Value::Null).await.unwrap_err().is_closed());
    connection.close().await;
}

#[tokio::test]
async fn what_was_said_before_the_end_is_handled_before_the_end_is_known() {
    let (connection, mut peer, mut events) = start();
    for number in 0..50 {
        peer.notify("slow", json!(number)).await;
    }
    drop(peer);
    connection.closed().await;
    assert_eq!(events.so_far().len(), 50);
}

#[tokio::test]
async fn closing_sends_what_is_queued_and_then_the_end() {
    let limits = Limits { flush_patience: FOREVER, ..Limits::default() };
    let (connection, mut peer, _events, _) = narrow(16, limits);
    for number in 0..100 {
        connection.notify("tell", json!([number])).await.unwrap();
    }
    let asked = {
        let connection = connection.clone();
        tokio::spawn(async move { connection.request("ask", Value::Null).await })
    };
    let heard = tokio::spawn(async move {
        let mut heard = Vec::new();
        while let Some(message) = peer.hear().await {
            heard.push(message);
        }
        heard
    });
    tokio::task::yield_now().await;
    connection.close().await;
    assert!(connection.is_closed());
    assert!(asked.await.unwrap().unwrap_err().is_closed());
    let heard = heard.await.unwrap();
    for (number, message) in heard.iter().take(100).enumerate() {
        assert_eq!(message["params"], json!([number]));
    }
    assert!(heard.len() >= 100);
    // Once more changes nothing.
    connection.close().await;
}

#[tokio::test]
async fn closing_does_not_wait_for_one_who_takes_nothing() {
    let limits =
        Limits { out_queue: 1, flush_patience: Duration::from_millis(1), ..Limits::default() };
    let (connection, _peer, _events, _) = narrow(16, limits);
    let teller = connection.clone();
    let refused = tokio::spawn(async move {
        loop {
            if let Err(error) = teller.notify("tell", Value::Null).await {
                return error;
            }
        }
    });
    tokio::task::yield_now().await;
    connection.close().await;
    assert!(refused.await.unwrap().is_closed());
}

#[tokio::test]
async fn dropping_the_last_clone_is_the_end_for_the_other_side() {
    let (connection, mut peer, _events) = start();
    let clone = connection.clone();
    drop(connection);
    clone.notify("tell", Value::Null).await.unwrap();
    drop(clone);
    assert_eq!(peer.hear().await.unwrap()["method"], "tell");
    assert_eq!(peer.hear().await, None);
}

#[tokio::test]
async fn the_id_of_a_request_comes_back_as_it_was() {
    let (_connection, mut peer, _events) = start();
    for id in
        [json!("abc"), json!(""), json!("7"), json!(7), json!(-1), json!(1.5), json!(u64::MAX)]
    {
        peer.request(id.clone(), "echo", json!({ "x": id })).await;
        let expected = json!({ "jsonrpc": "2.0", "id": id, "result": { "x": id } });
        assert_eq!(peer.hear().await, Some(expected));
    }
    peer.request(json!("no"), "no/such", Value::Null).await;
    let answer = peer.hear().await.unwrap();
    assert_eq!(answer["error"]["code"], RpcError::METHOD_NOT_FOUND);
    assert_eq!(answer["id"], "no");
}

#[tokio::test]
async fn answers_find_their_requests_in_any_order() {
    let (connection, mut peer, _events) = start();
    let calls: Vec<_> = (0..10)
        .map(|number| {
            let connection = connection.clone();
            tokio::spawn(async move { connection.request("ask", json!(number)).await })
        })
        .collect();
    let mut requests = Vec::new();
    for _ in 0..10 {
        requests.push(peer.hear().await.unwrap());
    }
    for request in requests.iter().rev() {
        let id = &request["id"];
        if request["params"] == json!(3) {
            peer.send(json!({ "id": id, "error": { "code": 5, "message": "three" } })).await;
        } else {
            peer.send(json!({ "id": id, "result": request["params"] })).await;
        }
    }
    for (number, call) in calls.into_iter().enumerate() {
        let answer = call.await.unwrap();
        match number {
            3 => assert_eq!(answer, Err(RpcError::new(5, "three"))),
            _ => assert_eq!(answer, Ok(json!(number))),
        }
    }
}

#[tokio::test]
async fn more_requests_at_a_time_than_allowed_are_refused() {
    let limits = Limits { open_requests: 2, ..Limits::default() };
    let (_connection, mut peer, mut events) = limited(limits);
    for id in 1..=3 {
        peer.request(json!(id), "hang", json!(id)).await;
    }
    let answer = peer.hear().await.unwrap();
    assert_eq!(answer["id"], 3);
    assert_eq!(answer["error"]["code"], RpcError::INTERNAL);
    assert_eq!(answer["error"]["message"], "more than 2 requests at a time");
    assert_eq!(events.next().await, "began hang 1");
    assert_eq!(events.next().await, "began hang 2");
    peer.notify(CANCEL, json!({ "requestId": 1 })).await;
    assert_eq!(peer.hear().await.unwrap()["id"], 1);
    peer.request(json!(4), "echo", json!("room")).await;
    assert_eq!(peer.hear().await.unwrap()["result"], "room");
}

#[tokio::test]
async fn an_id_that_is_in_use_is_not_taken_twice() {
    let (_connection, mut peer, mut events) = start();
    peer.request(json!(1), "hang", Value::Null).await;
    assert_eq!(events.next().await, "began hang null");
    peer.request(json!(1), "echo", Value::Null).await;
    assert!(events.next().await.contains("a request of the same id has no answer yet"));
    peer.request(json!(2), "echo", Value::Null).await;
    assert_eq!(peer.hear().await.unwrap()["id"], 2);
}

#[tokio::test]
async fn a_message_of_ten_megabytes_passes_both_ways() {
    let (left, right) = pair(scripted().0, scripted().0);
    let text = "0123456789\n".repeat(1024 * 1024);
    let answer = left.request("echo", json!({ "text": text })).await.unwrap();
    assert!(answer["text"] == text);
    let answer = right.request("echo", json!("small")).await.unwrap();
    assert_eq!(answer, json!("small"));
}

#[tokio::test]
async fn a_handler_that_panics_fails_the_request_and_nothing_else() {
    let (_connection, mut peer, mut events) = start();
    peer.request(json!(1), "panic", Value::Null).await;
    let answer = peer.hear().await.unwrap();
    assert_eq!(answer["id"], 1);
    assert_eq!(answer["error"]["code"], RpcError::INTERNAL);
    peer.notify("panic", Value::Null).await;
    peer.notify("after", Value::Null).await;
    assert_eq!(events.next().await, "after null");
    peer.request(json!(1), "echo", json!("alive")).await;
    assert_eq!(peer.hear().await.unwrap()["result"], "alive");
}

/// A connection whose other side takes nothing, and by which way it still talks.
fn deaf(broken_grace: Duration) -> (Connection, DuplexStream, Events) {
    let (reader, theirs) = tokio::io::duplex(PIPE);
    let (writer, taken) = tokio::io::duplex(PIPE);
    drop(taken);
    let (handler, events) = scripted();
    let limits = Limits { broken_grace, ..Limits::default() };
    (Connection::with_limits(reader, writer, handler, limits), theirs, events)
}

#[tokio::test]
async fn one_who_takes_nothing_any_more_is_still_heard_out() {
    let (connection, mut theirs, mut events) = deaf(FOREVER);
    assert!(connection.request("ask", Value::Null).await.unwrap_err().is_closed());
    assert!(!connection.is_closed());
    assert!(connection.request("ask", Value::Null).await.unwrap_err().is_closed());
    theirs.write_all(b"{\"method\":\"last\"}\n{\"method\":\"words\"}").await.unwrap();
    drop(theirs);
    connection.closed().await;
    assert_eq!(events.so_far(), ["last null", "words null"]);
}

#[tokio::test]
async fn one_who_takes_nothing_and_says_nothing_is_given_up() {
    let (connection, _theirs, _events) = deaf(Duration::from_millis(1));
    assert!(connection.request("ask", Value::Null).await.unwrap_err().is_closed());
    connection.closed().await;
    connection.close().await;
}

/// Passes everything on to another connection.
struct Forward(tokio::sync::OnceCell<Connection>);

#[async_trait]
impl Handler for Forward {
    async fn notification(&self, method: String, params: Value) {
        self.0.get().unwrap().notify(&method, params).await.unwrap();
    }

    async fn request(&self, method: String, params: Value) -> Result<Value, RpcError> {
        self.0.get().unwrap().request(&method, params).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_of_two_connections_keeps_content_and_order() {
    let (to_client, from_client) =
        (Arc::new(Forward(Default::default())), Arc::new(Forward(Default::default())));
    let (handler, mut events) = scripted();
    let (agent, inner) = pair(scripted().0, to_client.clone());
    let (outer, client) = pair(from_client.clone(), handler);
    assert!(to_client.0.set(outer).is_ok());
    assert!(from_client.0.set(inner).is_ok());
    let update =
        |number: usize| json!({ "zeta": number, "_meta": { "b": [1.5, null], "a": "é\n" } });
    let told = async {
        for number in 0..5_000 {
            agent.notify("session/update", update(number)).await.unwrap();
        }
    };
    let heard = async {
        for number in 0..5_000 {
            assert_eq!(events.next().await, format!("session/update {}", update(number)));
        }
    };
    tokio::join!(told, heard);
    assert_eq!(client.request("echo", update(1)).await, Ok(update(1)));
    // Whoever gives up at one end is followed at the other.
    let mut call = Box::pin(agent.request("hang", json!(1)));
    tokio::select! {
        answer = &mut call => panic!("{answer:?}"),
        event = events.next() => assert_eq!(event, "began hang 1"),
    }
    drop(call);
    assert_eq!(events.next().await, "dropped hang 1");
}
