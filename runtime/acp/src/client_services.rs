//! What an agent can ask of its client: to read and write files and to run commands, in the workspace only.
//!
//! Few agents want that; most do it themselves. For one that does, a request is first described, so that
//! hooks and the policy can say no, and then served. Both look at where a path leads, because much can
//! happen between the two; what leads somewhere else by then is not what was permitted.

use std::path::Path;
use std::path::PathBuf;

use agent_client_protocol_schema::v1::CreateTerminalRequest;
use agent_client_protocol_schema::v1::KillTerminalRequest;
use agent_client_protocol_schema::v1::ReadTextFileRequest;
use agent_client_protocol_schema::v1::ReleaseTerminalRequest;
use agent_client_protocol_schema::v1::TerminalOutputRequest;
use agent_client_protocol_schema::v1::WaitForTerminalExitRequest;
use agent_client_protocol_schema::v1::WriteTextFileRequest;
use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use crate::rpc::RpcError;

mod files;
mod terminals;

pub use files::MAX_FILE_BYTES;
pub use terminals::DEFAULT_OUTPUT_BYTES;
pub use terminals::MAX_OUTPUT_BYTES;
pub use terminals::MAX_TERMINALS;

use terminals::Terminals;

/// What the fuzz targets call and nobody else outside of this module.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    pub use super::files::read;
    pub use super::files::resolve;
    pub use super::files::write;
}

/// What an agent asks for. Paths are absolute and without links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceCall {
    /// The text of a file.
    Read {
        /// The file.
        path: PathBuf,
        /// The first line wanted, from one.
        line: Option<u32>,
        /// How many lines are wanted.
        limit: Option<u32>,
    },
    /// A file is to have this text.
    Write {
        /// The file, which need not exist.
        path: PathBuf,
        /// The text.
        content: String,
    },
    /// A command is to run.
    CreateTerminal {
        /// A program, or without arguments a line for the shell.
        command: String,
        /// The program's arguments.
        args: Vec<String>,
        /// Variables in addition to our own environment.
        env: Vec<(String, String)>,
        /// Where it runs.
        cwd: PathBuf,
        /// How many bytes of its output are kept.
        output_bytes: usize,
    },
    /// What a command has written so far.
    Output {
        /// The terminal.
        id: String,
    },
    /// How a command ends.
    WaitForExit {
        /// The terminal.
        id: String,
    },
    /// The end of a command; what it has written remains.
    Kill {
        /// The terminal.
        id: String,
    },
    /// The end of a terminal, and of its command if that still runs.
    Release {
        /// The terminal.
        id: String,
    },
}

impl ServiceCall {
    /// Which tool this would be, and with which arguments; `None` for what concerns a terminal that the agent
    /// was allowed to make.
    pub fn tool(&self) -> Option<(&'static str, Value)> {
        match self {
            Self::Read { path, .. } => {
                Some(("view", json!({ "path": path.display().to_string() })))
            }
            Self::Write { path, content } => {
                let path = path.display().to_string();
                Some(("create", json!({ "path": path, "file_text": content })))
            }
            Self::CreateTerminal { command, args, env, .. } => {
                // Variables decide what a command does as much as its words.
                let set = |(name, value): &(String, String)| {
                    format!("{name}={} ", shell_words::quote(value))
                };
                let line: String = env.iter().map(set).collect();
                let line = line + terminals::command_line(command, args).as_str();
                Some(("bash", json!({ "command": line })))
            }
            Self::Output { .. }
            | Self::WaitForExit { .. }
            | Self::Kill { .. }
            | Self::Release { .. } => None,
        }
    }
}

/// Serves one session of an agent. Dropping it ends the commands it has started.
pub struct ClientServices {
    /// Without links.
    root: PathBuf,
    fs: bool,
    terminal: bool,
    terminals: Terminals,
}

