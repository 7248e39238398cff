//! What extensions and Tenon have to say to the person, as messages in the client.
//!
//! ACP has no place for an extension's words. A client that shows notices gets what is merely good to know as
//! notices; everything else, and every other client, gets a quotation in the agent's message:
//! `> **tenon · project:guard** text`, with `_meta.tenon` saying of what kind it is and whose.

use std::time::Duration;
use std::time::Instant;

use serde_json::Value;
use serde_json::json;
use tenon_host::ExtensionInfo;
use tenon_host::Session;
use tenon_host::Status;
use tenon_host::events::Event;

/// The most messages of a session within [`WINDOW`]. A person reads no more; the logs have the rest.
pub const MAX_MESSAGES: u32 = 20;

/// How long [`MAX_MESSAGES`] are good for.
pub const WINDOW: Duration = Duration::from_secs(10);

/// The longest text of a message, in characters: about a screen. The logs have the rest.
pub const MAX_CHARS: usize = 4_000;

/// What a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Good to know.
    Info,
    /// Something went wrong, and the session goes on.
    Warning,
    /// Something failed.
    Error,
    /// An extension did not let a tool be used.
    Denied,
    /// An extension did not let a prompt through.
    Blocked,
    /// Extensions came, went, or were loaded again.
    Reload,
    /// A page can be looked at.
    Canvas,
    /// Extensions do not run until the person says so.
    Trust,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Denied => "denied",
            Self::Blocked => "blocked",
            Self::Reload => "reload",
            Self::Canvas => "canvas",
            Self::Trust => "trust",
        }
    }

    /// As a notice, which a client may show for a moment or not at all; `None` for what must be seen.
    fn severity(self) -> Option<&'static str> {
        match self {
            Self::Info | Self::Reload => Some("info"),
            Self::Warning => Some("warning"),
            Self::Error => Some("error"),
            Self::Denied | Self::Blocked | Self::Canvas | Self::Trust => None,
        }
    }
}

/// A message for the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visible {
    /// What it is about.
    pub kind: Kind,
    /// Who says it: `scope:name`; nobody in particular: Tenon.
    pub extension: Option<String>,
    /// What is said, as Markdown.
    pub text: String,
    /// The tool call it is about; nothing of the same kind is said of it twice.
    pub call: Option<String>,
}

impl Visible {
    /// A message.
    pub fn new(kind: Kind, extension: Option<&str>, text: impl Into<String>) -> Self {
        Self { kind, extension: extension.map(str::to_owned), text: text.into(), call: None }
    }

    /// The same about a tool call.
    fn about(mut self, data: &Value) -> Self {
        self.call = data["toolCallId"].as_str().map(str::to_owned);
        self
    }

    /// The update that shows it.
    pub fn as_update(&self, notices: bool) -> Value {
        let mut about = json!({ "kind": self.kind.as_str() });
        if let Some(extension) = &self.extension {
            about["extension"] = extension.as_str().into();
        }
        let meta = json!({ "tenon": about });
        let text = shortened(self.text.trim());
        match self.kind.severity() {
            Some(severity) if notices => {
                let who = self.extension.as_deref().unwrap_or("tenon");
                let (first, rest) = text.split_once('\n').unwrap_or((text.as_str(), ""));
                let mut notice = json!({
                    "sessionUpdate": "notice",
                    "severity": severity,
                    "title": format!("{who}: {first}"),
                    "_meta": meta,
                });
                if !rest.trim().is_empty() {
                    notice["description"] = rest.trim().into();
                }
                notice
            }
            _ => json!({
                "sessionUpdate": "agent_message_chunk",
                "content": { "type": "text", "text": quoted(self.extension.as_deref(), &text) },
                "_meta": meta,
            }),
        }
    }

    /// What an event says to the person; `None` if nothing.
    pub fn of_event(event: &Event) -> Option<Self> {
        // The record does not keep ephemeral events, and the person does not see them either.
        if event.ephemeral {
            return None;
        }
        // The kind comes first: this runs under the event bus's lock, and most events have arguments or results, which are
        // long, and nothing to say.
        match &*event.kind {
            "session.info" => Self::of_line(Kind::Info, &event.data, "infoType"),
            "session.warning" => Self::of_line(Kind::Warning, &event.data, "warningType"),
            "session.error" => Self::of_line(Kind::Error, &event.data, "errorType"),
            "tool.execution_complete" => Self::of_denial(&event.data.only(&DENIAL_FIELDS)),
            _ => None,
        }
    }

