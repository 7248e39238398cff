//! What a prompt tells the demo agent to do: one directive a line.

use std::time::Duration;

use serde_json::Map;
use serde_json::Value;

/// How a line tells the agent to say something in capitals: the one slash command it has.
const SHOUT: &str = "/shout";

/// What stands for the text of the last tool result.
const LAST: &str = "$last";

/// The most messages that one text is said in. Ten megabytes, word for word, would be a million of them.
const MOST_CHUNKS: usize = 64;

/// How long a message of a flood is, in bytes, if the directive does not say.
const FLOOD_BYTES: usize = 100;

/// A call of an MCP tool.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    /// The tool's name, alone or as `mcp__SERVER__TOOL`.
    pub(super) tool: String,
    /// Its arguments.
    pub(super) args: Map<String, Value>,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Directive {
    /// `@say TEXT`
    Say(String),
    /// `/shout TEXT`
    Shout(String),
    /// `@think TEXT`
    Think(String),
    /// `@plan A; B; C`
    Plan(Vec<String>),
    /// `@call TOOL {json}`
    Call(Call),
    /// `@parallel`, then `@call` lines, then `@end`
    Parallel(Vec<Call>),
    /// `@permit KIND TITLE {rawInput}`
    Permit { kind: String, title: String, input: Option<Value> },
    /// `@permit-twice TITLE`
    PermitTwice(String),
    /// `@run COMMAND`
    Run(String),
    /// `@write PATH "json string"`
    Write { path: String, content: String },
    /// `@replace PATH {"old":..,"new":..}`
    Replace { path: String, old: String, new: String },
    /// `@read PATH`
    Read(String),
    /// `@wait MS`
    Wait(Duration),
    /// `@fail TEXT`
    Fail(String),
    /// `@crash [CODE]`
    Crash(i32),
    /// `@flood COUNT [BYTES]`
    Flood { count: usize, bytes: usize },
    /// `@clock COUNT [MS]`
    Clock { count: usize, pause: Duration },
    /// `@garbage TEXT`
    Garbage(String),
    /// `@unknown-update`
    UnknownUpdate,
    /// `@unknown-request METHOD`
    UnknownRequest(String),
    /// `@unknown-notification METHOD`
    UnknownNotification(String),
    /// `@deaf`
    Deaf,
    /// `@title TEXT`
    Title(String),
    /// `@mode ID`
    Mode(String),
    /// `@usage USED SIZE`
    Usage { used: u64, size: u64 },
    /// `@commands a,b`
    Commands(Vec<String>),
    /// `@tools`
    Tools,
    /// `@prompt`
    Prompt,
    /// `@client-read PATH`
    ClientRead(String),
    /// `@client-write PATH "text"`
    ClientWrite { path: String, content: String },
    /// `@client-run COMMAND`
    ClientRun(String),
    /// `@env NAME`
    Env(String),
    /// `@cwd`
    Cwd,
    /// `@spawn-orphan`
    SpawnOrphan,
    /// A line that looks like a directive and is none; what is said about it.
    Wrong(String),
}

impl Directive {
    /// With the text of the last tool result in place of `$last`.
    pub(super) fn with_last(self, last: &str) -> Self {
        let fill = |text: String| text.replace(LAST, last);
        match self {
            Self::Say(text) => Self::Say(fill(text)),
            Self::Shout(text) => Self::Shout(fill(text)),
            Self::Think(text) => Self::Think(fill(text)),
            Self::Plan(steps) => Self::Plan(steps.into_iter().map(fill).collect()),
            Self::Call(call) => Self::Call(call.with_last(last)),
            Self::Parallel(calls) => {
                Self::Parallel(calls.into_iter().map(|call| call.with_last(last)).collect())
            }
            Self::Permit { kind, title, mut input } => {
                if let Some(input) = &mut input {
                    fill_value(input, last);
                }
                Self::Permit { kind, title: fill(title), input }
            }
            Self::PermitTwice(title) => Self::PermitTwice(fill(title)),
            Self::Run(command) => Self::Run(fill(command)),
            Self::Write { path, content } => {
                Self::Write { path: fill(path), content: fill(content) }
            }
            Self::Replace { path, old, new } => {
                Self::Replace { path: fill(path), old: fill(old), new: fill(new) }
            }
            Self::Read(path) => Self::Read(fill(path)),
            Self::Fail(text) => Self::Fail(fill(text)),
            Self::Garbage(text) => Self::Garbage(fill(text)),
            Self::Title(text) => Self::Title(fill(text)),
            Self::ClientRead(path) => Self::ClientRead(fill(path)),
            Self::ClientWrite { path, content } => {
                Self::ClientWrite { path: fill(path), content: fill(content) }
            }
            Self::ClientRun(command) => Self::ClientRun(fill(command)),
            other => other,
        }
    }
}