impl ClientServices {
    /// Serves files, terminals, both or nothing, inside of `root`. With our own binary as `guard`, commands are
    /// guarded: see [`crate::guard`].
    pub fn new(root: PathBuf, fs: bool, terminal: bool, guard: Option<PathBuf>) -> Self {
        // In a folder that is not there nothing will be found either.
        let root = std::fs::canonicalize(&root).unwrap_or(root);
        Self { root, fs, terminal, terminals: Terminals::new(guard) }
    }

    /// What `initialize` tells the agent.
    pub fn capabilities(&self) -> Value {
        json!({
            "fs": { "readTextFile": self.fs, "writeTextFile": self.fs },
            "terminal": self.terminal,
        })
    }

    /// What a request is about, or why it cannot be served. `None`: it is none of ours.
    pub fn describe(&self, method: &str, params: &Value) -> Option<Result<ServiceCall, RpcError>> {
        let served = match method.split_once('/') {
            Some(("fs", _)) => self.fs,
            Some(("terminal", _)) => self.terminal,
            _ => false,
        };
        if !served {
            return None;
        }
        Some(match method {
            "fs/read_text_file" => self.read(params),
            "fs/write_text_file" => self.write(params),
            "terminal/create" => self.create(params),
            "terminal/output" => parse(params).map(|request: TerminalOutputRequest| {
                ServiceCall::Output { id: request.terminal_id.to_string() }
            }),
            "terminal/wait_for_exit" => parse(params).map(|request: WaitForTerminalExitRequest| {
                ServiceCall::WaitForExit { id: request.terminal_id.to_string() }
            }),
            "terminal/kill" => parse(params).map(|request: KillTerminalRequest| {
                ServiceCall::Kill { id: request.terminal_id.to_string() }
            }),
            "terminal/release" => parse(params).map(|request: ReleaseTerminalRequest| {
                ServiceCall::Release { id: request.terminal_id.to_string() }
            }),
            _ => return None,
        })
    }

    fn read(&self, params: &Value) -> Result<ServiceCall, RpcError> {
        let ReadTextFileRequest { path, line, limit, .. } = parse(params)?;
        Ok(ServiceCall::Read { path: files::resolve(&self.root, &path)?, line, limit })
    }

    fn write(&self, params: &Value) -> Result<ServiceCall, RpcError> {
        let WriteTextFileRequest { path, content, .. } = parse(params)?;
        Ok(ServiceCall::Write { path: files::resolve(&self.root, &path)?, content })
    }

    fn create(&self, params: &Value) -> Result<ServiceCall, RpcError> {
        let request: CreateTerminalRequest = parse(params)?;
        if request.command.trim().is_empty() {
            return Err(RpcError::invalid_params("the command is empty"));
        }
        let env: Vec<_> =
            request.env.into_iter().map(|variable| (variable.name, variable.value)).collect();
        if let Some((name, _)) = env.iter().find(|(name, _)| name.is_empty() || name.contains('='))
        {
            return Err(RpcError::invalid_params(format!("`{name}` cannot name a variable")));
        }
        let cwd = self.folder(request.cwd.as_deref().unwrap_or(&self.root))?;
        let output_bytes = terminals::output_bytes(request.output_byte_limit);
        Ok(ServiceCall::CreateTerminal {
            command: request.command,
            args: request.args,
            env,
            cwd,
            output_bytes,
        })
    }

    fn folder(&self, path: &Path) -> Result<PathBuf, RpcError> {
        let folder = files::resolve(&self.root, path)?;
        if folder.is_dir() {
            Ok(folder)
        } else {
            Err(RpcError::invalid_params(format!("{} is not a folder", folder.display())))
        }
    }