    fn of_line(kind: Kind, data: &Value, type_field: &str) -> Option<Self> {
        if is_suppressed(data) {
            return None;
        }
        let what = data[type_field].as_str().unwrap_or_default();
        // The agent's own words reach the client as the agent sent them.
        if what == "agent" {
            return None;
        }
        let kind = match what {
            "policy_blocked" => Kind::Blocked,
            "denied" => Kind::Denied,
            _ => kind,
        };
        let extension = data["extensionId"].as_str();
        let message = data["message"].as_str()?;
        let mut text = extension.map_or(message, |id| without_name(message, id)).to_owned();
        for more in ["tip", "url"] {
            if let Some(more) = data[more].as_str() {
                text = format!("{text}\n{more}");
            }
        }
        Some(Self::new(kind, extension, text).about(data))
    }

    /// A tool that was not used because an extension or a rule said so. What the person denied is known to the
    /// person.
    fn of_denial(data: &Value) -> Option<Self> {
        if is_suppressed(data) {
            return None;
        }
        let error = &data["error"];
        let message = error["message"].as_str()?;
        // A client's answer has no words in it; with words it was a rule that answered.
        let by_person = ["Denied by the person", "Not permitted"]
            .iter()
            .find_map(|said| message.strip_prefix(*said))
            .is_some_and(|more| !more.starts_with(':'));
        if error["code"] != "denied" || by_person {
            return None;
        }
        let tool = data["toolName"].as_str().unwrap_or("a tool");
        let by = message.strip_prefix("Denied by ").filter(|by| !by.starts_with("the person"));
        let Some(by) = by else {
            return Some(Self::new(Kind::Denied, None, format!("`{tool}`: {message}")).about(data));
        };
        let (name, reason) = by.split_once(char::is_whitespace).unwrap_or((by, ""));
        let name = name.trim_end_matches(':');
        let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        let text = format!("denied `{tool}`{because}");
        Some(Self::new(Kind::Denied, Some(name), text).about(data))
    }
}

/// The fields of `tool.execution_complete` that a denial is told from.
const DENIAL_FIELDS: [&str; 4] = ["toolCallId", "toolName", "error", "suppressOutput"];

/// Whether something is said on request only.
fn is_suppressed(data: &Value) -> bool {
    data["suppressOutput"] == true
}

/// A message without the name of its extension at the beginning: that is shown anyway.
fn without_name<'a>(message: &'a str, extension: &str) -> &'a str {
    let rest = message.strip_prefix(extension).map(|rest| rest.trim_start_matches([':', ' ']));
    rest.filter(|rest| !rest.is_empty()).unwrap_or(message)
}

/// A quotation that begins and ends wherever it stands in the agent's message.
fn quoted(extension: Option<&str>, text: &str) -> String {
    let who = extension.map(|extension| format!(" · {extension}")).unwrap_or_default();
    let lines = text.replace("\r\n", "\n").replace('\n', "\n> ");
    format!("\n> **tenon{who}** {lines}\n\n")
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text.to_owned(),
    }
}

/// How many messages there are; more than a person can read are left out and counted.
#[derive(Debug, Default)]
pub struct Rate {
    begun: Option<Instant>,
    shown: u32,
    left_out: u32,
}

impl Rate {
    /// Whether one more may be shown now.
    pub fn admits(&mut self, now: Instant) -> bool {
        if self.begun.is_none_or(|begun| now.duration_since(begun) >= WINDOW) {
            self.begun = Some(now);
            self.shown = 0;
        }
        if self.shown >= MAX_MESSAGES {
            self.left_out += 1;
            return false;
        }
        self.shown += 1;
        true
    }

    /// A word about those that were left out since it was last asked.
    pub fn omission(&mut self) -> Option<Visible> {
        let count = std::mem::take(&mut self.left_out);
        let text =
            format!("left out {count} more messages; `tenon ext logs` shows what extensions said");
        (count > 0).then(|| Visible::new(Kind::Warning, None, text))
    }
}

