//! What the demo agent wants from its client beyond what every agent does, and what no client knows.

use agent_client_protocol::Error;
use agent_client_protocol::UntypedMessage;
use agent_client_protocol::v1::schema::CreateTerminalRequest;
use agent_client_protocol::v1::schema::KillTerminalRequest;
use agent_client_protocol::v1::schema::ReadTextFileRequest;
use agent_client_protocol::v1::schema::ReleaseTerminalRequest;
use agent_client_protocol::v1::schema::TerminalId;
use agent_client_protocol::v1::schema::TerminalOutputRequest;
use agent_client_protocol::v1::schema::WaitForTerminalExitRequest;
use agent_client_protocol::v1::schema::WriteTextFileRequest;
use serde_json::json;

use super::Stop;
use super::Turn;

/// An error of the client, in a line.
pub(super) fn describe(error: &Error) -> String {
    format!("error {}: {}", error.code.value(), error.message)
}

/// A result or an error, to be said.
fn either(result: Result<String, Error>) -> String {
    result.unwrap_or_else(|error| describe(&error))
}

impl Turn {
    /// `fs/read_text_file`
    pub(super) async fn client_read(&self, path: &str) -> Result<String, Stop> {
        let request = ReadTextFileRequest::new(self.live.id.clone(), self.file(path));
        let reading = self.cx.send_request(request).block_task();
        let result = self.unless_cancelled(reading).await?;
        Ok(either(result.map(|response| response.content)))
    }

    /// `fs/write_text_file`
    pub(super) async fn client_write(&self, path: &str, content: String) -> Result<String, Stop> {
        let request = WriteTextFileRequest::new(self.live.id.clone(), self.file(path), content);
        let writing = self.cx.send_request(request).block_task();
        let result = self.unless_cancelled(writing).await?;
        Ok(either(result.map(|_| format!("the client wrote {path}"))))
    }

    /// `terminal/*`, from the creation of a terminal to its release.
    pub(super) async fn client_run(&self, command: String) -> Result<String, Stop> {
        let request = CreateTerminalRequest::new(self.live.id.clone(), "sh")
            .args(vec!["-c".to_owned(), command])
            .cwd(self.live.cwd.clone());
        let creating = self.cx.send_request(request).block_task();
        let terminal = match self.unless_cancelled(creating).await? {
            Ok(response) => response.terminal_id,
            Err(error) => return Ok(describe(&error)),
        };
        let outcome = self.unless_cancelled(self.terminal_result(&terminal)).await;
        if outcome.is_err() {
            let request = KillTerminalRequest::new(self.live.id.clone(), terminal.clone());
            let _ = self.cx.send_request(request).block_task().await;
        }
        let request = ReleaseTerminalRequest::new(self.live.id.clone(), terminal);
        let _ = self.cx.send_request(request).block_task().await;
        Ok(either(outcome?))
    }

    async fn terminal_result(&self, terminal: &TerminalId) -> Result<String, Error> {
        let request = WaitForTerminalExitRequest::new(self.live.id.clone(), terminal.clone());
        let exit = self.cx.send_request(request).block_task().await?.exit_status;
        let request = TerminalOutputRequest::new(self.live.id.clone(), terminal.clone());
        let mut output = self.cx.send_request(request).block_task().await?.output;
        match (exit.exit_code, exit.signal) {
            (Some(0), _) => {}
            (Some(code), _) => output.push_str(&format!("\n[exit code {code}]")),
            (None, signal) => {
                let signal = signal.unwrap_or_else(|| "unknown".to_owned());
                output.push_str(&format!("\n[signal {signal}]"));
            }
        }
        Ok(output)
    }

    /// A request that no client knows; what it answers.
    pub(super) async fn unknown_request(&self, method: &str) -> Result<String, Stop> {
        let params = json!({ "sessionId": self.live.id, "question": "what is this?" });
        let request = UntypedMessage { method: method.to_owned(), params };
        let asking = self.cx.send_request(request).block_task();
        let result = self.unless_cancelled(asking).await?;
        Ok(format!("{method}: {}", either(result.map(|answer| answer.to_string()))))
    }

    /// A notification that no client knows.
    pub(super) fn unknown_notification(&self, method: &str) {
        let params = json!({ "sessionId": self.live.id, "news": "none" });
        let _ = self.cx.send_notification(UntypedMessage { method: method.to_owned(), params });
    }

    /// A kind of `session/update` that no client knows.
    pub(super) fn unknown_update(&self) {
        let update = json!({ "sessionUpdate": "demo_unknown_update", "text": "unheard of" });
        let params = json!({ "sessionId": self.live.id, "update": update });
        let message = UntypedMessage { method: "session/update".to_owned(), params };
        let _ = self.cx.send_notification(message);
    }
}
