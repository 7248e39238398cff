//! Prints the events of a session as they come: as JSON, as text for a person, or only the answer.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Map;
use serde_json::Value;
use tenon_host::events::Event;
use tokio::sync::oneshot;

use super::backlog::Backlog;
use super::backlog::MAX_WAITING_BYTES;
use crate::error::CliError;
use crate::output;
use crate::output::YELLOW;
use crate::sanitise::clean;
use crate::terminal::Lookup;
use crate::terminal::RenderOptions;
use crate::terminal::Renderer;
use crate::terminal::screen;

/// How events are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Every event, a line of JSON each.
    Json,
    /// What a person wants to see of them.
    Text,
    /// The answer, when it is complete; warnings go to standard error.
    Quiet,
}

/// A thread that prints events until it is told that there are no more.
pub struct Printer {
    backlog: Arc<Backlog>,
    finished: oneshot::Receiver<()>,
}

impl Printer {
    /// Starts to print; what is to be known of tools and extensions is looked up.
    pub fn start(style: Style, lookup: Lookup) -> Result<Self, CliError> {
        let backlog = Arc::new(Backlog::new(MAX_WAITING_BYTES));
        let (finish, finished) = oneshot::channel();
        let source = backlog.clone();
        std::thread::Builder::new()
            .name("tenon-print".to_owned())
            .spawn(move || {
                print(&source, style, lookup);
                // Whoever waits may have been interrupted.
                let _ = finish.send(());
            })
            .map_err(|error| CliError::new(format!("no thread can be started: {error}")))?;
        Ok(Self { backlog, finished })
    }

    /// What the session gives every event to.
    pub fn tap(&self) -> Arc<dyn Fn(&Event) + Send + Sync> {
        let backlog = self.backlog.clone();
        Arc::new(move |event| backlog.push(event))
    }

    /// Waits until nothing can be printed any more, and says why. Only one may wait.
    pub async fn problem(&self) -> std::io::Error {
        self.backlog.given_up().await
    }

    /// Somebody wants the program to end: what an agent says in pieces is not printed any more.
    pub fn interrupt(&self) {
        self.backlog.interrupt();
    }

    /// Waits until everything is printed; returns why it cannot be, if that is so.
    pub async fn finish(self) -> Option<std::io::Error> {
        self.backlog.close();
        // A thread that has panicked prints nothing more.
        let _ = self.finished.await;
        self.backlog.problem()
    }
}

/// Prints until the last event, or until it cannot.
fn print(backlog: &Backlog, style: Style, lookup: Lookup) {
    let mut show = show(style, lookup);
    let mut print_all = || -> std::io::Result<()> {
        while let Some(batch) = backlog.take() {
            if style != Style::Text {
                show(Some(batch.as_slice()))?;
                continue;
            }
            // Text for a person takes long to lay out. If the program is to end, it must not wait for all of it.
            for group in groups(&batch) {
                match group {
                    [event] => {
                        for piece in pieces(event)
                            .take_while(|_| !(event.ephemeral && backlog.is_interrupted()))
                        {
                            show(Some(std::slice::from_ref(&*piece)))?;
                        }
                    }
                    events if backlog.is_interrupted() => {
                        for event in events.iter().filter(|event| !event.ephemeral) {
                            show(Some(std::slice::from_ref(event)))?;
                        }
                    }
                    events => show(Some(events))?,
                }
            }
        }
        show(None)
    };
    if let Err(error) = print_all() {
        backlog.give_up(&error);
    }
}

/// The field with a part of a message.
const DELTA: &str = "deltaContent";

/// The most of one message that is laid out at once, in bytes.
const PIECE_BYTES: usize = 64 * 1024;

/// Events that are laid out at once: as many as have [`PIECE_BYTES`] of text together, and one at least.
fn groups(batch: &[Event]) -> impl Iterator<Item = &[Event]> {
    let mut rest = batch;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = rest.iter().take_while(|event| {
            bytes += event.data[DELTA].as_str().unwrap_or_default().len();
            bytes <= PIECE_BYTES
        });
        let (group, more) = rest.split_at(fits.count().max(1).min(rest.len()));
        rest = more;
        (!group.is_empty()).then_some(group)
    })
}

/// An event; one that is a long part of a message as several shorter parts.
fn pieces(event: &Event) -> Box<dyn Iterator<Item = Cow<'_, Event>> + '_> {
    let text = event.data[DELTA].as_str().unwrap_or_default();
    if text.len() <= PIECE_BYTES {
        return Box::new(std::iter::once(Cow::Borrowed(event)));
    }
    let fields = event.data.as_object().into_iter().flatten();
    let others = fields.filter(|(name, _)| *name != DELTA);
    let others: Map<_, _> = others.map(|(name, value)| (name.clone(), value.clone())).collect();
    let mut rest = text;
    Box::new(std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, more) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        rest = more;
        let mut data = others.clone();
        data.insert(DELTA.to_owned(), piece.into());
        Some(Cow::Owned(Event {
            kind: event.kind.clone(),
            data: Value::from(data).into(),
            id: event.id.clone(),
            timestamp: event.timestamp.clone(),
            parent_id: event.parent_id.clone(),
            ephemeral: event.ephemeral,
        }))
    }))
}

/// Prints a batch of events, or what is left at the end.
type Show = Box<dyn FnMut(Option<&[Event]>) -> std::io::Result<()>>;

