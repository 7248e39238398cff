//! The command line of `tenon demo-agent`.

use tenon_demo_agent::ExitAt;

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
