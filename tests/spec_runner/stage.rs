//! What agent, front, session and script of one run share: the transcript, the events seen so far,
//! signals, and what agent and front are to do next.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use serde_json::Value;
use tenon_host::events::Event;
use tenon_host::session::ToolOutcome;
use tokio::sync::watch;

use crate::script::Answer;
use crate::script::Reply;
use crate::script::Step;
use crate::text;

/// See the module.
pub struct Stage {
    show: Vec<String>,
    lines: Mutex<Vec<String>>,
    names: Mutex<Vec<(String, &'static str)>>,
    events: watch::Sender<Vec<Seen>>,
    signals: watch::Sender<Vec<String>>,
    turns: Mutex<VecDeque<Vec<Step>>>,
    answers: Mutex<Vec<Answer>>,
}

/// An event that was emitted.
struct Seen {
    kind: String,
    data: Value,
}

impl Stage {
    /// An empty stage that shows the events of the given globs.
    pub fn new(show: Vec<String>) -> Self {
        Self {
            show,
            lines: Mutex::default(),
            names: Mutex::default(),
            events: watch::Sender::new(Vec::new()),
            signals: watch::Sender::new(Vec::new()),
            turns: Mutex::default(),
            answers: Mutex::default(),
        }
    }

    /// Adds to the transcript. A text of several lines is indented from the second on.
    pub fn write(&self, line: impl AsRef<str>) {
        let line = line.as_ref().trim_end().replace('\n', "\n    ");
        lock(&self.lines).push(line.replace("    \n", "\n"));
    }

    /// Adds the outcome of a tool call to the transcript.
    pub fn write_outcome(&self, prefix: &str, outcome: &ToolOutcome) {
        let result = &outcome.result;
        let how = text::json(&result.result_type);
        self.write(format!(
            "{prefix} {} {}",
            how.trim_matches('"'),
            outcome.clone().text_for_model()
        ));
        if let Some(error) =
            result.error.as_ref().filter(|&error| *error != result.text_result_for_llm)
        {
            self.write(format!("  error: {error}"));
        }
        if let Some(location) = &result.location {
            self.write(format!("  at {}:{}", location.file, location.line));
        }
        if !result.rest.is_empty() {
            self.write(format!("  more: {}", text::json(&result.rest)));
        }
        if outcome.suppress_output {
            self.write("  output suppressed");
        }
        if outcome.ends_turn {
            self.write("  ends turn");
        }
    }

    /// Gives the session its names in the transcript.
    pub fn name_session(&self, folder: &Path, id: &str) {
        let folder = folder.to_string_lossy().into_owned();
        *lock(&self.names) = vec![(folder, "[SESSION]"), (id.to_owned(), "[ID]")];
    }

    /// What was written so far, with names for what differs from run to run: the session's and the
    /// given ones.
    pub fn transcript(&self, names: &[(String, &'static str)]) -> String {
        let mut text = lock(&self.lines).join("\n");
        text.push('\n');
        let names: Vec<_> = lock(&self.names).iter().chain(names).cloned().collect();
        text::normalise(&text, &names)
    }

    /// Takes note of an event.
    pub fn see(&self, event: &Event) {
        let kind = event.kind.clone();
        let data = text::without_stacks(event.data.value().clone());
        if self.show.iter().any(|glob| text::matches(glob, &kind)) {
            let ephemeral = if event.ephemeral { "~" } else { "" };
            self.write(format!("{ephemeral}event {kind} {}", text::json(&data)));
        }
        self.events.send_modify(|events| events.push(Seen { kind, data }));
    }

    /// How many events were seen.
    pub fn seen(&self) -> usize {
        self.events.borrow().len()
    }

    /// Waits for an event of a type whose data contain `part`, among those from `start` on; returns the
    /// position after it.
    pub async fn event(&self, start: usize, kind: &str, part: Option<&Value>) -> usize {
        let wanted =
            |seen: &Seen| seen.kind == kind && part.is_none_or(|part| contains(&seen.data, part));
        let find = |events: &Vec<Seen>| events.iter().skip(start).position(wanted);
        let mut events = self.events.subscribe();
        // The sender lives as long as we do.
        let events = events.wait_for(|events| find(events).is_some()).await;
        events.ok().and_then(|events| find(&events)).map_or(start, |position| start + position + 1)
    }

    /// Lets one step that waits for a signal go on.
    pub fn signal(&self, name: String) {
        self.signals.send_modify(|signals| signals.push(name));
    }

    /// Waits for a signal and uses it up.
    pub async fn signalled(&self, name: &str) {
        let mut signals = self.signals.subscribe();
        loop {
            let taken = self.signals.send_if_modified(|signals| {
                let found = signals.iter().position(|signal| signal == name);
                found.map(|position| signals.remove(position)).is_some()
            });
            if taken {
                return;
            }
            // The sender lives as long as we do.
            let _ = signals.wait_for(|signals| signals.iter().any(|signal| signal == name)).await;
        }
    }

    /// Says what the agent does with a prompt that has none yet.
    pub fn push_turn(&self, steps: Vec<Step>) {
        lock(&self.turns).push_back(steps);
    }

    /// What the agent does with the prompt that it has just got.
    pub fn next_turn(&self) -> Option<Vec<Step>> {
        lock(&self.turns).pop_front()
    }

    /// Says what the front answers.
    pub fn push_answer(&self, answer: Answer) {
        lock(&self.answers).push(answer);
    }

    /// The front's next answer of a kind, once it may be given.
    pub async fn next_answer<T>(&self, pick: impl Fn(&Reply) -> Option<T>) -> Option<T> {
        let (reply, wait) = {
            let mut answers = lock(&self.answers);
            let position = answers.iter().position(|answer| pick(&answer.answer).is_some())?;
            let Answer { answer, wait } = answers.remove(position);
            (pick(&answer), wait)
        };
        if let Some(name) = wait {
            self.signalled(&name).await;
        }
        reply
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether everything in `part` is in `whole`.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, part)| whole.get(key).is_some_and(|whole| contains(whole, part)))
        }
        _ => whole == part,
    }
}