/// An extension and how it fares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// `scope:name`.
    pub id: String,
    /// Where it is in its life.
    pub status: Status,
    /// How often it was loaded.
    pub generation: u32,
    /// Why it does not run.
    pub error: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Standing {
    /// How the extensions of a session fare.
    pub fn of(session: &Session) -> Vec<Self> {
        let one = |info: ExtensionInfo| Self {
            id: info.id,
            status: info.status,
            generation: info.generation,
            error: info.error.as_ref().map(|error| error.what.to_string()),
            hint: info.error.and_then(|error| error.hint),
        };
        session.list().into_iter().map(one).collect()
    }

    fn why(&self) -> String {
        self.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default()
    }
}

/// What has become of extensions; nothing if nothing has changed.
pub fn changes(before: &[Standing], now: &[Standing]) -> Vec<Visible> {
    let old = |id: &str| before.iter().find(|standing| standing.id == id);
    let mut messages = Vec::new();
    let mut tell = |id: &str, kind: Kind, text: String| {
        messages.push(Visible::new(kind, Some(id), text));
    };
    for standing in now {
        let Standing { id, status, generation, .. } = standing;
        let was = old(id);
        let same_load = was.is_some_and(|was| was.generation == *generation);
        let same_status = was.is_some_and(|was| was.status == *status);
        let why = standing.why();
        match status {
            Status::Running if was.is_none() => tell(id, Kind::Reload, "is new, and runs".into()),
            Status::Running if !same_load => {
                tell(id, Kind::Reload, format!("was loaded again (generation {generation})"));
            }
            Status::Failed if !(same_load && same_status) => {
                tell(id, Kind::Warning, format!("does not run{why}"));
            }
            Status::Disabled if !same_status => {
                tell(id, Kind::Reload, format!("is switched off{why}"));
            }
            _ => {}
        }
    }
    for standing in before {
        if !now.iter().any(|still| still.id == standing.id) {
            tell(&standing.id, Kind::Reload, "is gone".into());
        }
    }
    messages
}

/// What is said before the first prompt of a session: what does not run, and what to do about it. `root` is the
/// repository.
pub fn first_words(extensions: &[Standing], root: &str) -> Vec<Visible> {
    let of = |status: Status| extensions.iter().filter(move |standing| standing.status == status);
    // All of a repository have the same reason, most of the time.
    let mut reasons: Vec<(&Standing, Vec<&str>)> = Vec::new();
    for standing in of(Status::Untrusted) {
        let same = |(first, _): &(&Standing, Vec<&str>)| {
            first.error == standing.error && first.hint == standing.hint
        };
        match reasons.iter().position(same) {
            Some(place) => reasons[place].1.push(&standing.id),
            None => reasons.push((standing, vec![standing.id.as_str()])),
        }
    }
    let mut messages: Vec<_> = reasons
        .into_iter()
        .map(|(first, names)| {
            let (names, why) = (names.join(", "), first.why());
            let hint = first.hint.as_deref().unwrap_or("`tenon trust` trusts this workspace");
            let text = format!(
                "does not run {names}{why}\n{hint}\n\
                 It is done in a terminal, in {root}; the next session has them."
            );
            Visible::new(Kind::Trust, None, text)
        })
        .collect();
    messages.extend(of(Status::Failed).map(|standing| {
        let text = format!("does not run{}", standing.why());
        Visible::new(Kind::Warning, Some(&standing.id), text)
    }));
    messages
}

#[cfg(test)]
mod tests {
    use tenon_host::events::EventData;

    use super::*;

    fn said(kind: &str, data: Value) -> Option<Visible> {
        Visible::of_event(&Event::for_test(kind, data))
    }

    #[test]
    fn a_message_is_a_quotation_that_names_its_extension() {
        let visible = Visible::new(Kind::Info, Some("project:guard"), "one\ntwo\n");
        let update = visible.as_update(false);
        assert_eq!(update["sessionUpdate"], "agent_message_chunk");
        assert_eq!(update["content"]["text"], "\n> **tenon · project:guard** one\n> two\n\n");
        let about = json!({ "kind": "info", "extension": "project:guard" });
        assert_eq!(update["_meta"]["tenon"], about);
        let own = Visible::new(Kind::Trust, None, "x").as_update(true);
        assert_eq!(own["content"]["text"], "\n> **tenon** x\n\n");
        assert_eq!(own["_meta"]["tenon"], json!({ "kind": "trust" }));
    }

