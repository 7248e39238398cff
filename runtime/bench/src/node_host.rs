//! The thing to compare with: one node process for each extension, with the public SDK from npm.
//!
//! The processes join a small stand-in for the original's host, by the SDK's own protocol: JSON-RPC over
//! standard input and output, a tool call as an event that is answered by a request. The stand-in does
//! nothing else, so that what is measured is the extensions' side.

use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Instant;

use serde_json::Value;
use serde_json::json;
use tenon_console::error::CliError;
use tokio::io::AsyncBufReadExt;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::io::BufReader;
use tokio::process::Child;
use tokio::process::ChildStdin;
use tokio::process::ChildStdout;

use crate::process;

/// The release of the SDK whose contract ours follows.
pub const SDK: &str = "1.0.14";

const PACKAGE: &str = "@github/copilot-sdk";

/// The session that every process joins.
const SESSION: &str = "bench";

/// What an extension's file ends with, so that it is known when it has run to its end.
const READY: &str = "\nprocess.stderr.write(\"ready\\n\");\n";

/// A folder in which node finds the SDK.
#[derive(Debug, Clone)]
pub struct NodeHost {
    folder: PathBuf,
    /// What node says of itself.
    pub version: String,
}

impl NodeHost {
    /// Looks for node, and installs the SDK if it is not there.
    pub fn find(given: Option<&Path>, home: &Path) -> Result<Self, CliError> {
        let version = std::process::Command::new("node")
            .arg("--version")
            .output()
            .map_err(|error| CliError::new(format!("node cannot be started: {error}")))?;
        let folder = given.map_or_else(|| home.join("bench"), Path::to_owned);
        if !folder.join("node_modules").join(PACKAGE).is_dir() {
            install(&folder)?;
        }
        let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
        Ok(Self { folder: std::fs::canonicalize(folder)?, version })
    }

    /// Starts an extension in a process of its own, and lets it join.
    pub async fn start(&self, name: &str, source: &str) -> Result<NodeExtension, CliError> {
        // Beside node_modules, or node would not find the SDK.
        let module = self.folder.join(format!("{name}.mjs"));
        // Several are started at once from the same file, and none may read half of it.
        let mut written = tempfile::NamedTempFile::new_in(&self.folder)?;
        write!(written, "{source}{READY}")?;
        written.persist(&module).map_err(|error| error.error)?;
        NodeExtension::start(&module).await
    }
}

fn install(folder: &Path) -> Result<(), CliError> {
    std::fs::create_dir_all(folder)?;
    let package = format!("{PACKAGE}@{SDK}");
    let installed = std::process::Command::new("npm")
        .args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"])
        .arg(folder)
        .arg(&package)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| CliError::new(format!("npm cannot be started: {error}")))?;
    if !installed.status.success() {
        return Err(CliError::new(format!("npm could not install {package}")));
    }
    Ok(())
}

/// An extension in a node process. Killed when it is dropped.
pub struct NodeExtension {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
    process: Child,
    /// From the start of the process to the end of the extension's file, in milliseconds.
    pub ready_ms: f64,
    /// CPU time of the process until then, in milliseconds.
    pub cpu_ms: f64,
}