    /// Does what was described.
    pub async fn serve(&self, call: ServiceCall) -> Result<Value, RpcError> {
        match call {
            ServiceCall::Read { path, line, limit } => {
                let root = self.root.clone();
                let read = move || files::read(&still(&root, path)?, line, limit);
                let content = blocking(read).await?;
                Ok(json!({ "content": content }))
            }
            ServiceCall::Write { path, content } => {
                let root = self.root.clone();
                blocking(move || files::write(&still(&root, path)?, &content)).await?;
                Ok(json!({}))
            }
            ServiceCall::CreateTerminal { command, args, env, cwd, output_bytes } => {
                let cwd = self.folder(&still(&self.root, cwd)?)?;
                let command = terminals::command(&command, &args, &env, &cwd);
                let id = self.terminals.create(command, output_bytes)?;
                Ok(json!({ "terminalId": id }))
            }
            ServiceCall::Output { id } => self.terminals.output(&id),
            ServiceCall::WaitForExit { id } => self.terminals.wait_for_exit(&id).await,
            ServiceCall::Kill { id } => {
                self.terminals.kill(&id)?;
                Ok(json!({}))
            }
            ServiceCall::Release { id } => {
                self.terminals.release(&id).await?;
                Ok(json!({}))
            }
        }
    }

    /// Ends the command of every terminal, with all it has started in its process group. No other can be
    /// made.
    pub async fn close(&self) {
        self.terminals.close().await;
    }
}

/// The same path, if it still leads to itself: hooks and the person were asked about that.
fn still(root: &Path, path: PathBuf) -> Result<PathBuf, RpcError> {
    if files::resolve(root, &path)? == path {
        return Ok(path);
    }
    let message = format!("{} is not where it was a moment ago", path.display());
    Err(RpcError::invalid_params(message))
}

fn parse<'a, T: Deserialize<'a>>(params: &'a Value) -> Result<T, RpcError> {
    T::deserialize(params).map_err(|error| RpcError::invalid_params(error.to_string()))
}

