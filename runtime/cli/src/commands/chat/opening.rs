//! A conversation begins: a new one, or one that was there before.

use std::sync::Arc;

use tenon_acp::conversation::Conversation;
use tenon_acp::record::SessionRecord;
use tenon_host::Status;

use super::Chat;
use super::Open;
use super::feed::Feed;
use super::render_options;
use super::waiting::OnInterrupt;
use super::waiting::Waited;
use crate::agent_choice;
use crate::agent_choice::Wishes;
use crate::error::CliError;
use crate::output::BOLD;
use crate::output::DIM;
use crate::output::RED;
use crate::output::YELLOW;
use crate::output::count;
use crate::sanitise::one_line;
use crate::terminal::Lookup;
use crate::terminal::Renderer;
use crate::terminal::TerminalFront;

/// Which conversation.
pub enum Which {
    /// A new one, with the agent of the last.
    New,
    /// One that was there before, with its agent.
    Stored(SessionRecord),
}

impl Chat<'_> {
    /// Ends the conversation that is open, and begins another. Everything is loaded anew.
    pub(super) async fn begin(&mut self, which: Which) -> Result<(), CliError> {
        // What the command line says is seen from there.
        std::env::set_current_dir(&self.started_in)?;
        let (record, named) = match &which {
            Which::New => (None, self.agent.as_deref()),
            Which::Stored(record) => (Some(record), None),
        };
        let definition = agent_choice::definition(self.args, named, record)?;
        let permissions = agent_choice::permissions(self.options.permissions.as_deref())?;
        let wishes = Wishes {
            model: self.options.model.as_deref(),
            mode: self.options.mode.as_deref(),
            directories: &self.options.dir,
            resume: record,
        };
        let (front, asks) = if self.input.is_person() {
            let (asks, waiting) = TerminalFront::channel();
            (TerminalFront::through(asks), waiting)
        } else {
            (TerminalFront::plain(), TerminalFront::channel().1)
        };
        let (args, chosen) = (self.args, definition.clone());
        let mut options = self.input.paused(|| {
            agent_choice::conversation_options(args, chosen, permissions, Some(front), &wishes)
        })?;
        self.close().await;
        self.asks = asks;
        let lookup = Lookup::default();
        let (feed, tap) = Feed::new();
        options.session.tap = Some(tap);
        self.feed = feed;
        self.loaded = None;
        self.renderer = Renderer::with_lookup(render_options(), lookup.clone());
        let label = format!("starting {}", definition.name);
        let opening = Box::pin(Conversation::open(options));
        let conversation = match self.wait(&label, OnInterrupt::Leave, opening).await {
            Waited::Done(Ok(conversation)) => Arc::new(conversation),
            Waited::Done(Err(error)) => return Err(agent_choice::explain(&error, &definition)),
            Waited::Left | Waited::Stopped => return Err(CliError::new("interrupted")),
        };
        lookup.attach(conversation.session());
        let control = agent_choice::serve_control(conversation.session());
        self.agent = Some(definition.name.clone());
        self.open = Some(Open { conversation, definition, control });
        self.greet(record);
        if let Some(loaded) = self.loaded.take() {
            self.show(&loaded);
        }
        Ok(())
    }

    /// Says with whom one talks, where, and what there is.
    fn greet(&mut self, record: Option<&SessionRecord>) {
        if !self.input.is_person() {
            return;
        }
        let Some(open) = &self.open else { return };
        let session = open.conversation.session();
        let extensions = session.list();
        let of = |status: Status| extensions.iter().filter(move |info| info.status == status);
        let mut parts = vec![count(of(Status::Running).count(), "extension", "extensions")];
        let noted = [(Status::Failed, "failed", RED), (Status::Untrusted, "not trusted", YELLOW)];
        for (status, word, style) in noted {
            let number = of(status).count();
            if number > 0 {
                parts.push(format!("{style}{number} {word}{style:#}"));
            }
        }
        let mut lines = vec![
            format!(
                "{BOLD}{}{BOLD:#} in {} {DIM}with{DIM:#} {}",
                open.definition.title,
                session.cwd().display(),
                parts.join(", ")
            ),
            format!("{DIM}/help lists commands, Esc interrupts, Ctrl-D ends{DIM:#}"),
        ];
        if let Some(record) = record {
            let title = record.title.as_deref().unwrap_or(&record.id);
            lines.push(format!("{DIM}goes on with:{DIM:#} {}", one_line(title, 100)));
        }
        lines.iter().for_each(|line| self.say(line));
    }
}