impl Call {
    fn with_last(mut self, last: &str) -> Self {
        self.args.values_mut().for_each(|value| fill_value(value, last));
        self
    }
}

/// Only strings are filled in, after parsing: so a result with quotes or line ends in it stays one string.
fn fill_value(value: &mut Value, last: &str) {
    match value {
        Value::String(text) => *text = text.replace(LAST, last),
        Value::Array(values) => values.iter_mut().for_each(|value| fill_value(value, last)),
        Value::Object(fields) => fields.values_mut().for_each(|value| fill_value(value, last)),
        _ => {}
    }
}

/// The directives in a text. Lines that are none are left out.
pub(super) fn parse(text: &str) -> Vec<Directive> {
    let mut directives = Vec::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if let Some(rest) = after(line, SHOUT) {
            directives.push(Directive::Shout(rest.to_owned()));
        } else if line == "@parallel" {
            directives.extend(parallel(&mut lines));
        } else if is_directive(line) {
            directives.push(one(line));
        }
    }
    directives
}

/// What follows a word at the beginning of a line, if it begins with that word.
fn after<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(word)?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| rest.trim_start())
}

fn is_directive(line: &str) -> bool {
    line.strip_prefix('@').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// The calls up to `@end`, and what is said about other directives between them.
fn parallel<'a>(lines: &mut impl Iterator<Item = &'a str>) -> Vec<Directive> {
    let mut calls = Vec::new();
    let mut wrong = Vec::new();
    for line in lines.take_while(|line| *line != "@end").filter(|line| is_directive(line)) {
        match one(line) {
            Directive::Call(call) => calls.push(call),
            Directive::Wrong(why) => wrong.push(Directive::Wrong(why)),
            _ => wrong.push(bad(line, "only @call can be between @parallel and @end")),
        }
    }
    wrong.push(Directive::Parallel(calls));
    wrong
}

fn bad(line: &str, why: impl std::fmt::Display) -> Directive {
    Directive::Wrong(format!("bad directive: {line}: {why}"))
}

/// One line that begins with `@`.
fn one(line: &str) -> Directive {
    let (name, rest) = split_word(line);
    let text = rest.to_owned();
    let parsed = match name {
        "@say" => Ok(Directive::Say(text)),
        "@think" => Ok(Directive::Think(text)),
        "@plan" => Ok(Directive::Plan(list(rest, ';'))),
        "@call" => call(rest).map(Directive::Call),
        "@permit" => permit(rest),
        "@permit-twice" => Ok(Directive::PermitTwice(text)),
        "@run" => Ok(Directive::Run(text)),
        "@write" => path_and_text(rest).map(|(path, content)| Directive::Write { path, content }),
        "@replace" => replace(rest),
        "@read" => word(rest, "a path").map(Directive::Read),
        "@wait" => {
            number(rest, "milliseconds").map(|ms| Directive::Wait(Duration::from_millis(ms)))
        }
        "@fail" => Ok(Directive::Fail(text)),
        "@crash" => optional(rest, 1, "an exit code").map(Directive::Crash),
        "@flood" => flood(rest),
        "@clock" => clock(rest),
        "@garbage" => Ok(Directive::Garbage(text)),
        "@unknown-update" => Ok(Directive::UnknownUpdate),
        "@unknown-request" => word(rest, "a method").map(Directive::UnknownRequest),
        "@unknown-notification" => word(rest, "a method").map(Directive::UnknownNotification),
        "@deaf" => Ok(Directive::Deaf),
        "@title" => Ok(Directive::Title(text)),
        "@mode" => word(rest, "a mode").map(Directive::Mode),
        "@usage" => usage(rest),
        "@commands" => Ok(Directive::Commands(list(rest, ','))),
        "@tools" => Ok(Directive::Tools),
        "@prompt" => Ok(Directive::Prompt),
        "@client-read" => word(rest, "a path").map(Directive::ClientRead),
        "@client-write" => {
            path_and_text(rest).map(|(path, content)| Directive::ClientWrite { path, content })
        }
        "@client-run" => Ok(Directive::ClientRun(text)),
        "@env" => word(rest, "a name").map(Directive::Env),
        "@cwd" => Ok(Directive::Cwd),
        "@spawn-orphan" => Ok(Directive::SpawnOrphan),
        "@end" => Err("there is no @parallel before it".to_owned()),
        _ => return Directive::Wrong(format!("unknown directive: {name}")),
    };
    parsed.unwrap_or_else(|why| bad(line, why))
}