fn show(style: Style, lookup: Lookup) -> Show {
    match style {
        Style::Json => Box::new(|batch: Option<&[Event]>| match batch {
            Some(events) => output::stream_bytes(lines(events).as_bytes()),
            None => Ok(()),
        }),
        Style::Text => {
            let colour = output::is_terminal();
            let width = output::columns();
            let options = RenderOptions { colour, width, quiet: false };
            let mut renderer = Renderer::with_lookup(options, lookup);
            Box::new(move |batch: Option<&[Event]>| {
                let text: String = match batch {
                    Some(events) => events.iter().map(|event| renderer.event(event)).collect(),
                    None => renderer.finish(),
                };
                if text.is_empty() { Ok(()) } else { screen::print(&text) }
            })
        }
        Style::Quiet => {
            let mut answer = Answer::default();
            Box::new(move |batch: Option<&[Event]>| match batch {
                Some(events) => {
                    for warning in events.iter().filter_map(|event| answer.hear(event)) {
                        let warning = clean(&warning);
                        output::note(format_args!("{YELLOW}warning{YELLOW:#}: {warning}"));
                    }
                    Ok(())
                }
                None => match answer.text.take() {
                    // A terminal would obey what is in it.
                    Some(text) if output::is_terminal() => {
                        output::stream(format_args!("{}\n", clean(&text)))
                    }
                    Some(text) => output::stream(format_args!("{text}\n")),
                    None => Ok(()),
                },
            })
        }
    }
}

/// Events as lines of JSON, as they are recorded.
fn lines(events: &[Event]) -> String {
    let mut text = String::new();
    for event in events {
        // Plain strings and JSON values always have a JSON text.
        text += &serde_json::to_string(event).unwrap_or_default();
        text.push('\n');
    }
    text
}

/// What the agent has said last.
#[derive(Debug, Default)]
struct Answer {
    text: Option<String>,
}

impl Answer {
    /// Hears an event; returns what the person should be warned of.
    fn hear(&mut self, event: &Event) -> Option<String> {
        let said = |field: &str| event.data[field].as_str().map(str::to_owned);
        match event.kind.as_str() {
            // What it said before it used its tools is not the answer.
            "assistant.message" => {
                let text = said("content").filter(|text| !text.trim().is_empty());
                self.text = text.or_else(|| self.text.take());
                None
            }
            "session.warning" => said("message"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_printed_as_they_are_recorded() {
        let text = lines(&[
            Event::for_test("a", json!({ "z": 1, "a": "\u{7f}\n" })),
            Event::for_test("b", json!({})),
        ]);
        let expected = concat!(
            r#"{"type":"a","data":{"z":1,"a":""#,
            "\u{7f}",
            r#"\n"},"id":"1","timestamp":"2026-01-01T00:00:00.000Z","parentId":null}"#,
            "\n",
            r#"{"type":"b","data":{},"id":"1","timestamp":"2026-01-01T00:00:00.000Z","parentId":null}"#,
            "\n"
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn short_parts_of_a_message_are_laid_out_together() {
        let part =
            |bytes| Event::for_test("assistant.message_delta", json!({ DELTA: "x".repeat(bytes) }));
        let sizes = |batch: &[Event]| groups(batch).map(<[Event]>::len).collect::<Vec<_>>();
        assert_eq!(sizes(&vec![part(1); 1000]), [1000]);
        assert_eq!(
            sizes(&[part(1), part(PIECE_BYTES), part(1), part(PIECE_BYTES + 1)]),
            [1, 1, 1, 1]
        );
        assert_eq!(sizes(&vec![part(PIECE_BYTES / 2); 5]), [2, 2, 1]);
        assert!(sizes(&[]).is_empty());
    }

    #[test]
    fn a_long_part_of_a_message_is_laid_out_in_pieces() {
        let text = "\u{1f600}".repeat(PIECE_BYTES);
        let long =
            Event::for_test("assistant.message_delta", json!({ "messageId": "m", DELTA: text }));
        let pieces: Vec<_> = pieces(&long).collect();
        assert!(pieces.len() > 3 && pieces.iter().all(|piece| piece.data["messageId"] == "m"));
        let all: String = pieces.iter().filter_map(|piece| piece.data[DELTA].as_str()).collect();
        assert_eq!(all, text);
        let short = Event::for_test("assistant.message_delta", json!({ DELTA: "x" }));
        assert_eq!(super::pieces(&short).count(), 1);
    }

    #[test]
    fn the_answer_is_what_was_said_last_and_not_nothing() {
        let mut answer = Answer::default();
        for (kind, data) in [
            ("assistant.message", json!({ "content": "let me look" })),
            ("tool.execution_complete", json!({ "toolName": "view" })),
            ("assistant.message", json!({ "content": "42" })),
            ("assistant.message", json!({ "content": "\n" })),
        ] {
            assert_eq!(answer.hear(&Event::for_test(kind, data)), None);
        }
        assert_eq!(answer.text.as_deref(), Some("42"));
    }

    #[test]
    fn warnings_are_for_the_person() {
        let warning =
            Event::for_test("session.warning", json!({ "warningType": "x", "message": "odd" }));
        assert_eq!(Answer::default().hear(&warning).as_deref(), Some("odd"));
    }
}