    #[test]
    fn a_client_with_notices_gets_them_for_what_need_not_be_seen() {
        let update = Visible::new(Kind::Error, Some("user:a"), "broke\nat line 3").as_update(true);
        assert_eq!(update["sessionUpdate"], "notice");
        assert_eq!(update["severity"], "error");
        assert_eq!(update["title"], "user:a: broke");
        assert_eq!(update["description"], "at line 3");
        let denied = Visible::new(Kind::Denied, Some("user:a"), "x").as_update(true);
        assert_eq!(denied["sessionUpdate"], "agent_message_chunk");
        let known: agent_client_protocol_schema::v1::SessionUpdate =
            serde_json::from_value(update).unwrap();
        assert!(matches!(known, agent_client_protocol_schema::v1::SessionUpdate::Notice(_)));
    }

    #[test]
    fn lines_of_extensions_are_shown_and_those_for_nobody_are_not() {
        let line =
            json!({ "infoType": "notification", "message": "hello", "extensionId": "user:a" });
        let shown = said("session.info", line.clone()).unwrap();
        assert_eq!(shown, Visible::new(Kind::Info, Some("user:a"), "hello"));
        let mut hidden = line.clone();
        hidden["suppressOutput"] = true.into();
        assert_eq!(said("session.info", hidden), None);
        let ephemeral = Event { ephemeral: true, ..Event::for_test("session.info", line) };
        assert_eq!(Visible::of_event(&ephemeral), None);
        let agents = json!({ "errorType": "agent", "message": "the agent said so itself" });
        assert_eq!(said("session.error", agents), None);
        assert_eq!(said("assistant.message", json!({ "content": "x" })), None);
    }

    #[test]
    fn the_name_of_an_extension_is_not_said_twice() {
        let line = json!({
            "warningType": "policy_blocked",
            "message": "user:a blocked the prompt: secrets",
            "extensionId": "user:a",
            "tip": "take them out",
        });
        let shown = said("session.warning", line).unwrap();
        let text = "blocked the prompt: secrets\ntake them out";
        assert_eq!(shown, Visible::new(Kind::Blocked, Some("user:a"), text));
        let summary =
            json!({ "infoType": "cleanup", "message": "user:a: done", "extensionId": "user:a" });
        assert_eq!(said("session.info", summary).unwrap().text, "done");
        let alone = json!({ "infoType": "x", "message": "user:a", "extensionId": "user:a" });
        assert_eq!(said("session.info", alone).unwrap().text, "user:a");
    }

    #[test]
    fn a_denial_names_the_extension_the_tool_and_the_reason() {
        let denied = |message: &str| {
            let error = json!({ "message": message, "code": "denied" });
            said("tool.execution_complete", json!({ "toolName": "bash", "error": error }))
        };
        let by_guard = Visible::new(Kind::Denied, Some("project:guard"), "denied `bash`: no force");
        assert_eq!(denied("Denied by project:guard: no force").unwrap(), by_guard);
        let silent = Visible::new(Kind::Denied, Some("project:guard"), "denied `bash`");
        assert_eq!(denied("Denied by project:guard").unwrap(), silent);
        assert_eq!(denied("Denied by the person"), None);
        assert_eq!(denied("Denied by the person (asked because of user:a: x)"), None);
        assert_eq!(denied("Not permitted"), None);
        for by_rule in
            ["Denied: nobody to ask", "Not permitted: deny-all", "Denied by the person: x"]
        {
            let shown = denied(by_rule).unwrap();
            assert_eq!(shown, Visible::new(Kind::Denied, None, format!("`bash`: {by_rule}")));
        }
        let failed =
            json!({ "toolName": "bash", "error": { "message": "exit 1", "code": "failure" } });
        assert_eq!(said("tool.execution_complete", failed), None);
    }

    #[test]
    fn arguments_and_results_are_not_read_to_see_that_they_say_nothing() {
        let data = json!({ "toolName": "bash", "arguments": {}, "result": { "content": "x" } });
        for kind in [
            "tool.execution_start",
            "external_tool.requested",
            "tool.execution_complete",
            "hook.start",
            "hook.end",
        ] {
            let event = Event::for_test(kind, EventData::written(&data));
            assert_eq!(Visible::of_event(&event), None);
            assert!(!event.data.is_read(), "{kind}");
        }
    }

