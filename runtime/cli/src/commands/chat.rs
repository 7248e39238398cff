//! `tenon chat`: a conversation with an agent in the terminal.
//!
//! One task does everything: it reads keys, prints events, asks questions and waits for the agent, so nothing
//! on the terminal gets in the way of anything else. Where standard input is no terminal, its lines are what
//! would have been typed.

mod commands;
mod completion;
mod editor;
mod feed;
mod input;
mod opening;
mod stop;
mod tables;
mod waiting;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use tenon_acp::conversation::Conversation;
use tenon_acp::definition::AgentDefinition;
use tenon_host::control::ControlGuard;
use tenon_host::events::Event;
use tenon_host::front::Answer;
use tenon_host::session::EndReason;
use tenon_host::session::Message;
use tenon_host::session::TurnEnd;
use tokio::sync::mpsc;

use self::feed::Feed;
use self::input::Input;
use self::opening::Which;
use self::stop::Stop;
use self::waiting::OnInterrupt;
use self::waiting::Waited;
use crate::agent_choice;
use crate::args::Args;
use crate::args::fronts::ChatArgs;
use crate::error::CliError;
use crate::output;
use crate::output::DIM;
use crate::sanitise::one_line;
use crate::terminal::RenderOptions;
use crate::terminal::Renderer;
use crate::terminal::TerminalFront;
use crate::terminal::dialog::Request;
use crate::terminal::screen;
use crate::workspace;

/// How much is shown of a line that was entered before, in characters.
const MAX_SHOWN: usize = 200;

/// A conversation in the terminal.
struct Chat<'a> {
    args: &'a Args,
    options: &'a ChatArgs,
    home: PathBuf,
    /// Where the program was started; what the command line says is seen from there.
    started_in: PathBuf,
    /// The conversation; none if the last one could not be opened.
    open: Option<Open>,
    /// The agent of the last conversation.
    agent: Option<String>,
    /// What happens in it.
    feed: Feed,
    renderer: Renderer,
    /// What was loaded while the conversation was not open yet.
    loaded: Option<Event>,
    /// What the person is to be asked.
    asks: mpsc::Receiver<Request>,
    input: Input,
    /// What was entered while something else was going on.
    queue: VecDeque<String>,
    stop: Stop,
    /// When something was last printed.
    printed: Instant,
}

/// A conversation that is open.
struct Open {
    conversation: Arc<Conversation>,
    definition: AgentDefinition,
    #[allow(dead_code, reason = "it is there to be dropped")]
    control: Option<ControlGuard>,
}

/// Whether the chat goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    GoOn,
    End,
}

/// Talks with an agent until the person has had enough.
pub async fn run(args: &Args, options: &ChatArgs) -> Result<ExitCode, CliError> {
    let which = match &options.resume {
        None => Which::New,
        Some(None) => Which::Stored(agent_choice::last_session(args)?),
        Some(Some(id)) => match agent_choice::resumed(args, Some(id))? {
            Some(record) => Which::Stored(record),
            None => Which::New,
        },
    };
    let record = match &which {
        Which::New => None,
        Which::Stored(record) => Some(record),
    };
    // Which agent it is, is known before the terminal is taken over.
    agent_choice::definition(args, options.agent.as_deref(), record)?;
    let home = workspace::home(args)?;
    let mut chat = Chat {
        input: Input::open(&home),
        args,
        options,
        home,
        started_in: std::env::current_dir()?,
        open: None,
        agent: options.agent.clone(),
        feed: Feed::new().0,
        renderer: Renderer::new(render_options()),
        loaded: None,
        asks: TerminalFront::channel().1,
        queue: VecDeque::new(),
        stop: Stop::new(),
        printed: Instant::now(),
    };
    chat.begin(which).await?;
    chat.talk().await;
    chat.close().await;
    Ok(ExitCode::SUCCESS)
}

/// What standard output shows.
fn render_options() -> RenderOptions {
    RenderOptions { colour: output::is_terminal(), width: output::columns(), quiet: false }
}

impl Chat<'_> {
    /// Takes what is entered, until the end.
    async fn talk(&mut self) {
        loop {
            let line = match self.queue.pop_front() {
                Some(line) => {
                    self.say(&format!("{DIM}>{DIM:#} {}", one_line(&line, MAX_SHOWN)));
                    line
                }
                None => match self.next_line().await {
                    Some(line) => line,
                    None => return,
                },
            };
            if self.take(&line).await == Flow::End || self.stop.is_wanted() {
                return;
            }
        }
    }

    /// Does what was entered.
    async fn take(&mut self, line: &str) -> Flow {
        let rest = self.renderer.finish();
        self.print(&rest);
        let Some(command) = commands::parse(line) else {
            self.prompt(line).await;
            return Flow::GoOn;
        };
        self.command(command, line).await
    }

    /// Has the agent work on a prompt, and waits until the session is idle: extensions may have more to say.
    async fn prompt(&mut self, text: &str) {
        if self.open.is_none()
            && let Err(error) = self.begin(Which::New).await
        {
            return self.report(&error);
        }
        let Some(open) = &self.open else { return };
        let conversation = open.conversation.clone();
        let session = conversation.session().clone();
        self.renderer.resize(output::columns());
        let work = async {
            let end = conversation.prompt(Message::new(text)).await;
            conversation.session().idle().await;
            end
        };
        match self.wait("working", OnInterrupt::Abort(&session), work).await {
            Waited::Done(Ok(TurnEnd::Ended(Answer { stop, .. }))) if stop.0 != "end_turn" => {
                self.note(&format!("the agent has stopped: {}", stop.0));
            }
            Waited::Done(Err(error)) => self.note(&error.to_string()),
            // The session has said what went wrong.
            Waited::Done(Ok(TurnEnd::Failed(_))) if !conversation.agent().is_alive() => {
                self.note("the agent is started again with the next prompt");
            }
            Waited::Done(Ok(_)) | Waited::Left | Waited::Stopped => {}
        }
    }

    /// Ends the conversation.
    async fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        // Nobody is there any more who could be asked.
        self.asks = TerminalFront::channel().1;
        let conversation = open.conversation.clone();
        let closing = conversation.close(EndReason::UserExit);
        self.see_off("ending", closing).await;
    }

    /// Prints an event.
    fn show(&mut self, event: &Event) {
        // Why an extension failed can be looked up when the conversation is open.
        if self.open.is_none() && event.kind == "session.extensions_loaded" {
            self.loaded = Some(event.clone());
            return;
        }
        let text = self.renderer.event(event);
        self.print(&text);
    }

    /// Prints lines about the chat itself.
    fn note(&mut self, text: &str) {
        let text = self.renderer.note(text);
        self.print(&text);
    }

    /// Prints an error.
    fn report(&mut self, error: &CliError) {
        screen::clear_status();
        error.print();
    }

    /// Prints a line.
    fn say(&mut self, line: &str) {
        self.print(&format!("{line}\n"));
    }

    fn print(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.printed = Instant::now();
        if screen::print(text).is_err() {
            // Nobody reads it: there is nobody to talk to.
            self.stop.want();
        }
    }
}
