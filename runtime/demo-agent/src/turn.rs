//! A turn of the demo agent: it does what the lines of the prompt say, one after the other.

mod client;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::Client;
use agent_client_protocol::Error;
use agent_client_protocol::ErrorCode;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::AvailableCommand;
use agent_client_protocol::v1::schema::AvailableCommandsUpdate;
use agent_client_protocol::v1::schema::ContentBlock;
use agent_client_protocol::v1::schema::ContentChunk;
use agent_client_protocol::v1::schema::CurrentModeUpdate;
use agent_client_protocol::v1::schema::EmbeddedResourceResource;
use agent_client_protocol::v1::schema::Plan;
use agent_client_protocol::v1::schema::PlanEntry;
use agent_client_protocol::v1::schema::PlanEntryPriority;
use agent_client_protocol::v1::schema::PlanEntryStatus;
use agent_client_protocol::v1::schema::PromptResponse;
use agent_client_protocol::v1::schema::SessionInfoUpdate;
use agent_client_protocol::v1::schema::SessionNotification;
use agent_client_protocol::v1::schema::SessionUpdate;
use agent_client_protocol::v1::schema::StopReason;
use agent_client_protocol::v1::schema::UsageUpdate;
use tokio_util::sync::CancellationToken;

use super::DemoAgent;
use super::command;
use super::directive;
use super::directive::Directive;
use super::live;
use super::live::Live;
use super::store::Speaker;
use super::store::Spoken;
use super::wire;

/// The size of the context, in tokens, that the agent claims to have.
const CONTEXT_SIZE: u64 = 200_000;

/// How many characters are taken for a token: about what it is with real ones.
const TOKEN_CHARS: u64 = 4;

/// How long the title of a session can become, in characters: it is shown in lists.
const TITLE_CHARS: usize = 60;

/// After how many messages a flood waits until they are written. The library's queue has no limit; without the
/// wait a flood would be in our memory first as a whole.
const FLOOD_BATCH: usize = 64;

/// Why a turn ended early.
#[derive(Debug)]
pub(super) enum Stop {
    /// The client wanted it.
    Cancelled,
    /// A directive did.
    Failed(String),
}

/// A turn.
pub(super) struct Turn {
    pub(super) agent: Arc<DemoAgent>,
    pub(super) live: Arc<Live>,
    pub(super) cx: ConnectionTo<Client>,
    pub(super) cancel: CancellationToken,
    /// The text of the last tool result.
    last: String,
    /// What was said in this turn.
    said: String,
    /// Whether what is said next belongs to the same message.
    speaking: bool,
}

impl Turn {
    /// A turn that has yet to run.
    pub(super) fn new(
        agent: Arc<DemoAgent>,
        live: Arc<Live>,
        cx: ConnectionTo<Client>,
        cancel: CancellationToken,
    ) -> Self {
        let (last, said) = (String::new(), String::new());
        Self { agent, live, cx, cancel, last, said, speaking: false }
    }

    /// Runs to its end.
    pub(super) async fn run(mut self, prompt: Vec<ContentBlock>) -> Result<PromptResponse, Error> {
        let prompt = Prompt::new(&prompt);
        self.heard(&prompt);
        let outcome = self.follow(&prompt).await;
        self.over();
        match outcome {
            Ok(()) => Ok(PromptResponse::new(StopReason::EndTurn)),
            Err(Stop::Cancelled) => Ok(PromptResponse::new(StopReason::Cancelled)),
            Err(Stop::Failed(text)) => Err(Error::new(ErrorCode::INTERNAL_ERROR, text)),
        }
    }

    /// Remembers the prompt, before anything can go wrong with it. The first one gives the session its title.
    fn heard(&self, prompt: &Prompt) {
        let titled = {
            let mut state = self.live.state();
            let spoken = Spoken { by: Speaker::User, text: prompt.whole.clone() };
            state.stored.messages.push(spoken);
            let first = state.stored.title.is_none();
            if first {
                state.stored.title = Some(title_of(&prompt.whole));
            }
            first.then(|| state.stored.title.clone()).flatten()
        };
        self.agent.keep(&self.live);
        if let Some(title) = titled {
            self.titled(title);
        }
    }