    #[test]
    fn a_denial_is_told_from_written_data_as_from_a_value() {
        let error = json!({ "message": "Denied by user:a: no", "code": "denied" });
        let mut data = json!({ "toolCallId": "c", "toolName": "bash", "error": error });
        let told = |data: &Value| {
            let written = Event::for_test("tool.execution_complete", EventData::written(data));
            let told = Visible::of_event(&written);
            assert_eq!(told, said("tool.execution_complete", data.clone()));
            told
        };
        assert_eq!(told(&data).unwrap().call.as_deref(), Some("c"));
        data["suppressOutput"] = true.into();
        assert_eq!(told(&data), None);
    }

    #[test]
    fn what_is_said_of_a_tool_call_says_which() {
        let line = json!({
            "infoType": "denied",
            "message": "bash was denied: no force",
            "extensionId": "project:guard",
            "toolCallId": "c1",
        });
        let shown = said("session.info", line).unwrap();
        assert_eq!((shown.kind, shown.call.as_deref()), (Kind::Denied, Some("c1")));
        let error = json!({ "message": "Denied by project:guard: no force", "code": "denied" });
        let data = json!({ "toolName": "bash", "toolCallId": "c1", "error": error });
        assert_eq!(said("tool.execution_complete", data).unwrap().call.as_deref(), Some("c1"));
    }

    #[test]
    fn more_messages_than_a_person_reads_are_counted_and_left_out() {
        let mut rate = Rate::default();
        let start = Instant::now();
        for _ in 0..MAX_MESSAGES {
            assert!(rate.admits(start));
        }
        assert_eq!(rate.omission(), None);
        assert!(!rate.admits(start));
        assert!(!rate.admits(start));
        assert!(rate.omission().unwrap().text.contains("2 more"));
        assert_eq!(rate.omission(), None);
        assert!(rate.admits(start + WINDOW));
    }

    #[test]
    fn a_text_over_the_limit_is_cut_between_characters() {
        let visible = Visible::new(Kind::Info, None, "é".repeat(MAX_CHARS + 1));
        let update = visible.as_update(false);
        let text = update["content"]["text"].as_str().unwrap();
        assert_eq!(text.matches('é').count(), MAX_CHARS);
        assert!(text.ends_with("é …\n\n"));
    }

    fn standing(id: &str, status: Status, generation: u32, error: Option<&str>) -> Standing {
        let error = error.map(str::to_owned);
        Standing { id: id.to_owned(), status, generation, error, hint: None }
    }

    #[test]
    fn a_reload_says_what_is_new_again_there_broken_and_gone() {
        let before = [
            standing("project:a", Status::Running, 1, None),
            standing("project:b", Status::Running, 1, None),
            standing("project:c", Status::Running, 1, None),
            standing("project:d", Status::Running, 1, None),
        ];
        assert!(changes(&before, &before).is_empty());
        let now = [
            standing("project:a", Status::Running, 2, None),
            standing("project:b", Status::Failed, 1, Some("x is not defined")),
            standing("project:d", Status::Running, 1, None),
            standing("project:e", Status::Running, 1, None),
            standing("project:f", Status::Starting, 1, None),
        ];
        let texts: Vec<_> = changes(&before, &now)
            .into_iter()
            .map(|message| format!("{} {}", message.extension.unwrap(), message.text))
            .collect();
        let expected = [
            "project:a was loaded again (generation 2)",
            "project:b does not run: x is not defined",
            "project:e is new, and runs",
            "project:c is gone",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn before_the_first_prompt_the_person_is_told_what_does_not_run_and_how_to_trust() {
        let list = [
            standing("project:a", Status::Untrusted, 0, Some("this workspace is not trusted")),
            standing("project:b", Status::Untrusted, 0, Some("this workspace is not trusted")),
            standing("user:c", Status::Failed, 1, Some("line 3")),
            standing("user:d", Status::Running, 1, None),
        ];
        let words = first_words(&list, "/repo");
        assert_eq!(words.len(), 2);
        assert_eq!(words[0].kind, Kind::Trust);
        assert!(words[0].text.starts_with("does not run project:a, project:b: this workspace"));
        assert!(words[0].text.contains("\n`tenon trust` trusts this workspace\n"));
        assert!(words[0].text.contains("in /repo;"));
        assert_eq!(words[1], Visible::new(Kind::Warning, Some("user:c"), "does not run: line 3"));
        assert!(first_words(&list[3..], "/repo").is_empty());
    }
}
