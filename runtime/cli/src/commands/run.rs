//! `tenon run`: one prompt to an agent, to its end.

mod backlog;
mod interrupts;
mod outcome;
mod printer;
mod prompt;

use std::io::ErrorKind;
use std::io::IsTerminal;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use tenon_acp::conversation::Conversation;
use tenon_acp::conversation::ConversationError;
use tenon_acp::conversation::ConversationOptions;
use tenon_acp::definition::AgentDefinition;
use tenon_host::Session;
use tenon_host::session::EndReason;
use tenon_host::session::Message;

use self::interrupts::Interrupts;
use self::outcome::Outcome;
use self::printer::Printer;
use self::printer::Style;
use crate::agent_choice;
use crate::agent_choice::Wishes;
use crate::args::Args;
use crate::args::fronts::RunArgs;
use crate::error::CliError;
use crate::output;
use crate::output::DIM;
use crate::output::Progress;
use crate::output::YELLOW;
use crate::sanitise::clean;
use crate::terminal::Lookup;
use crate::terminal::TerminalFront;

/// How long an agent may take to start before somebody who watches is told what is waited for.
const START_QUIETLY: Duration = Duration::from_secs(1);

/// How long extensions may take to hear that the session is idle, before nothing more is expected of them.
const HEARING: Duration = Duration::from_secs(10);

/// What became known on the way, for the last line.
#[derive(Default)]
struct Known {
    agent: Option<String>,
    session: Option<String>,
}

pub async fn run(args: &Args, run: &RunArgs) -> Result<ExitCode, CliError> {
    let mut known = Known::default();
    let outcome = converse(args, run, &mut known).await.unwrap_or_else(Outcome::Failed);
    let code = outcome.exit_code();
    if args.json {
        let result = outcome.result(known.agent.as_deref(), known.session.as_deref());
        // Whoever does not read it does not want to know.
        let _ = output::stream_bytes(format!("{result}\n").as_bytes());
    }
    if let Some(said) = outcome.stopped_early() {
        output::note(format_args!("{YELLOW}warning{YELLOW:#}: {}", clean(&said)));
    }
    match outcome {
        Outcome::Cancelled => output::note(format_args!("{DIM}cancelled{DIM:#}")),
        outcome => {
            if let Some(error) = outcome.into_error() {
                error.print();
            }
        }
    }
    if let Some(id) = known.session
        && !args.json
        && !run.quiet
        && std::io::stderr().is_terminal()
    {
        output::note(format_args!("{DIM}tenon run --resume {id} goes on with it{DIM:#}"));
    }
    Ok(ExitCode::from(code))
}

/// From the command line to the end of the conversation, with everything printed.
async fn converse(args: &Args, run: &RunArgs, known: &mut Known) -> Result<Outcome, CliError> {
    let resume = agent_choice::resumed(args, run.resume.as_deref())?;
    known.session = resume.as_ref().map(|record| record.id.clone());
    let definition = agent_choice::definition(args, run.agent.as_deref(), resume.as_ref())?;
    known.agent = Some(definition.name.clone());
    let permissions = agent_choice::permissions(run.permissions.as_deref())?;
    let prompt = prompt::read(&run.prompt)?;
    let wishes = Wishes {
        model: run.model.as_deref(),
        mode: run.mode.as_deref(),
        directories: &run.dir,
        resume: resume.as_ref(),
    };
    let front = Some(TerminalFront::plain());
    let mut options =
        agent_choice::conversation_options(args, definition.clone(), permissions, front, &wishes)?;
    let style = match (args.json, run.quiet) {
        (true, _) => Style::Json,
        (false, true) => Style::Quiet,
        (false, false) => Style::Text,
    };
    // Not before: until here Ctrl-C ends the program, which has started nothing yet.
    let interrupts = Interrupts::watch()?;
    let lookup = Lookup::default();
    let printer = Printer::start(style, lookup.clone())?;
    options.session.tap = Some(printer.tap());
    let outcome = talk(options, prompt, &definition, &interrupts, &printer, &lookup, known).await;
    let problem = printer.finish().await;
    Ok(match (outcome, problem) {
        // Somebody who has read enough may leave; what could not be written is missing.
        (Outcome::Ended(_), Some(error)) if error.kind() != ErrorKind::BrokenPipe => {
            Outcome::Failed(unwritable(&error))
        }
        (outcome, _) => outcome,
    })
}

