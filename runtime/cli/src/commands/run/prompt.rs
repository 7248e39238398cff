//! The prompt: what the command line says, and what comes on standard input.

use std::io::IsTerminal;
use std::io::Read;
use std::os::fd::AsFd;
use std::time::Duration;
use std::time::Instant;

use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::Timespec;
use rustix::event::poll;
use rustix::io::Errno;

use crate::error::CliError;
use crate::output;
use crate::output::YELLOW;

/// The longest prompt that is read, in bytes. It is a few million words; agents have room for less.
pub const MAX_PROMPT_BYTES: u64 = 32 * 1024 * 1024;

/// How long somebody may take to begin to write to standard input when there is a prompt without it. Many
/// programs start others with an input that nobody ever writes to.
const STDIN_PATIENCE: Duration = Duration::from_secs(3);

/// What stands for standard input on the command line.
const STDIN: &str = "-";

/// The prompt of a command line.
pub fn read(words: &[String]) -> Result<String, CliError> {
    let stdin = std::io::stdin();
    let text = text_of(words);
    let piped = match wants(words, stdin.is_terminal()) {
        Wants::Nothing => String::new(),
        Wants::All => all_of(stdin)?,
        Wants::WhatComes if begins(&stdin, STDIN_PATIENCE) => all_of(stdin)?,
        Wants::WhatComes => {
            output::note(format_args!(
                "{YELLOW}warning{YELLOW:#}: nothing comes on standard input; going on without it \
                 (with < /dev/null it is not waited for)"
            ));
            String::new()
        }
    };
    put_together(&text, &piped)
}

/// What of standard input belongs to the prompt.
#[derive(Debug, PartialEq, Eq)]
enum Wants {
    Nothing,
    All,
    /// All, if somebody writes to it.
    WhatComes,
}

fn wants(words: &[String], is_terminal: bool) -> Wants {
    if words.iter().any(|word| word == STDIN) {
        return Wants::All;
    }
    match (words.is_empty(), is_terminal) {
        (_, true) => Wants::Nothing,
        (true, false) => Wants::All,
        (false, false) => Wants::WhatComes,
    }
}

/// What the command line itself says.
fn text_of(words: &[String]) -> String {
    let words = words.iter().filter(|word| *word != STDIN).map(String::as_str);
    words.collect::<Vec<_>>().join(" ")
}

/// Waits until there is something to read, or the end; false if there is neither.
fn begins(input: impl AsFd, patience: Duration) -> bool {
    let until = Instant::now() + patience;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let mut asked = [PollFd::new(&input, PollFlags::IN)];
        // A few seconds at most, which always fit.
        match poll(&mut asked, Timespec::try_from(left).ok().as_ref()) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(Errno::INTR) => {}
            // What cannot be asked can still be read.
            Err(_) => return true,
        }
    }
}

fn all_of(input: impl Read) -> Result<String, CliError> {
    let mut bytes = Vec::new();
    input.take(MAX_PROMPT_BYTES + 1).read_to_end(&mut bytes).map_err(|error| {
        CliError::new(format!("the prompt cannot be read from standard input: {error}"))
    })?;
    if bytes.len() as u64 > MAX_PROMPT_BYTES {
        let megabytes = MAX_PROMPT_BYTES / (1024 * 1024);
        return Err(CliError::new(format!("the prompt is longer than {megabytes} MB"))
            .hint("name a file in the prompt and let the agent read it"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        CliError::new(format!("standard input is not UTF-8 text: byte {place} cannot be read"))
            .hint("name a file in the prompt and let the agent read it")
    })
}

/// The command line's text, then a blank line, then what came on standard input.
fn put_together(text: &str, piped: &str) -> Result<String, CliError> {
    let piped = piped.trim_end_matches(['\n', '\r']);
    let parts = [text, piped].into_iter().filter(|part| !part.trim().is_empty());
    let prompt = parts.collect::<Vec<_>>().join("\n\n");
    if prompt.is_empty() {
        return Err(CliError::new("the prompt is empty").hint(
            "tenon run \"Why does the build fail?\", or the text on standard input; \
             tenon chat for a conversation",
        ));
    }
    Ok(prompt)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn what_is_read_depends_on_what_is_said() {
        assert_eq!(wants(&words(&["a"]), true), Wants::Nothing);
        assert_eq!(wants(&words(&["a"]), false), Wants::WhatComes);
        assert_eq!(wants(&[], false), Wants::All);
        assert_eq!(wants(&[], true), Wants::Nothing);
        assert_eq!(wants(&words(&["a", "-"]), true), Wants::All);
        assert_eq!(text_of(&words(&["a", "-", "b"])), "a b");
    }

    #[test]
    fn text_and_input_are_put_together_with_a_blank_line() {
        assert_eq!(put_together("review", "diff\n").unwrap(), "review\n\ndiff");
        assert_eq!(put_together("review", "\n").unwrap(), "review");
        assert_eq!(put_together("", " indented\n\n").unwrap(), " indented");
        assert!(put_together(" ", "\n").is_err());
    }

    #[test]
    fn ten_megabytes_are_a_prompt_and_more_than_the_limit_is_none() {
        let long = "x".repeat(10 * 1024 * 1024);
        assert_eq!(all_of(long.as_bytes()).unwrap().len(), long.len());
        assert!(all_of(std::io::repeat(b'x')).is_err());
        assert!(all_of(std::io::repeat(b'x').take(MAX_PROMPT_BYTES)).is_ok());
    }

    #[test]
    fn what_is_no_text_is_refused() {
        assert!(all_of(&b"caf\xe9"[..]).is_err());
    }

    #[test]
    fn an_input_that_nobody_writes_to_is_not_waited_for() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        assert!(!begins(&reader, Duration::from_millis(1)));
        writer.write_all(b"x").unwrap();
        assert!(begins(&reader, Duration::from_secs(60)));
        let (reader, writer) = std::io::pipe().unwrap();
        drop(writer);
        assert!(begins(&reader, Duration::from_secs(60)));
    }
}
