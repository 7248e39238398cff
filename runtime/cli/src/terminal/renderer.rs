//! The events of a session as text for a terminal.

use serde_json::Value;
use tenon_host::events::Event;

use super::look::Look;
use super::lookup::Lookup;
use super::markdown::Markdown;
use super::notices::Notices;
use super::tool_lines::ToolLines;
use crate::sanitise::Sanitiser;
use crate::sanitise::one_line;

/// The longest line about what somebody other than the person sends the agent, in characters.
const MAX_PROMPT: usize = 200;

/// How events are rendered.
#[derive(Debug, Clone, Copy)]
pub struct RenderOptions {
    /// Whether the text goes to a terminal that shows colours; otherwise it is plain text without
    /// sequences, and markdown is as the agent wrote it.
    pub colour: bool,
    /// How wide the terminal is, in characters.
    pub width: usize,
    /// Whether only what the agent says is of interest.
    pub quiet: bool,
}

/// What was printed last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    /// Nothing yet.
    Nothing,
    /// What the agent says.
    Message,
    /// What it thinks.
    Thought,
    /// Whole lines about anything else.
    Lines,
}

/// Makes text of events. What it returns is to be printed in order, and nothing else between parts of a line.
pub struct Renderer {
    options: RenderOptions,
    look: Look,
    lookup: Lookup,
    markdown: Markdown,
    thought: Thought,
    tools: ToolLines,
    notices: Notices,
    section: Section,
    /// The message, and the thought, whose parts were printed last.
    streamed: [Option<String>; 2],
}

impl Renderer {
    /// Nothing rendered yet.
    pub fn new(options: RenderOptions) -> Self {
        let look = Look::new(options.colour);
        Self {
            options,
            look,
            lookup: Lookup::default(),
            markdown: Markdown::new(options.colour),
            thought: Thought::new(look),
            tools: ToolLines::new(look, options.width),
            notices: Notices::new(look),
            section: Section::Nothing,
            streamed: [None, None],
        }
    }

    /// The same, with a place to look up whose tools are called and why extensions fail.
    pub fn with_lookup(options: RenderOptions, lookup: Lookup) -> Self {
        Self { lookup, ..Self::new(options) }
    }

    /// The terminal has another width.
    pub fn resize(&mut self, width: usize) {
        self.options.width = width;
        self.tools.resize(width);
    }

    /// What to print for an event; often nothing.
    pub fn event(&mut self, event: &Event) -> String {
        let data = &event.data;
        let text = |field: &str| data[field].as_str().unwrap_or_default();
        match event.kind.as_str() {
            "assistant.message_delta" => self.say(text("messageId"), text("deltaContent")),
            "assistant.message" => {
                if self.streamed[0].as_deref() == Some(text("messageId")) {
                    return self.close();
                }
                let said = self.say(text("messageId"), text("content"));
                said + self.close().as_str()
            }
            _ if self.options.quiet => String::new(),
            "assistant.reasoning_delta" => self.think(text("reasoningId"), text("deltaContent")),
            "assistant.reasoning" => {
                if self.streamed[1].as_deref() == Some(text("reasoningId")) {
                    return self.close();
                }
                let said = self.think(text("reasoningId"), text("content"));
                said + self.close().as_str()
            }
            _ => {
                let lines = self.lines(event);
                self.print(lines)
            }
        }
    }

    /// What is left to print: the end of a line. The next event begins anew.
    pub fn finish(&mut self) -> String {
        let rest = self.close();
        self.section = Section::Nothing;
        self.streamed = [None, None];
        rest
    }

    /// Lines that are no event, between those that are.
    pub fn note(&mut self, text: &str) -> String {
        let lines = self.notices.said(None, text, self.look.faint);
        self.print(lines)
    }