    /// Remembers what was said, and says how full the context is.
    fn over(&self) {
        let (used, size) = {
            let mut state = self.live.state();
            if !self.said.is_empty() {
                let spoken = Spoken { by: Speaker::Agent, text: self.said.clone() };
                state.stored.messages.push(spoken);
            }
            let chars: usize =
                state.stored.messages.iter().map(|message| message.text.chars().count()).sum();
            state.usage.unwrap_or((chars as u64 / TOKEN_CHARS, CONTEXT_SIZE))
        };
        self.agent.keep(&self.live);
        self.update(SessionUpdate::UsageUpdate(UsageUpdate::new(used, size)));
    }

    async fn follow(&mut self, prompt: &Prompt) -> Result<(), Stop> {
        let directives = directive::parse(&prompt.told);
        if directives.is_empty() {
            self.say(&format!("You said: {}", prompt.whole)).await?;
        }
        for directive in directives {
            self.go_on()?;
            let directive = directive.with_last(&self.last);
            let speaks = self.obey(directive, prompt).await?;
            self.speaking = speaks;
        }
        self.go_on()
    }

    /// Does one thing; true if that was to say something.
    async fn obey(&mut self, directive: Directive, prompt: &Prompt) -> Result<bool, Stop> {
        let text = match directive {
            Directive::Say(text) | Directive::Wrong(text) => text,
            Directive::Shout(text) => text.to_uppercase(),
            Directive::Prompt => prompt.whole.clone(),
            Directive::Tools => self.live.servers.describe().await,
            Directive::Cwd => self.live.cwd.display().to_string(),
            Directive::Env(name) => self.variable(&name),
            Directive::Permit { kind, title, input } => self.permit(&kind, title, input).await?,
            Directive::PermitTwice(title) => self.permit_twice(title).await?,
            Directive::UnknownRequest(method) => self.unknown_request(&method).await?,
            Directive::ClientRead(path) => self.client_read(&path).await?,
            Directive::ClientWrite { path, content } => self.client_write(&path, content).await?,
            Directive::ClientRun(command) => self.client_run(command).await?,
            Directive::SpawnOrphan => command::spawn_orphan(),
            Directive::Mode(id) => match self.switch_mode(&id) {
                Ok(()) => return Ok(false),
                Err(why) => why,
            },
            silent => {
                self.act(silent).await?;
                return Ok(false);
            }
        };
        self.say(&text).await?;
        Ok(true)
    }

    /// Does what is not followed by words.
    async fn act(&mut self, directive: Directive) -> Result<(), Stop> {
        match directive {
            Directive::Think(text) => self.think(&text).await?,
            Directive::Plan(steps) => self.plan(steps),
            Directive::Call(call) => self.last = self.call(call).await?,
            Directive::Parallel(calls) => {
                let calls: Vec<_> = calls.into_iter().map(|call| self.call(call)).collect();
                let results = futures::future::join_all(calls).await;
                self.last = results.into_iter().collect::<Result<Vec<_>, _>>()?.join("\n");
            }
            Directive::Run(command) => self.last = self.run_command(&command).await?,
            Directive::Write { path, content } => self.last = self.write(&path, content).await?,
            Directive::Replace { path, old, new } => {
                self.last = self.replace(&path, old, new).await?;
            }
            Directive::Read(path) => self.last = self.read(&path).await?,
            Directive::Wait(time) => self.wait(time).await?,
            Directive::Fail(text) => return Err(Stop::Failed(text)),
            Directive::Crash(code) => {
                self.agent.outlet.drained(&self.cx).await;
                super::exit("crashing, as the prompt says", code);
            }
            Directive::Flood { count, bytes } => self.flood(count, bytes).await?,
            Directive::Clock { count, pause } => self.tell_time(count, pause).await?,
            Directive::Garbage(text) => {
                let _ = wire::send_raw(&self.cx, &text);
            }
            Directive::UnknownUpdate => self.unknown_update(),
            Directive::UnknownNotification(method) => self.unknown_notification(&method),
            Directive::Deaf => self.agent.go_deaf(),
            Directive::Title(title) => {
                self.live.state().stored.title = Some(title.clone());
                self.titled(title);
            }
            Directive::Usage { used, size } => {
                self.live.state().usage = Some((used, size));
                self.update(SessionUpdate::UsageUpdate(UsageUpdate::new(used, size)));
            }
            Directive::Commands(names) => {
                let commands = names.iter().map(|name| AvailableCommand::new(name, name));
                let commands = AvailableCommandsUpdate::new(commands.collect());
                self.update(SessionUpdate::AvailableCommandsUpdate(commands));
            }
            // Followed by words, and done already.
            _ => {}
        }
        Ok(())
    }