/// The first word, and what follows it.
fn split_word(text: &str) -> (&str, &str) {
    match text.split_once(char::is_whitespace) {
        Some((word, rest)) => (word, rest.trim_start()),
        None => (text, ""),
    }
}

fn word(text: &str, what: &str) -> Result<String, String> {
    if text.is_empty() { Err(format!("{what} is missing")) } else { Ok(text.to_owned()) }
}

fn number<T: std::str::FromStr>(text: &str, what: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("not a number of {what}: {text:?}"))
}

fn optional<T: std::str::FromStr>(text: &str, usual: T, what: &str) -> Result<T, String> {
    if text.is_empty() {
        return Ok(usual);
    }
    text.parse().map_err(|_| format!("not {what}: {text:?}"))
}

fn list(text: &str, separator: char) -> Vec<String> {
    text.split(separator)
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .map(str::to_owned)
        .collect()
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    if text.is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_str(text).map_err(|error| format!("not a JSON object: {error}"))
}

fn call(text: &str) -> Result<Call, String> {
    let (tool, args) = split_word(text);
    Ok(Call { tool: word(tool, "a tool")?, args: object(args)? })
}

fn permit(text: &str) -> Result<Directive, String> {
    let (kind, rest) = split_word(text);
    let kind = word(kind, "a kind")?;
    let (title, input) = match rest.find('{') {
        Some(at) => (&rest[..at], Some(Value::Object(object(&rest[at..])?))),
        None => (rest, None),
    };
    Ok(Directive::Permit { kind, title: title.trim_end().to_owned(), input })
}

/// A path and a text, which is a JSON string, or simply the rest of the line.
fn path_and_text(text: &str) -> Result<(String, String), String> {
    let (path, rest) = split_word(text);
    let path = word(path, "a path")?;
    if !rest.starts_with('"') {
        return Ok((path, rest.to_owned()));
    }
    let content =
        serde_json::from_str(rest).map_err(|error| format!("not a JSON string: {error}"))?;
    Ok((path, content))
}

fn replace(text: &str) -> Result<Directive, String> {
    let (path, rest) = split_word(text);
    let path = word(path, "a path")?;
    let change = object(rest)?;
    let field = |name: &str| {
        change.get(name).and_then(Value::as_str).map(str::to_owned).ok_or(format!("no {name:?}"))
    };
    Ok(Directive::Replace { path, old: field("old")?, new: field("new")? })
}

fn flood(text: &str) -> Result<Directive, String> {
    let (count, bytes) = split_word(text);
    let count = number(count, "messages")?;
    Ok(Directive::Flood { count, bytes: optional(bytes, FLOOD_BYTES, "a number of bytes")? })
}

fn clock(text: &str) -> Result<Directive, String> {
    let (count, pause) = split_word(text);
    let count = number(count, "messages")?;
    let pause = Duration::from_millis(optional(pause, 0, "a number of milliseconds")?);
    Ok(Directive::Clock { count, pause })
}

fn usage(text: &str) -> Result<Directive, String> {
    let (used, size) = split_word(text);
    Ok(Directive::Usage { used: number(used, "tokens")?, size: number(size, "tokens")? })
}