    /// Whole lines for an event.
    fn lines(&mut self, event: &Event) -> String {
        let data = &event.data;
        let text = |field: &str| data[field].as_str().unwrap_or_default();
        let (look, faint) = (self.look, self.look.faint);
        match event.kind.as_str() {
            "tool.execution_start" => {
                let owner = self.owner(data);
                self.tools.start(data, owner.as_deref(), &event.timestamp)
            }
            "tool.execution_complete" => self.tools.complete(data, &event.timestamp),
            kind @ ("session.info" | "session.warning" | "session.error") => {
                self.notices.session(kind, data)
            }
            "session.extensions_loaded" => self.notices.extensions(data, &self.lookup),
            "assistant.plan" => self.notices.plan(data),
            "assistant.turn_start" => {
                self.notices.turn_start(&event.timestamp);
                String::new()
            }
            "assistant.usage" => {
                self.notices.usage(data);
                String::new()
            }
            "session.usage_info" => {
                self.notices.context(data);
                String::new()
            }
            "assistant.turn_end" => self.notices.turn_end(&event.timestamp),
            "assistant.intent" => self.notices.said(None, text("intent"), faint),
            "abort" => self.notices.said(None, "interrupted", look.doubtful),
            "session.model_change" => match data["previousModel"].as_str() {
                // It begins with one, and an agent that was started again has the same.
                None => String::new(),
                Some(before) if before == text("newModel") => String::new(),
                Some(_) => self.notices.said(None, &format!("model: {}", text("newModel")), faint),
            },
            "session.mode_changed" => {
                self.notices.said(None, &format!("mode: {}", text("newMode")), faint)
            }
            "session.compaction_start" => {
                self.notices.said(None, "the agent shortens what it remembers", faint)
            }
            "system.notification" => {
                let told = format!("tells the agent: {}", one_line(text("content"), MAX_PROMPT));
                self.notices.said(data["extensionId"].as_str(), &told, faint)
            }
            // What the person has sent is on the terminal already.
            "user.message" => match data["source"].as_str() {
                Some(source) => {
                    let source = source.strip_prefix("agent-").unwrap_or(source);
                    let sent = format!("asks the agent: {}", one_line(text("content"), MAX_PROMPT));
                    self.notices.said(Some(source), &sent, faint)
                }
                None => String::new(),
            },
            "subagent.started" => self.subagent("begins", text("agentDisplayName"), ""),
            "subagent.completed" => self.subagent("has returned", text("agentDisplayName"), ""),
            "subagent.failed" => {
                self.subagent("has failed", text("agentDisplayName"), text("error"))
            }
            _ => String::new(),
        }
    }

    fn subagent(&self, does: &str, name: &str, why: &str) -> String {
        let why = match one_line(why, MAX_PROMPT) {
            why if why.is_empty() => why,
            why => format!(": {why}"),
        };
        let said = format!("sub-agent {} {does}{why}", one_line(name, 80));
        self.notices.said(None, &said, self.look.faint)
    }

    /// The extension whose tool is called; none if it is the agent's own.
    fn owner(&self, data: &Value) -> Option<String> {
        if let Some(owner) = data["extensionId"].as_str() {
            return Some(owner.to_owned());
        }
        let foreign = ["nativeToolName", "mcpServerName"].iter().any(|it| data.get(it).is_some());
        if foreign { None } else { self.lookup.owner(data["toolName"].as_str()?) }
    }

    /// The agent says something.
    fn say(&mut self, id: &str, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        let mut out = self.open(Section::Message);
        self.streamed[0] = Some(id.to_owned());
        out.push_str(&self.markdown.push(text));
        out
    }

    /// The agent thinks something.
    fn think(&mut self, id: &str, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        let mut out = self.open(Section::Thought);
        self.streamed[1] = Some(id.to_owned());
        out.push_str(&self.thought.push(text));
        out
    }

    /// Prints whole lines, after what is open.
    fn print(&mut self, lines: String) -> String {
        if lines.is_empty() {
            return lines;
        }
        self.open(Section::Lines) + lines.as_str()
    }

    /// Begins a section: what was open ends, and an empty line sets it apart.
    fn open(&mut self, section: Section) -> String {
        if self.section == section {
            return String::new();
        }
        let mut out = self.close();
        let apart = self.section != Section::Nothing && !self.options.quiet;
        if apart && (section == Section::Message || self.section == Section::Message) {
            out.push('\n');
        }
        self.section = section;
        out
    }

