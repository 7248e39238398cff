//! Extensions that are threads of a program which embeds Tenon, and the engine alone: what to compare processes with.
//!
//! Only these need the engine in the program that measures. So they have one of their own, `tenon-in-process`, which takes
//! orders on its standard input and answers on its standard output, a line of JSON for each. Nothing else of the benchmarks
//! links the engine.

use std::path::Path;
use std::path::PathBuf;
use std::process::Stdio;

use serde::Deserialize;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tenon_console::error::CliError;
use tokio::io::AsyncBufReadExt;
use tokio::io::AsyncWriteExt;
use tokio::io::BufReader;
use tokio::process::Child;
use tokio::process::ChildStdin;
use tokio::process::ChildStdout;

use crate::args::Args;
use crate::single::Single;
use crate::tenon::Tenon;

/// What the program is called.
const NAME: &str = "tenon-in-process";

pub const FIVE_MODULES: &str = "five modules, a thread in process";
pub const BARE: &str = "bare isolate, no platform";

/// What [`measure`] can measure, in the order in which it is shown.
pub const CASES: [&str; 2] = [FIVE_MODULES, BARE];

/// What the other program is to do.
#[derive(Debug, Serialize, Deserialize)]
pub enum Order {
    /// Start so many extensions; answered with a [`Single`].
    Extensions(usize),
    /// Make so many instances of the engine alone; answered with a [`Single`].
    Bare(usize),
    /// Call the tool `echo` so many times; answered with microseconds.
    Calls(usize),
    /// Compute once; answered with milliseconds.
    Compute,
}

/// What the other program answers: what was ordered, or why it could not be done.
pub type Answer<T> = Result<T, String>;

/// The program beside a build of Tenon, with the same engine, if it is asked for.
pub fn find(args: &Args, tenon: &Tenon) -> Result<PathBuf, CliError> {
    if !args.in_process {
        return Err(CliError::new("left out without --in-process"));
    }
    let program = tenon.program().with_file_name(NAME);
    if program.is_file() {
        return Ok(program);
    }
    Err(CliError::new(format!("there is no program {}; make bench builds it", program.display())))
}

/// Measures one of [`CASES`] in a process of its own.
pub async fn measure(program: &Path, case: &str, count: usize) -> Result<Single, CliError> {
    let order = match case {
        FIVE_MODULES => Order::Extensions(count),
        BARE => Order::Bare(count),
        other => return Err(CliError::new(format!("there is no case \"{other}\""))),
    };
    InProcess::start(program)?.ask(order).await
}

/// The other program, running. Killed when it is dropped.
pub struct InProcess {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _process: Child,
}

impl InProcess {
    /// Starts the program.
    pub fn start(program: &Path) -> Result<Self, CliError> {
        let mut process = tokio::process::Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| CliError::new(format!("{}: {error}", program.display())))?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(CliError::new(format!("{NAME} has no pipes")));
        };
        Ok(Self { input, output: BufReader::new(output), _process: process })
    }

    /// Calls a tool of an extension so many times; how long each call took, in microseconds.
    pub async fn calls(&mut self, count: usize) -> Result<Vec<f64>, CliError> {
        self.ask(Order::Calls(count)).await
    }

    /// Lets an extension compute; how long it says that it took, in milliseconds.
    pub async fn compute(&mut self) -> Result<f64, CliError> {
        self.ask(Order::Compute).await
    }

    async fn ask<T: DeserializeOwned>(&mut self, order: Order) -> Result<T, CliError> {
        let order = serde_json::to_string(&order)? + "\n";
        self.input.write_all(order.as_bytes()).await?;
        self.input.flush().await?;
        let mut answer = String::new();
        if self.output.read_line(&mut answer).await? == 0 {
            return Err(CliError::new(format!("{NAME} ended instead of answering {order}")));
        }
        serde_json::from_str::<Answer<T>>(&answer)?.map_err(CliError::new)
    }
}
