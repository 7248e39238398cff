//! `tenon-bench acp`: what `tenon acp` adds to every `session/update` of an agent.
//!
//! The same client and the same agent, once directly and once with Tenon between them, in turns. The agent
//! says the time of the system's clock in each update, so that how long every single one took is known.

use parking_lot::Mutex;
use std::path::Path;
use std::pin::Pin;
use std::process::ExitCode;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::task::Context;
use std::task::Poll;
use std::time::Instant;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;
use serde_json::json;
use tenon_acp::rpc::Connection;
use tenon_acp::rpc::Handler;
use tenon_acp::rpc::RpcError;
use tenon_console::error::CliError;
use tenon_console::output;
use tenon_console::output::BOLD;
use tenon_console::output::DIM;
use tenon_console::output::Progress;
use tenon_console::output::Table;
use tokio::io::AsyncRead;
use tokio::io::ReadBuf;
use tokio::process::Child;

use crate::args::Args;
use crate::args::BenchAcp;
use crate::tenon::Tenon;

/// How often the two routes take turns.
const ROUNDS: usize = 5;

/// The length of an update's text in a flood, in bytes: a few words, as agents stream them.
const FLOOD_BYTES: usize = 60;

/// One of the two routes.
#[derive(Debug, Clone, Serialize)]
struct Case {
    case: String,
    updates: usize,
    /// From the agent's clock to the client's handler, one update at a time.
    p50_us: f64,
    p99_us: f64,
    /// Updates per second when they come as fast as they can.
    per_second: f64,
    /// Of a line on the client's side.
    bytes_per_update: f64,
}

pub async fn run(args: &Args, tenon: &Tenon, bench: &BenchAcp) -> Result<ExitCode, CliError> {
    let folder = tempfile::tempdir()?;
    let mut direct = Route::start(tenon, folder.path(), &["demo-agent"]).await?;
    let mut through = Route::start(tenon, folder.path(), &["acp", "-a", "demo"]).await?;
    let progress = Progress::start("measuring updates ...");
    for _ in 0..ROUNDS {
        for route in [&mut direct, &mut through] {
            route.measure(bench.updates.div_ceil(ROUNDS), bench.flood.div_ceil(ROUNDS)).await?;
        }
    }
    drop(progress);
    let cases = [direct.end("client and agent").await, through.end("tenon acp between them").await];
    if args.json {
        output::json(&cases)?;
    } else {
        print(&cases);
    }
    Ok(ExitCode::SUCCESS)
}

fn print(cases: &[Case; 2]) {
    let mut table = Table::new(&["CASE", ">P50 us", ">P99 us", ">UPDATES/s", ">BYTES EACH"]);
    let plain = anstyle::Style::new();
    for case in cases {
        table.row(vec![
            (case.case.clone(), BOLD),
            (format!("{:.0}", case.p50_us), plain),
            (format!("{:.0}", case.p99_us), plain),
            (format!("{:.0}", case.per_second), plain),
            (format!("{:.0}", case.bytes_per_update), plain),
        ]);
    }
    table.print();
    let [direct, through] = cases;
    output::line(format_args!(
        "{DIM}added: {:.0} us at p50, {:.0} us at p99, {:+.0} bytes for each update{DIM:#}",
        through.p50_us - direct.p50_us,
        through.p99_us - direct.p99_us,
        through.bytes_per_update - direct.bytes_per_update
    ));
}

/// A client and what it is connected to: the agent, or the proxy before it.
struct Route {
    child: Child,
    connection: Connection,
    client: Arc<Client>,
    bytes: Arc<AtomicU64>,
    session: String,
    delays: Vec<f64>,
    flooded: (usize, f64, u64),
}

/// Notes when each update arrives.
#[derive(Default)]
struct Client {
    delays: Mutex<Vec<f64>>,
}

#[async_trait]
impl Handler for Client {
    async fn notification(&self, _method: String, params: Value) {
        let update = &params["update"];
        let stamp = update["content"]["text"].as_str().and_then(|text| text.parse::<u64>().ok());
        if let Some(stamp) = stamp {
            let delay = (clock_ns().saturating_sub(stamp)) as f64 / 1e3;
            self.delays.lock().push(delay);
        }
    }

    async fn request(&self, method: String, _params: Value) -> Result<Value, RpcError> {
        Err(RpcError::method_not_found(&method))
    }
}

/// The system's clock that only goes forward, in nanoseconds: the same for every process.
fn clock_ns() -> u64 {
    tenon_demo_agent::clock_ns()
}

impl Route {
    async fn start(tenon: &Tenon, folder: &Path, command: &[&str]) -> Result<Self, CliError> {
        let mut child = tokio::process::Command::new(tenon.program())
            .args(command)
            .current_dir(folder)
            .env("TENON_HOME", folder.join("home"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(CliError::new("the agent has no input or no output"));
        };
        let client = Arc::new(Client::default());
        let bytes = Arc::new(AtomicU64::new(0));
        let counted = Counted { inner: stdout, bytes: bytes.clone() };
        let connection = Connection::new(counted, stdin, client.clone());
        let ask = async |method: &str, params: Value| {
            let answer = connection.request(method, params).await;
            answer.map_err(|error| CliError::new(format!("{method}: {error}")))
        };
        let hello = json!({ "protocolVersion": 1, "clientCapabilities": {} });
        ask("initialize", hello).await?;
        let opened = ask("session/new", json!({ "cwd": folder, "mcpServers": [] })).await?;
        let session = opened["sessionId"].as_str().unwrap_or_default().to_owned();
        let (delays, flooded) = (Vec::new(), (0, 0.0, 0));
        Ok(Self { child, connection, client, bytes, session, delays, flooded })
    }

    async fn prompt(&self, text: String) -> Result<(), CliError> {
        let prompt = json!([{ "type": "text", "text": text }]);
        let params = json!({ "sessionId": self.session, "prompt": prompt });
        let answer = self.connection.request("session/prompt", params).await;
        answer.map(drop).map_err(|error| CliError::new(format!("session/prompt: {error}")))
    }

    /// Updates one at a time, then many at once.
    async fn measure(&mut self, updates: usize, flood: usize) -> Result<(), CliError> {
        self.prompt(format!("@clock {updates} 1")).await?;
        let told = std::mem::take(&mut *self.client.delays.lock());
        self.delays.extend(told);
        let (before, began) = (self.bytes.load(Ordering::Relaxed), Instant::now());
        self.prompt(format!("@flood {flood} {FLOOD_BYTES}")).await?;
        self.flooded.0 += flood;
        self.flooded.1 += began.elapsed().as_secs_f64();
        self.flooded.2 += self.bytes.load(Ordering::Relaxed) - before;
        Ok(())
    }

    async fn end(mut self, case: &str) -> Case {
        self.connection.close().await;
        let _ = self.child.wait().await;
        self.delays.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = (self.delays.len() as f64 * share) as usize;
            self.delays.get(place.min(self.delays.len().saturating_sub(1))).copied().unwrap_or(0.0)
        };
        let (updates, seconds, bytes) = self.flooded;
        Case {
            case: case.to_owned(),
            updates: self.delays.len(),
            p50_us: at(0.5),
            p99_us: at(0.99),
            per_second: updates as f64 / seconds,
            bytes_per_update: bytes as f64 / updates as f64,
        }
    }
}

/// A reader that counts.
struct Counted<R> {
    inner: R,
    bytes: Arc<AtomicU64>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Counted<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, buffer);
        let read = (buffer.filled().len() - before) as u64;
        self.bytes.fetch_add(read, Ordering::Relaxed);
        polled
    }
}