    /// Ends the line that is open, if one is.
    fn close(&mut self) -> String {
        let mut out = self.markdown.finish();
        out.push_str(&self.thought.finish());
        out
    }
}

/// What the agent thinks, faint, or with a sign before each line.
struct Thought {
    look: Look,
    sanitiser: Sanitiser,
    /// Something of the line was printed.
    open: bool,
}

impl Thought {
    fn new(look: Look) -> Self {
        Self { look, sanitiser: Sanitiser::default(), open: false }
    }

    fn push(&mut self, text: &str) -> String {
        let text = self.sanitiser.clean(text);
        let (sign, style) = (self.look.thinks, self.look.faint);
        let mut out = String::new();
        for part in text.split_inclusive('\n') {
            if !self.open {
                out.push_str(sign);
            }
            let line = part.trim_end_matches('\n');
            if !line.is_empty() {
                out.push_str(&format!("{style}{line}{style:#}"));
            }
            self.open = !part.ends_with('\n');
            if !self.open {
                out.push('\n');
            }
        }
        out
    }

    fn finish(&mut self) -> String {
        let open = std::mem::take(&mut self.open);
        self.sanitiser = Sanitiser::default();
        if open { "\n".to_owned() } else { String::new() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plain() -> Renderer {
        Renderer::new(RenderOptions { colour: false, width: 80, quiet: false })
    }

    fn delta(id: &str, text: &str) -> Event {
        Event::for_test("assistant.message_delta", json!({ "messageId": id, "deltaContent": text }))
    }

    fn message(id: &str, text: &str) -> Event {
        Event::for_test("assistant.message", json!({ "messageId": id, "content": text }))
    }

    fn play(renderer: &mut Renderer, events: &[Event]) -> String {
        let mut text: String = events.iter().map(|event| renderer.event(event)).collect();
        text.push_str(&renderer.finish());
        text
    }

    #[test]
    fn a_message_is_printed_as_it_comes_and_not_again() {
        let mut renderer = plain();
        assert_eq!(renderer.event(&delta("1", "Hel")), "Hel");
        assert_eq!(renderer.event(&delta("1", "lo")), "lo");
        assert_eq!(renderer.event(&message("1", "Hello")), "\n");
        assert_eq!(renderer.event(&message("2", "whole")), "whole\n");
        assert_eq!(renderer.finish(), "");
    }

    #[test]
    fn a_turn_reads_from_top_to_bottom() {
        let call = |kind: &str, more: Value| {
            let mut data = json!({ "toolCallId": "c", "toolName": "bash" });
            for (name, value) in more.as_object().into_iter().flatten() {
                data[name.as_str()] = value.clone();
            }
            Event::for_test(kind, data)
        };
        let events = [
            Event::for_test("assistant.turn_start", json!({})),
            Event::for_test(
                "assistant.reasoning_delta",
                json!({ "reasoningId": "r", "deltaContent": "a\nb" }),
            ),
            Event::for_test(
                "assistant.reasoning",
                json!({ "reasoningId": "r", "content": "a\nb" }),
            ),
            delta("1", "I look."),
            call("tool.execution_start", json!({ "arguments": { "command": "ls" } })),
            message("1", "I look."),
            Event::for_test("session.info", json!({ "message": "fine", "extensionId": "user:x" })),
            call("tool.execution_complete", json!({ "success": true })),
            delta("2", "Done."),
            Event::for_test("assistant.usage", json!({ "inputTokens": 10, "outputTokens": 2 })),
            Event::for_test("assistant.turn_end", json!({})),
        ];
        let expected = "~ a\n~ b\n\nI look.\n\n* bash  ls\n> user:x: fine\nok bash 0 ms\n\n\
                        Done.\n\n10 tokens in, 2 out, 0 ms\n";
        assert_eq!(play(&mut plain(), &events), expected);
    }

    #[test]
    fn quiet_is_what_the_agent_says_and_nothing_else() {
        let mut renderer = Renderer::new(RenderOptions { colour: false, width: 80, quiet: true });
        let events = [
            delta("1", "One"),
            Event::for_test(
                "tool.execution_start",
                json!({ "toolCallId": "c", "toolName": "bash" }),
            ),
            Event::for_test("session.warning", json!({ "message": "odd" })),
            message("1", "One"),
            message("2", "Two"),
        ];
        assert_eq!(play(&mut renderer, &events), "One\nTwo\n");
    }

    #[test]
    fn plain_text_has_no_sequences_and_no_signs_outside_of_ascii() {
        let mut renderer = plain();
        let events = [
            delta("1", "# T\n**b** `c`\n"),
            Event::for_test(
                "assistant.plan",
                json!({ "entries": [{ "content": "a", "status": "pending" }] }),
            ),
            Event::for_test(
                "tool.execution_start",
                json!({ "toolName": "bash", "extensionId": "user:x" }),
            ),
            Event::for_test(
                "tool.execution_complete",
                json!({ "toolName": "bash", "success": false }),
            ),
            Event::for_test("abort", json!({ "reason": "user_initiated" })),
            Event::for_test("session.error", json!({ "message": "bad" })),
        ];
        let text = play(&mut renderer, &events);
        assert!(text.is_ascii() && !text.contains('\x1b'), "{text:?}");
        assert!(text.starts_with("# T\n**b** `c`\n"), "{text}");
        assert!(text.contains("* bash - user:x\n"), "{text}");
    }

    #[test]
    fn no_event_carries_a_sequence_to_the_terminal() {
        let evil = "x\x1b]0;owned\x07\x1b[2Jy\u{9b}1A";
        let kinds = [
            "assistant.message_delta",
            "assistant.reasoning_delta",
            "assistant.message",
            "tool.execution_start",
            "tool.execution_complete",
            "session.info",
            "session.warning",
            "session.error",
            "system.notification",
            "user.message",
            "session.model_change",
            "subagent.failed",
            "assistant.intent",
        ];
        let data = json!({
            "messageId": "m", "deltaContent": evil, "content": evil, "reasoningId": "r",
            "toolCallId": evil, "toolName": evil, "arguments": { "command": evil }, "success": false,
            "error": { "message": evil }, "message": evil, "extensionId": evil, "url": evil,
            "tip": evil, "newModel": evil, "previousModel": "z", "agentDisplayName": evil, "intent": evil, "source": evil,
        });
        for colour in [true, false] {
            for kind in kinds {
                let mut renderer = Renderer::new(RenderOptions { colour, width: 80, quiet: false });
                let text = play(&mut renderer, &[Event::for_test(kind, data.clone())]);
                assert!(text.contains('x') && text.contains('y'), "{kind}: {text:?}");
                for bad in ["\x1b]", "\x1b[2J", "\x07", "\u{9b}", "owned"] {
                    assert!(!text.contains(bad), "{kind}: {text:?}");
                }
            }
        }
        let plan = json!({ "entries": [{ "content": evil, "status": "pending" }] });
        let text = play(&mut plain(), &[Event::for_test("assistant.plan", plan)]);
        assert_eq!(text, "[ ] xy\n");
    }

    #[test]
    fn prompts_are_shown_if_it_was_not_the_person_who_sent_them() {
        let own = Event::for_test("user.message", json!({ "content": "hello" }));
        assert_eq!(plain().event(&own), "");
        let other = Event::for_test(
            "user.message",
            json!({ "content": "go on", "source": "agent-user:loop" }),
        );
        assert_eq!(plain().event(&other), "> user:loop: asks the agent: go on\n");
    }

    #[test]
    fn a_note_does_not_break_into_a_line() {
        let mut renderer = plain();
        renderer.event(&delta("1", "half a"));
        assert_eq!(renderer.note("queued: next"), "\n\n> queued: next\n");
        assert_eq!(renderer.event(&delta("1", " line")), "\n line");
    }
}