    /// Tells the client something.
    pub(super) fn update(&self, update: SessionUpdate) {
        // It fails when the client has gone, and then the turn ends anyway.
        let _ = self.cx.send_notification(SessionNotification::new(self.live.id.clone(), update));
    }

    fn titled(&self, title: String) {
        let info = SessionInfoUpdate::new().title(title);
        self.update(SessionUpdate::SessionInfoUpdate(info));
    }

    /// An error once the turn was cancelled.
    fn go_on(&self) -> Result<(), Stop> {
        if self.cancel.is_cancelled() { Err(Stop::Cancelled) } else { Ok(()) }
    }

    /// Waits for something, unless the turn is cancelled.
    pub(super) async fn unless_cancelled<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<T, Stop> {
        self.cancel.run_until_cancelled(work).await.ok_or(Stop::Cancelled)
    }

    async fn wait(&self, time: Duration) -> Result<(), Stop> {
        self.unless_cancelled(tokio::time::sleep(time)).await
    }

    /// Between two pieces of a message.
    async fn breathe(&self) -> Result<(), Stop> {
        let slow = self.agent.options.slow;
        if slow.is_zero() { self.go_on() } else { self.wait(slow).await }
    }

    /// Says something, in pieces.
    async fn say(&mut self, text: &str) -> Result<(), Stop> {
        if !self.said.is_empty() {
            self.said.push('\n');
        }
        let text = if self.speaking { format!("\n{text}") } else { text.to_owned() };
        self.said.push_str(text.trim_start_matches('\n'));
        for chunk in directive::chunks(&text) {
            self.update(SessionUpdate::AgentMessageChunk(ContentChunk::new(chunk.into())));
            self.breathe().await?;
        }
        Ok(())
    }

    async fn think(&self, text: &str) -> Result<(), Stop> {
        for chunk in directive::chunks(text) {
            self.update(SessionUpdate::AgentThoughtChunk(ContentChunk::new(chunk.into())));
            self.breathe().await?;
        }
        Ok(())
    }

    fn plan(&self, steps: Vec<String>) {
        let entry =
            |step| PlanEntry::new(step, PlanEntryPriority::Medium, PlanEntryStatus::Pending);
        let plan = Plan::new(steps.into_iter().map(entry).collect());
        self.update(SessionUpdate::Plan(plan));
    }

    fn switch_mode(&self, id: &str) -> Result<(), String> {
        if self.agent.options.no_modes || !live::is_mode(id) {
            return Err(format!("there is no mode {id}"));
        }
        self.live.state().stored.mode = id.to_owned();
        let update = CurrentModeUpdate::new(id.to_owned());
        self.update(SessionUpdate::CurrentModeUpdate(update));
        Ok(())
    }