/// Opens the conversation, sends the prompt, waits for everything that follows from it, and closes.
async fn talk(
    options: ConversationOptions,
    prompt: String,
    definition: &AgentDefinition,
    interrupts: &Interrupts,
    printer: &Printer,
    lookup: &Lookup,
    known: &mut Known,
) -> Outcome {
    let opened = tokio::select! {
        opened = open(options, definition) => opened,
        // What was started ends with it.
        () = interrupts.first() => return Outcome::Cancelled,
    };
    let conversation = match opened {
        Ok(conversation) => conversation,
        Err(error) => return Outcome::Failed(agent_choice::explain(&error, definition)),
    };
    known.session = Some(conversation.session().id().to_owned());
    lookup.attach(conversation.session());
    let control = agent_choice::serve_control(conversation.session());
    let outcome = ask(&conversation, prompt, definition, interrupts, printer).await;
    let reason = match &outcome {
        Outcome::Cancelled => EndReason::Abort,
        Outcome::Failed(error) => EndReason::Error(error.message().to_owned()),
        Outcome::Ended(_) | Outcome::Refused(_) | Outcome::Blocked { .. } => EndReason::Complete,
    };
    conversation.close(reason).await;
    drop(control);
    outcome
}

/// Opens the conversation; says so if it takes long.
async fn open(
    options: ConversationOptions,
    definition: &AgentDefinition,
) -> Result<Conversation, ConversationError> {
    let mut opening = pin!(Conversation::open(options));
    if let Ok(opened) = tokio::time::timeout(START_QUIETLY, opening.as_mut()).await {
        return opened;
    }
    let _progress = Progress::start(&format!("starting {} ...", definition.name));
    opening.await
}

/// Sends the prompt and waits until the session is idle: extensions may have had more to say.
async fn ask(
    conversation: &Conversation,
    prompt: String,
    definition: &AgentDefinition,
    interrupts: &Interrupts,
    printer: &Printer,
) -> Outcome {
    let session = conversation.session();
    let mut work = pin!(async {
        let end = conversation.prompt(Message::new(prompt)).await;
        everything_said(session).await;
        end
    });
    let end = tokio::select! {
        // It is begun before anybody can stop it; otherwise there would be nothing to stop.
        biased;
        end = work.as_mut() => end,
        () = interrupts.first() => {
            // First of all: whoever emits an event waits for room to print it.
            printer.interrupt();
            session.abort("user_initiated");
            let _ = work.await;
            return Outcome::Cancelled;
        }
        error = printer.problem() => {
            session.abort("output_closed");
            let _ = work.await;
            return Outcome::Failed(unwritable(&error));
        }
    };
    match end {
        Ok(end) => Outcome::of(end, |message| {
            agent_choice::explain(message, definition)
                .hint(format!("tenon run --resume {} goes on with the session", session.id()))
        }),
        Err(error) => Outcome::Failed(agent_choice::explain(&error, definition)),
    }
}

/// Waits until the session is idle and no extension that was told so has sent another prompt.
async fn everything_said(session: &Session) {
    loop {
        session.idle().await;
        let heard = tokio::time::timeout(HEARING, session.drained()).await;
        if heard.is_err() || !session.is_busy() {
            break;
        }
    }
}

/// Why nothing more is printed.
fn unwritable(error: &std::io::Error) -> CliError {
    match error.kind() {
        ErrorKind::BrokenPipe => CliError::new("nobody reads the output any more"),
        _ => CliError::new(format!("the output cannot be written: {error}")),
    }
    .hint("the agent was stopped; what it has done stays")
}