/// A text in pieces that end between words, as a model's answer arrives. Together they are the text.
pub(super) fn chunks(text: &str) -> Vec<String> {
    let least = text.len() / MOST_CHUNKS;
    let mut chunks = Vec::new();
    let mut chunk = String::new();
    for piece in text.split_inclusive(char::is_whitespace) {
        chunk.push_str(piece);
        if chunk.len() > least {
            chunks.push(std::mem::take(&mut chunk));
        }
    }
    if !chunk.is_empty() {
        chunks.push(chunk);
    }
    chunks
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn args(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn lines_that_are_no_directives_are_left_out() {
        let text = "Please do this:\n  @say hello there\nme@example.org\n@ nothing\n\n@tools\r\n";
        assert_eq!(parse(text), [Directive::Say("hello there".into()), Directive::Tools]);
        assert!(parse("no directive at all").is_empty());
    }

    #[test]
    fn a_call_has_a_tool_and_arguments() {
        let with = Call { tool: "count".into(), args: args(json!({ "path": "a b.txt" })) };
        assert_eq!(parse(r#"@call count {"path": "a b.txt"}"#), [Directive::Call(with)]);
        let without = Call { tool: "list".into(), args: Map::new() };
        assert_eq!(parse("@call list"), [Directive::Call(without)]);
    }

    #[test]
    fn calls_between_parallel_and_end_are_one_directive() {
        let parsed = parse("@parallel\n@call a\nwords\n@call b {\"n\":1}\n@end\n@say done");
        let [Directive::Parallel(calls), Directive::Say(done)] = &parsed[..] else {
            panic!("{parsed:?}")
        };
        let tools: Vec<_> = calls.iter().map(|call| call.tool.as_str()).collect();
        assert_eq!((tools, done.as_str()), (vec!["a", "b"], "done"));
        let parsed = parse("@parallel\n@say no\n@call a");
        assert!(
            matches!(&parsed[..], [Directive::Wrong(_), Directive::Parallel(calls)] if calls.len() == 1)
        );
    }

    #[test]
    fn a_wrong_line_becomes_something_to_say() {
        assert_eq!(parse("@dance now"), [Directive::Wrong("unknown directive: @dance".into())]);
        for line in [
            "@call x {\"a\":",
            "@call x 7",
            "@wait soon",
            "@replace f {\"old\":\"a\"}",
            "@write",
            "@end",
        ] {
            let parsed = parse(line);
            let [Directive::Wrong(why)] = &parsed[..] else { panic!("{line}: {parsed:?}") };
            assert!(why.starts_with(&format!("bad directive: {line}")), "{why}");
        }
    }

    #[test]
    fn a_text_to_write_is_a_json_string_or_the_rest_of_the_line() {
        let write =
            |content: &str| Directive::Write { path: "a.txt".into(), content: content.into() };
        assert_eq!(parse(r#"@write a.txt "one\ntwo \"three\"""#), [write("one\ntwo \"three\"")]);
        assert_eq!(parse("@write a.txt one two"), [write("one two")]);
    }

    #[test]
    fn a_permission_has_a_kind_a_title_and_perhaps_input() {
        let input = Some(json!({ "command": "rm -rf x" }));
        let with = Directive::Permit { kind: "execute".into(), title: "rm it all".into(), input };
        assert_eq!(parse(r#"@permit execute rm it all {"command":"rm -rf x"}"#), [with]);
        let without = Directive::Permit { kind: "edit".into(), title: "Edit".into(), input: None };
        assert_eq!(parse("@permit edit Edit"), [without]);
    }

    #[test]
    fn numbers_and_lists_are_read() {
        assert_eq!(
            parse("@wait 20\n@crash\n@crash 7\n@flood 3\n@flood 3 5\n@clock 2 1\n@usage 10 20"),
            [
                Directive::Wait(Duration::from_millis(20)),
                Directive::Crash(1),
                Directive::Crash(7),
                Directive::Flood { count: 3, bytes: FLOOD_BYTES },
                Directive::Flood { count: 3, bytes: 5 },
                Directive::Clock { count: 2, pause: Duration::from_millis(1) },
                Directive::Usage { used: 10, size: 20 },
            ]
        );
        assert_eq!(
            parse("@plan look; think ; act\n@commands a, b"),
            [
                Directive::Plan(vec!["look".into(), "think".into(), "act".into()]),
                Directive::Commands(vec!["a".into(), "b".into()]),
            ]
        );
    }

    #[test]
    fn the_last_result_is_put_into_strings_wherever_they_are() {
        let last = "two \"words\"\nand a line";
        let line = r#"@call x {"text":"got $last","deep":[{"y":"$last"}],"n":1}"#;
        let Directive::Call(call) = parse(line).remove(0).with_last(last) else {
            panic!("{line} is a call")
        };
        let text = format!("got {last}");
        assert_eq!(call.args, args(json!({ "text": text, "deep": [{ "y": last }], "n": 1 })));
        let said = parse("@say it was $last").remove(0).with_last("7");
        assert_eq!(said, Directive::Say("it was 7".into()));
    }

    #[test]
    fn a_text_is_split_between_words_and_nothing_is_lost() {
        assert_eq!(chunks("one two\nthree"), ["one ", "two\n", "three"]);
        assert_eq!(chunks(""), Vec::<String>::new());
        let text = "word ".repeat(100_000);
        let long = chunks(&text);
        assert!(long.len() <= MOST_CHUNKS + 1, "{}", long.len());
        assert_eq!(long.concat(), text);
    }
}