    /// Says the time, again and again, each time in one piece.
    async fn tell_time(&self, count: usize, pause: Duration) -> Result<(), Stop> {
        for _ in 0..count {
            let chunk = ContentChunk::new(super::clock_ns().to_string().into());
            self.update(SessionUpdate::AgentMessageChunk(chunk));
            self.wait(pause).await?;
        }
        Ok(())
    }

    async fn flood(&self, count: usize, bytes: usize) -> Result<(), Stop> {
        let filler = "x".repeat(bytes);
        for number in 1..=count {
            let chunk = ContentChunk::new(filler.as_str().into());
            self.update(SessionUpdate::AgentMessageChunk(chunk));
            if number % FLOOD_BATCH == 0 {
                self.unless_cancelled(self.agent.outlet.drained(&self.cx)).await?;
            }
        }
        Ok(())
    }

    /// The value of a variable that the program was started with.
    fn variable(&self, name: &str) -> String {
        let mut variables = self.agent.options.environment.iter();
        let value = variables.find(|(set, _)| set == name).map(|(_, value)| value.clone());
        value.unwrap_or_else(|| format!("{name} is not set"))
    }
}

fn title_of(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("Untitled");
    if line.chars().count() <= TITLE_CHARS {
        return line.to_owned();
    }
    line.chars().take(TITLE_CHARS).chain(['…']).collect()
}

/// A prompt as text.
struct Prompt {
    /// Where directives are looked for: what was written, not what was attached.
    told: String,
    /// All of it.
    whole: String,
}

impl Prompt {
    fn new(blocks: &[ContentBlock]) -> Self {
        let written = |block: &ContentBlock| match block {
            ContentBlock::Text(text) => Some(text.text.clone()),
            _ => None,
        };
        let told: Vec<_> = blocks.iter().filter_map(written).collect();
        let whole: Vec<_> = blocks.iter().map(as_text).collect();
        Self { told: told.join("\n"), whole: whole.join("\n") }
    }
}

fn as_text(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[image {}]", image.mime_type),
        ContentBlock::Audio(audio) => format!("[audio {}]", audio.mime_type),
        ContentBlock::ResourceLink(link) => format!("[{}]({})", link.name, link.uri),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            EmbeddedResourceResource::TextResourceContents(text) => {
                format!("{}:\n{}", text.uri, text.text)
            }
            EmbeddedResourceResource::BlobResourceContents(blob) => format!("[{}]", blob.uri),
            _ => "[a resource]".to_owned(),
        },
        _ => "[something else]".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::EmbeddedResource;
    use agent_client_protocol::v1::schema::ResourceLink;
    use agent_client_protocol::v1::schema::TextResourceContents;

    use super::*;

    #[test]
    fn what_is_attached_to_a_prompt_is_shown_and_not_obeyed() {
        let attached = TextResourceContents::new("@crash", "file:///notes.txt");
        let attached = EmbeddedResourceResource::TextResourceContents(attached);
        let prompt = Prompt::new(&[
            "@say one".into(),
            ContentBlock::ResourceLink(ResourceLink::new("a.txt", "file:///a.txt")),
            ContentBlock::Resource(EmbeddedResource::new(attached)),
            "@say two".into(),
        ]);
        assert_eq!(prompt.told, "@say one\n@say two");
        let whole = "@say one\n[a.txt](file:///a.txt)\nfile:///notes.txt:\n@crash\n@say two";
        assert_eq!(prompt.whole, whole);
    }

    #[test]
    fn a_title_is_the_first_line_and_short() {
        assert_eq!(title_of("\n  Fix it \nand more"), "Fix it");
        assert_eq!(title_of(" \n"), "Untitled");
        assert_eq!(title_of(&"ü".repeat(TITLE_CHARS + 1)).chars().count(), TITLE_CHARS + 1);
        assert_eq!(title_of(&"ü".repeat(TITLE_CHARS)), "ü".repeat(TITLE_CHARS));
    }
}
