//! `tenon demo-agent`: an ACP agent on standard input and output, without a model.

use std::process::ExitCode;
use std::time::Duration;

use tenon_demo_agent::DemoOptions;
use tenon_demo_agent::ExitAt;
use tenon_demo_agent::serve;

use crate::error::CliError;

/// Variables that lead HTTP through a proxy. The MCP servers of a session are on this machine, where a proxy
/// elsewhere does not find them.
const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// What a prompt can say.
const DIRECTIVES: &str = "Examples:
  tenon run -a demo '@say hello'
  tenon acp -a demo

A prompt's lines are done one after the other; those that are no directives are passed over. \
A prompt without directives is repeated.

  @say TEXT                     say it, in several pieces
  @think TEXT                   think it
  @plan A; B; C                 make a plan
  @title TEXT                   call the session so
  @mode ID                      change the mode: default, plan or bypass
  @usage USED SIZE              say how full the context is
  @commands a,b                 offer these slash commands
  /shout TEXT                   the command it offers by itself

  @call TOOL {json}             call a tool of an MCP server
  @parallel ... @end            make the calls between these lines at once
  @tools                        say which tools were listed
  @run COMMAND                  run a shell command; asks first
  @write PATH \"json string\"     write a file; asks first
  @replace PATH {\"old\":..,\"new\":..}   change a file; asks first
  @read PATH                    read a file
  @permit KIND TITLE {rawInput} ask for permission, and say the answer
  @client-read PATH             let the client read a file
  @client-write PATH \"text\"     let the client write a file
  @client-run COMMAND           let the client run a command in a terminal
  $last                         in any line: the text of the last tool result

  @prompt                       say the whole prompt
  @cwd                          say the working directory
  @env NAME                     say the value of a variable
  @wait MS                      wait
  @clock COUNT [MS]             say the time in nanoseconds so many times, with a pause after each
  @fail TEXT                    answer the prompt with an error

  @crash [CODE]                 exit in the middle of the turn
  @deaf                         ignore cancelling from now on
  @flood COUNT [BYTES]          send so many messages
  @garbage TEXT                 print a line that is no message
  @permit-twice TITLE           ask twice about the same call
  @unknown-update               send an update of a kind that nobody knows
  @unknown-request METHOD       send a request that nobody knows, and say the answer
  @unknown-notification METHOD  send a notification that nobody knows
  @spawn-orphan                 start a process that does not end with the agent";

/// `tenon demo-agent`.
#[derive(Debug, clap::Args)]
#[command(after_help = DIRECTIVES)]
pub struct DemoAgentArgs {
    /// Never answer initialize
    #[arg(long)]
    pub silent: bool,
    /// Print lines that are no JSON before and between messages
    #[arg(long)]
    pub garbage: bool,
    /// Exit instead of answering: at initialize, new or prompt
    #[arg(long, value_name = "WHEN")]
    pub exit_at: Option<ExitAt>,
    /// Be unable to load and resume sessions
    #[arg(long)]
    pub no_load: bool,
    /// Have no modes
    #[arg(long)]
    pub no_modes: bool,
    /// Have no models to choose from
    #[arg(long)]
    pub no_models: bool,
    /// Be unable to reach MCP servers over HTTP
    #[arg(long)]
    pub no_http: bool,
    /// Do not list tools again when a server says that they have changed
    #[arg(long)]
    pub never_list: bool,
    /// Never ask for permission
    #[arg(long)]
    pub never_ask: bool,
    /// Do not tell MCP servers to which tool call a call belongs
    #[arg(long)]
    pub no_meta: bool,
    /// Have forgotten every session that is to be loaded or resumed
    #[arg(long)]
    pub forget: bool,
    /// Ignore cancelling and the end of standard input
    #[arg(long)]
    pub deaf: bool,
    /// Pause so many milliseconds after each piece of a message
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub slow: u64,
}

impl DemoAgentArgs {
    fn options(&self) -> DemoOptions {
        DemoOptions {
            silent: self.silent,
            garbage: self.garbage,
            exit_at: self.exit_at,
            no_load: self.no_load,
            no_modes: self.no_modes,
            no_models: self.no_models,
            no_http: self.no_http,
            never_list: self.never_list,
            never_ask: self.never_ask,
            no_meta: self.no_meta,
            forget: self.forget,
            deaf: self.deaf,
            slow: Duration::from_millis(self.slow),
            state: None,
        }
    }
}

/// Is the agent, until its input ends. Standard output must still be the real one.
///
/// # Safety
///
/// No other thread may exist.
pub unsafe fn run(demo: &DemoAgentArgs) -> ExitCode {
    for name in PROXIES {
        // SAFETY: there is one thread. What we start ourselves gets the environment as it was.
        unsafe { std::env::remove_var(name) };
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            CliError::new(format!("no event loop could be started: {error}")).print();
            return ExitCode::FAILURE;
        }
    };
    let served = runtime.block_on(serve(demo.options()));
    // A thread may still be reading standard input, and would be waited for.
    runtime.shutdown_background();
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            CliError::new(error).print();
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        demo: DemoAgentArgs,
    }

    #[test]
    fn options_are_taken_from_the_command_line() {
        let line = ["demo-agent", "--exit-at", "new", "--slow", "20", "--no-http", "--deaf"];
        let options = Line::try_parse_from(line).unwrap().demo.options();
        assert_eq!((options.exit_at, options.slow), (Some(ExitAt::New), Duration::from_millis(20)));
        assert!(options.no_http && options.deaf && !options.silent);
        let wrong = Line::try_parse_from(["demo-agent", "--exit-at", "noon"]).unwrap_err();
        assert!(wrong.to_string().contains("initialize, new or prompt"), "{wrong}");
    }
}