/// Works with files where that holds up nobody. Once begun it is done to the end.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RpcError> + Send + 'static,
) -> Result<T, RpcError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(RpcError::internal(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn services(fs: bool, terminal: bool) -> (tempfile::TempDir, ClientServices) {
        let temp = tempfile::tempdir().unwrap();
        let services = ClientServices::new(temp.path().to_owned(), fs, terminal, None);
        (temp, services)
    }

    /// Describes and serves, as if nobody objected.
    async fn ask(
        services: &ClientServices,
        method: &str,
        mut params: Value,
    ) -> Result<Value, RpcError> {
        params["sessionId"] = json!("s");
        let call = services.describe(method, &params).unwrap()?;
        services.serve(call).await
    }

    #[tokio::test]
    async fn what_is_not_wanted_is_neither_offered_nor_served() {
        let methods = [
            "fs/read_text_file",
            "fs/write_text_file",
            "terminal/create",
            "terminal/output",
            "terminal/wait_for_exit",
            "terminal/kill",
            "terminal/release",
        ];
        for (fs, terminal) in [(false, false), (true, false), (false, true), (true, true)] {
            let (_temp, services) = services(fs, terminal);
            assert_eq!(
                services.capabilities(),
                json!({ "fs": { "readTextFile": fs, "writeTextFile": fs }, "terminal": terminal })
            );
            for method in methods {
                let served = if method.starts_with("fs") { fs } else { terminal };
                let described = services.describe(method, &Value::Null);
                assert_eq!(described.is_some(), served, "{method}");
                if let Some(described) = described {
                    assert_eq!(described.unwrap_err().code, RpcError::INVALID_PARAMS, "{method}");
                }
            }
            for method in ["fs/delete", "terminal/", "fs", "session/update", ""] {
                assert!(services.describe(method, &Value::Null).is_none(), "{method}");
            }
        }
    }

    #[tokio::test]
    async fn a_file_is_written_and_read_inside_the_root() {
        let (temp, services) = services(true, false);
        let path = temp.path().join("new/folder/file.txt");
        let written =
            ask(&services, "fs/write_text_file", json!({ "path": path, "content": "a\nb\nc\n" }));
        assert_eq!(written.await, Ok(json!({})));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\nb\nc\n");
        let read = ask(&services, "fs/read_text_file", json!({ "path": path })).await;
        assert_eq!(read, Ok(json!({ "content": "a\nb\nc\n" })));
        let params = json!({ "path": path, "line": 2, "limit": 1 });
        let read = ask(&services, "fs/read_text_file", params).await;
        assert_eq!(read, Ok(json!({ "content": "b\n" })));
    }

    #[tokio::test]
    async fn a_path_outside_the_root_is_refused_before_anybody_is_asked() {
        let (temp, services) = services(true, true);
        let outside = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), temp.path().join("way-out")).unwrap();
        let paths = [
            "relative".into(),
            outside.path().to_owned(),
            temp.path().join("../x"),
            temp.path().join("way-out/x"),
            "/etc/passwd".into(),
        ];
        for path in paths {
            for (method, params) in [
                ("fs/read_text_file", json!({ "path": path })),
                ("fs/write_text_file", json!({ "path": path, "content": "" })),
                ("terminal/create", json!({ "command": "true", "cwd": path })),
            ] {
                let error = ask(&services, method, params).await.unwrap_err();
                assert_eq!(error.code, RpcError::INVALID_PARAMS, "{method} {error}");
            }
        }
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_path_that_leads_out_only_after_it_was_described_is_refused_too() {
        let (temp, services) = services(true, true);
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "s").unwrap();
        let folder = temp.path().join("folder");
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("secret");
        let mut calls = Vec::new();
        for (method, params) in [
            ("fs/read_text_file", json!({ "sessionId": "s", "path": path })),
            ("fs/write_text_file", json!({ "sessionId": "s", "path": path, "content": "x" })),
            ("terminal/create", json!({ "sessionId": "s", "command": "true", "cwd": folder })),
        ] {
            calls.push(services.describe(method, &params).unwrap().unwrap());
        }
        std::fs::remove_dir(&folder).unwrap();
        std::os::unix::fs::symlink(outside.path(), &folder).unwrap();
        for call in calls {
            let error = services.serve(call).await.unwrap_err();
            assert_eq!(error.code, RpcError::INVALID_PARAMS, "{error}");
        }
        assert_eq!(std::fs::read_to_string(outside.path().join("secret")).unwrap(), "s");
    }

    #[tokio::test]
    async fn a_path_that_leads_elsewhere_in_the_root_after_it_was_described_is_refused() {
        let (temp, services) = services(true, true);
        let (file, folder) = (temp.path().join("file"), temp.path().join("folder"));
        let (secret, place) = (temp.path().join("secret"), temp.path().join("place"));
        std::fs::write(&file, "f").unwrap();
        std::fs::write(&secret, "s").unwrap();
        std::fs::create_dir(&folder).unwrap();
        std::fs::create_dir(&place).unwrap();
        let mut calls = Vec::new();
        for (method, params) in [
            ("fs/read_text_file", json!({ "sessionId": "s", "path": file })),
            ("fs/write_text_file", json!({ "sessionId": "s", "path": file, "content": "x" })),
            ("terminal/create", json!({ "sessionId": "s", "command": "true", "cwd": folder })),
        ] {
            calls.push(services.describe(method, &params).unwrap().unwrap());
        }
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink(&secret, &file).unwrap();
        std::fs::remove_dir(&folder).unwrap();
        std::os::unix::fs::symlink(&place, &folder).unwrap();
        for call in calls {
            let error = services.serve(call).await.unwrap_err();
            assert_eq!(error.code, RpcError::INVALID_PARAMS, "{error}");
            assert!(error.message.contains("is not where it was a moment ago"), "{error}");
        }
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "s");
    }

    #[tokio::test]
    async fn a_command_runs_in_its_folder_with_its_variables_and_its_end_is_known() {
        let (temp, services) = services(false, true);
        std::fs::create_dir(temp.path().join("sub")).unwrap();
        let params = json!({
            "command": "echo \"$GREETING\"; pwd -P; echo problem >&2; exit 3",
            "env": [{ "name": "GREETING", "value": "hello there" }],
            "cwd": temp.path().join("sub"),
        });
        let made = ask(&services, "terminal/create", params).await.unwrap();
        let terminal = json!({ "terminalId": made["terminalId"] });
        let exit = ask(&services, "terminal/wait_for_exit", terminal.clone()).await;
        assert_eq!(exit, Ok(json!({ "exitCode": 3, "signal": null })));
        let folder = temp.path().join("sub").canonicalize().unwrap();
        let expected = json!({
            "output": format!("hello there\n{}\nproblem\n", folder.display()),
            "truncated": false,
            "exitStatus": { "exitCode": 3, "signal": null },
        });
        assert_eq!(ask(&services, "terminal/output", terminal.clone()).await, Ok(expected));
        assert_eq!(ask(&services, "terminal/kill", terminal.clone()).await, Ok(json!({})));
        assert_eq!(ask(&services, "terminal/release", terminal.clone()).await, Ok(json!({})));
        for method in
            ["terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release"]
        {
            let error = ask(&services, method, terminal.clone()).await.unwrap_err();
            assert_eq!(error.code, RpcError::RESOURCE_NOT_FOUND, "{method}");
        }
    }

    #[tokio::test]
    async fn arguments_reach_the_program_without_a_shell() {
        let (_temp, services) = services(false, true);
        let params = json!({ "command": "printf", "args": ["%s|", "$HOME", "a b", "*"] });
        let made = ask(&services, "terminal/create", params).await.unwrap();
        ask(&services, "terminal/wait_for_exit", made.clone()).await.unwrap();
        let output = ask(&services, "terminal/output", made).await.unwrap();
        assert_eq!(output["output"], "$HOME|a b|*|");
    }

    #[tokio::test]
    async fn what_cannot_be_a_command_is_refused() {
        let (temp, services) = services(false, true);
        std::fs::write(temp.path().join("file"), "").unwrap();
        for params in [
            json!({ "command": " " }),
            json!({ "command": "true", "env": [{ "name": "A=B", "value": "" }] }),
            json!({ "command": "true", "env": [{ "name": "", "value": "" }] }),
            json!({ "command": "true", "cwd": temp.path().join("file") }),
            json!({ "command": "true", "cwd": temp.path().join("missing") }),
        ] {
            let error = ask(&services, "terminal/create", params.clone()).await.unwrap_err();
            assert_eq!(error.code, RpcError::INVALID_PARAMS, "{params}");
        }
        let params = json!({ "command": "no-such-program-anywhere", "args": ["x"] });
        let error = ask(&services, "terminal/create", params).await.unwrap_err();
        assert!(error.message.contains("no-such-program-anywhere cannot be started"), "{error}");
        let params = json!({ "command": "a\0b", "args": ["x"] });
        ask(&services, "terminal/create", params).await.unwrap_err();
    }

    #[test]
    fn calls_that_need_permission_are_told_as_tools() {
        let path = PathBuf::from("/w/f");
        let read = ServiceCall::Read { path: path.clone(), line: None, limit: None };
        assert_eq!(read.tool(), Some(("view", json!({ "path": "/w/f" }))));
        let write = ServiceCall::Write { path: path.clone(), content: "t".into() };
        assert_eq!(write.tool(), Some(("create", json!({ "path": "/w/f", "file_text": "t" }))));
        let create = |command: &str, args: &[&str]| ServiceCall::CreateTerminal {
            command: command.into(),
            args: args.iter().map(|&arg| arg.into()).collect(),
            env: Vec::new(),
            cwd: path.clone(),
            output_bytes: 0,
        };
        let line = create("rm -rf $HOME", &[]).tool();
        assert_eq!(line, Some(("bash", json!({ "command": "rm -rf $HOME" }))));
        let program = create("rm", &["-rf", "a b"]).tool();
        assert_eq!(program, Some(("bash", json!({ "command": "rm -rf 'a b'" }))));
        let id = String::new();
        for call in [
            ServiceCall::Output { id: id.clone() },
            ServiceCall::WaitForExit { id: id.clone() },
            ServiceCall::Kill { id: id.clone() },
            ServiceCall::Release { id },
        ] {
            assert_eq!(call.tool(), None);
        }
    }
}