impl NodeExtension {
    async fn start(module: &Path) -> Result<Self, CliError> {
        let started = Instant::now();
        let mut process = tokio::process::Command::new("node")
            .arg(module)
            .env("SESSION_ID", SESSION)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| CliError::new(format!("node cannot be started: {error}")))?;
        let (Some(input), Some(output), Some(errors)) =
            (process.stdin.take(), process.stdout.take(), process.stderr.take())
        else {
            return Err(CliError::new("node has no pipes"));
        };
        let output = BufReader::new(output);
        let mut started_one =
            Self { input, output, next: 0, process, ready_ms: f64::NAN, cpu_ms: f64::NAN };
        started_one.join().await?;
        let mut line = String::new();
        BufReader::new(errors).read_line(&mut line).await?;
        if line != "ready\n" {
            return Err(CliError::new(format!("a node extension says {line:?}")));
        }
        started_one.ready_ms = started.elapsed().as_secs_f64() * 1e3;
        started_one.cpu_ms = process::cpu_ms(started_one.pid());
        Ok(started_one)
    }

    /// The number of its process.
    pub fn pid(&self) -> u32 {
        self.process.id().unwrap_or_default()
    }

    /// Answers what it asks until it has joined.
    async fn join(&mut self) -> Result<(), CliError> {
        loop {
            let message = self.receive().await?;
            let result = match message["method"].as_str() {
                Some("connect") => json!({ "ok": true, "protocolVersion": 3, "version": "0" }),
                Some("session.resume") => json!({ "sessionId": SESSION, "capabilities": {} }),
                _ => json!({}),
            };
            self.answer(&message, result).await?;
            if message["method"] == "session.resume" {
                return Ok(());
            }
        }
    }

    /// Calls a tool; what it answers.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, CliError> {
        self.next += 1;
        let request = self.next.to_string();
        let data = json!({
            "requestId": request,
            "sessionId": SESSION,
            "toolCallId": request,
            "toolName": tool,
            "arguments": arguments,
        });
        self.event("external_tool.requested", data).await?;
        loop {
            let mut message = self.receive().await?;
            self.answer(&message, json!({ "success": true })).await?;
            if message["method"] == "session.tools.handlePendingToolCall" {
                let params = message["params"].take();
                if params["requestId"] != request.as_str() || params["result"].is_null() {
                    return Err(CliError::new(format!("a node extension answered {params}")));
                }
                return Ok(params["result"].clone());
            }
        }
    }

    /// Asks a hook, and waits for its answer.
    pub async fn hook(&mut self, hook: &str, input: Value) -> Result<(), CliError> {
        self.next += 1;
        let id = self.next;
        let params = json!({ "sessionId": SESSION, "hookType": hook, "input": input });
        let request =
            json!({ "jsonrpc": "2.0", "id": id, "method": "hooks.invoke", "params": params });
        self.send(&request).await?;
        loop {
            let message = self.receive().await?;
            if message["method"].is_string() {
                self.answer(&message, json!({})).await?;
            } else if message["id"] == id {
                return match message.get("error") {
                    Some(error) => Err(CliError::new(format!("a node hook failed: {error}"))),
                    None => Ok(()),
                };
            }
        }
    }

    /// Tells it of an event.
    pub async fn event(&mut self, kind: &str, data: Value) -> Result<(), CliError> {
        let event = json!({
            "id": "00000000-0000-4000-8000-000000000000",
            "timestamp": "2026-01-01T00:00:00.000Z",
            "parentId": null,
            "type": kind,
            "data": data,
        });
        let params = json!({ "sessionId": SESSION, "event": event });
        let message = json!({ "jsonrpc": "2.0", "method": "session.event", "params": params });
        self.send(&message).await
    }

    async fn answer(&mut self, request: &Value, result: Value) -> Result<(), CliError> {
        if request["id"].is_null() || request["method"].is_null() {
            return Ok(());
        }
        self.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })).await
    }

    async fn send(&mut self, message: &Value) -> Result<(), CliError> {
        let body = message.to_string();
        let message = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        self.input.write_all(message.as_bytes()).await?;
        self.input.flush().await?;
        Ok(())
    }

    async fn receive(&mut self) -> Result<Value, CliError> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).await? == 0 {
                return Err(CliError::new("a node extension ended"));
            }
            match line.trim() {
                "" => break,
                header => {
                    if let Some(value) = header.strip_prefix("Content-Length: ") {
                        length = value.parse().unwrap_or(0);
                    }
                }
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).await?;
        Ok(serde_json::from_slice(&body)?)
    }

    /// Ends its process, and waits for that.
    pub async fn end(mut self) {
        // One that has ended already needs no killing.
        let _ = self.process.kill().await;
    }
}
