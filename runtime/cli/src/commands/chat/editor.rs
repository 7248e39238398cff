//! The prompt: what is typed, what was entered before, what can be completed.
//!
//! The text and the history are rustyline's. Its own way of reading the terminal is not used: it cannot be
//! interrupted when the agent has a question, loses what is typed ahead, and writes to a file descriptor that
//! leads nowhere here.

use std::path::PathBuf;

use anstyle::Style;
use rustyline::Config;
use rustyline::completion::longest_common_prefix;
use rustyline::history::FileHistory;
use rustyline::history::History as _;

use super::completion::Candidate;
use super::completion::Completion;
use crate::output::CYAN;
use crate::output::DIM;
use crate::terminal::keys::Key;
use crate::terminal::line::Line;
use crate::terminal::paint::Painter;
use crate::terminal::paint::Picture;
use crate::terminal::screen;

/// What stands before what is typed.
const PROMPT: &str = "> ";

/// The most entries that are remembered.
const MAX_HISTORY: usize = 1_000;

/// The longest entry that is remembered, in bytes: nobody looks through more.
const MAX_ENTRY: usize = 64 * 1024;

/// The prompt with what is typed behind it.
pub struct Editor {
    line: Line,
    painter: Painter,
    history: History,
    search: Option<Search>,
}

/// What a key has led to.
#[derive(Debug, PartialEq, Eq)]
pub enum Typed {
    /// The text, or where the cursor is, may be another.
    Changed,
    /// The line was entered.
    Entered,
    /// It is to be completed.
    Complete,
    /// Ctrl-C; what was typed is gone.
    Interrupt,
    /// Ctrl-D in an empty line.
    End,
    /// The terminal is to be cleared.
    Clear,
    /// The program is to be stopped for a while.
    Suspend,
}

/// Something that was entered before is looked for.
#[derive(Default)]
struct Search {
    query: String,
    /// How many newer ones are not meant.
    skipped: usize,
    /// What was typed before.
    draft: String,
}

impl Editor {
    /// An empty prompt, with what a file remembers.
    pub fn new(file: PathBuf) -> Self {
        Self {
            line: Line::default(),
            painter: Painter::default(),
            history: History::load(file),
            search: None,
        }
    }

    /// What was typed, up to the cursor.
    pub fn before_cursor(&self) -> &str {
        &self.line.text()[..self.line.cursor()]
    }

    /// What was entered; nothing is left, and it is remembered.
    pub fn take(&mut self) -> String {
        let text = self.line.take();
        self.history.add(&text);
        text
    }

    /// The sequences that draw it, in place of what is drawn.
    pub fn draw(&mut self, size: (usize, usize)) -> String {
        let prompt = self.prompt();
        self.painter.draw(&picture(&prompt, &self.line, size))
    }

    /// The sequences that take it away.
    pub fn erase(&mut self) -> String {
        self.painter.erase()
    }

    /// The sequences that leave it where it is, and go to the line below.
    pub fn leave(&mut self, size: (usize, usize)) -> String {
        let prompt = self.prompt();
        self.painter.leave(&picture(&prompt, &self.line, size))
    }

    fn prompt(&self) -> String {
        match &self.search {
            Some(search) => format!("search \"{}\": ", search.query),
            None => PROMPT.to_owned(),
        }
    }

    /// A key was pressed.
    pub fn key(&mut self, key: Key) -> Typed {
        if self.search.is_some() && self.search_key(&key) {
            return Typed::Changed;
        }
        match key {
            Key::Enter => return self.enter(),
            Key::Tab => return Typed::Complete,
            Key::Ctrl('c') => {
                self.line.take();
                self.history.leave();
                return Typed::Interrupt;
            }
            Key::Ctrl('d') if self.line.text().is_empty() => return Typed::End,
            Key::Ctrl('l') => return Typed::Clear,
            Key::Ctrl('z') => return Typed::Suspend,
            Key::Ctrl('r') => {
                let draft = self.line.text().to_owned();
                self.search = Some(Search { draft, ..Search::default() });
            }
            // Within a text of several lines they move the cursor.
            Key::Up | Key::Down if self.line.apply(&key) => {}
            Key::Up | Key::Ctrl('p') => {
                if let Some(entry) = self.history.older(self.line.text()) {
                    self.line.set(&entry);
                }
            }
            Key::Down | Key::Ctrl('n') => {
                if let Some(entry) = self.history.newer() {
                    self.line.set(&entry);
                }
            }
            key => {
                self.line.apply(&key);
            }
        }
        Typed::Changed
    }

    /// A key was pressed while nothing is drawn; a line that was entered.
    pub fn hidden_key(&mut self, key: &Key) -> Option<String> {
        match key {
            Key::Enter => (self.enter() == Typed::Entered).then(|| self.take()),
            // There is nothing to be seen that could be moved through.
            Key::Up | Key::Down | Key::Tab => None,
            key => {
                self.line.apply(key);
                None
            }
        }
    }

    /// Enters the line, unless a backslash at its end says that it goes on, or there is nothing.
    fn enter(&mut self) -> Typed {
        let text = self.line.text();
        if text.trim().is_empty() {
            return Typed::Changed;
        }
        if let Some(begun) = text.strip_suffix('\\') {
            let begun = format!("{begun}\n");
            self.line.set(&begun);
            return Typed::Changed;
        }
        self.history.leave();
        Typed::Entered
    }

    /// A key while something is looked for; false if it is none for that, and the search is over.
    fn search_key(&mut self, key: &Key) -> bool {
        let Some(search) = &mut self.search else { return false };
        match key {
            Key::Char(c) => {
                search.query.push(*c);
                search.skipped = 0;
            }
            Key::Backspace => {
                search.query.pop();
                search.skipped = 0;
            }
            Key::Ctrl('r') => search.skipped += 1,
            Key::Esc | Key::Ctrl('c' | 'g') => {
                let draft = std::mem::take(&mut search.draft);
                self.line.set(&draft);
                self.search = None;
                return true;
            }
            _ => {
                self.search = None;
                return false;
            }
        }
        match self.history.find(&search.query, search.skipped) {
            Some(entry) => self.line.set(&entry),
            // There is no other; the last one stays.
            None => search.skipped = search.skipped.saturating_sub(1),
        }
        true
    }

    /// Completes what was typed; what there is to choose from, if it is not clear.
    pub fn complete(&mut self, completion: Completion) -> Vec<Candidate> {
        let Completion { from, mut candidates } = completion;
        let typed = self.line.cursor() - from;
        if let [only] = candidates.as_slice() {
            self.line.replace(from, &format!("{} ", only.text));
            candidates.clear();
            return candidates;
        }
        let texts: Vec<_> = candidates.iter().map(|candidate| candidate.text.as_str()).collect();
        let common = longest_common_prefix(&texts).map(str::to_owned);
        match common.filter(|common| common.len() > typed) {
            Some(common) => {
                self.line.replace(from, &common);
                Vec::new()
            }
            None => candidates,
        }
    }
}

fn picture<'a>(prompt: &'a str, line: &'a Line, size: (usize, usize)) -> Picture<'a> {
    let style = match screen::colours() {
        true if prompt == PROMPT => CYAN,
        true => DIM,
        false => Style::new(),
    };
    Picture { prompt, style, text: line.text(), cursor: line.cursor(), size }
}

/// What was entered before, in this chat and earlier ones.
struct History {
    entries: FileHistory,
    file: PathBuf,
    /// Which entry is shown, if one is.
    at: Option<usize>,
    /// What was typed before one was shown.
    draft: String,
}

impl History {
    fn load(file: PathBuf) -> Self {
        let mut config = Config::builder().history_ignore_space(true);
        // Both are numbers that fit.
        if let Ok(sized) = config.clone().max_history_size(MAX_HISTORY) {
            config = sized;
        }
        let mut entries = FileHistory::with_config(&config.build());
        // A file that is not there, or damaged, remembers nothing.
        let _ = entries.load(&file);
        Self { entries, file, at: None, draft: String::new() }
    }

    /// Remembers an entry, also for other chats: the file is written at once, for the user only.
    fn add(&mut self, entry: &str) {
        self.leave();
        if entry.len() > MAX_ENTRY || !matches!(self.entries.add(entry), Ok(true)) {
            return;
        }
        if let Some(folder) = self.file.parent() {
            let _ = std::fs::create_dir_all(folder);
        }
        // A disk that is full forgets; the entry is there until the end of the chat.
        let _ = self.entries.append(&self.file);
    }

    fn entry(&self, at: usize) -> Option<String> {
        self.entries.iter().nth(at).cloned()
    }

    /// The entry before the one that is shown.
    fn older(&mut self, shown: &str) -> Option<String> {
        let at = match self.at {
            Some(at) => at.checked_sub(1)?,
            None => {
                self.draft = shown.to_owned();
                self.entries.len().checked_sub(1)?
            }
        };
        self.at = Some(at);
        self.entry(at)
    }

    /// The entry after the one that is shown, or what was typed.
    fn newer(&mut self) -> Option<String> {
        let at = self.at? + 1;
        if at < self.entries.len() {
            self.at = Some(at);
            return self.entry(at);
        }
        self.at = None;
        Some(std::mem::take(&mut self.draft))
    }

    /// No entry is shown any more.
    fn leave(&mut self) {
        self.at = None;
        self.draft.clear();
    }

    /// The newest entry with a text in it, after so many that are newer.
    fn find(&self, text: &str, skipped: usize) -> Option<String> {
        if text.is_empty() {
            return None;
        }
        self.entries.iter().rev().filter(|entry| entry.contains(text)).nth(skipped).cloned()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn editor(folder: &std::path::Path) -> Editor {
        Editor::new(folder.join("home/chat-history"))
    }

    fn type_text(editor: &mut Editor, text: &str) {
        for c in text.chars() {
            editor.key(Key::Char(c));
        }
    }

    fn enter(editor: &mut Editor, text: &str) {
        type_text(editor, text);
        assert_eq!(editor.key(Key::Enter), Typed::Entered);
        editor.take();
    }

    #[test]
    fn what_was_entered_is_remembered_for_the_user_alone() {
        let temp = tempfile::tempdir().unwrap();
        let mut first = editor(temp.path());
        enter(&mut first, "one");
        enter(&mut first, " hidden");
        enter(&mut first, "two");
        let file = temp.path().join("home/chat-history");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let mut second = editor(temp.path());
        let mut shown = Vec::new();
        type_text(&mut second, "draft");
        for key in [Key::Up, Key::Up, Key::Up, Key::Down, Key::Down] {
            second.key(key);
            shown.push(second.line.text().to_owned());
        }
        assert_eq!(shown, ["two", "one", "one", "two", "draft"]);
    }

    #[test]
    fn what_is_too_long_is_not_remembered() {
        let temp = tempfile::tempdir().unwrap();
        let mut editor = editor(temp.path());
        for length in [MAX_ENTRY, MAX_ENTRY + 1] {
            editor.key(Key::Paste("x".repeat(length)));
            assert_eq!(editor.take().len(), length);
        }
        editor.key(Key::Up);
        assert_eq!(editor.line.text().len(), MAX_ENTRY);
    }

    #[test]
    fn a_backslash_at_the_end_begins_another_line() {
        let temp = tempfile::tempdir().unwrap();
        let mut editor = editor(temp.path());
        type_text(&mut editor, "one\\");
        assert_eq!(editor.key(Key::Enter), Typed::Changed);
        type_text(&mut editor, "two");
        assert_eq!(editor.key(Key::Enter), Typed::Entered);
        assert_eq!(editor.take(), "one\ntwo");
        assert_eq!(editor.key(Key::Enter), Typed::Changed);
        editor.key(Key::Paste("a\nb".to_owned()));
        assert_eq!(editor.key(Key::Enter), Typed::Entered);
        assert_eq!(editor.take(), "a\nb");
    }

    #[test]
    fn keys_that_are_none_of_the_text() {
        let temp = tempfile::tempdir().unwrap();
        let mut editor = editor(temp.path());
        assert_eq!(editor.key(Key::Ctrl('d')), Typed::End);
        type_text(&mut editor, "ab");
        assert_eq!(editor.key(Key::Ctrl('d')), Typed::Changed);
        assert_eq!(editor.key(Key::Tab), Typed::Complete);
        assert_eq!(editor.key(Key::Ctrl('c')), Typed::Interrupt);
        assert_eq!(editor.before_cursor(), "");
    }

    #[test]
    fn an_earlier_entry_is_found_by_a_part_of_it() {
        let temp = tempfile::tempdir().unwrap();
        let mut editor = editor(temp.path());
        enter(&mut editor, "make test");
        enter(&mut editor, "make lint");
        enter(&mut editor, "other");
        type_text(&mut editor, "draft");
        editor.key(Key::Ctrl('r'));
        type_text(&mut editor, "make");
        assert_eq!(editor.line.text(), "make lint");
        editor.key(Key::Ctrl('r'));
        assert_eq!(editor.line.text(), "make test");
        editor.key(Key::Ctrl('r'));
        assert_eq!(editor.line.text(), "make test");
        editor.key(Key::Esc);
        assert_eq!(editor.line.text(), "draft");
        editor.key(Key::Ctrl('r'));
        type_text(&mut editor, "lint");
        assert_eq!(editor.key(Key::Enter), Typed::Entered);
        assert_eq!(editor.take(), "make lint");
    }

    #[test]
    fn what_is_typed_unseen_is_a_line_or_a_draft() {
        let temp = tempfile::tempdir().unwrap();
        let mut editor = editor(temp.path());
        let mut lines = Vec::new();
        for key in "next\rdraft".chars() {
            let key = if key == '\r' { Key::Enter } else { Key::Char(key) };
            lines.extend(editor.hidden_key(&key));
        }
        assert_eq!(lines, ["next"]);
        assert_eq!(editor.before_cursor(), "draft");
    }

    #[test]
    fn completion_goes_as_far_as_it_is_clear() {
        let temp = tempfile::tempdir().unwrap();
        let mut editor = editor(temp.path());
        let candidates = |texts: &[&str]| Completion {
            from: 1,
            candidates: texts.iter().map(|text| Candidate::new(*text, "")).collect(),
        };
        type_text(&mut editor, "/re");
        assert_eq!(editor.complete(candidates(&["reload", "resume"])).len(), 2);
        assert_eq!(editor.before_cursor(), "/re");
        type_text(&mut editor, "l");
        assert!(editor.complete(candidates(&["reload"])).is_empty());
        assert_eq!(editor.before_cursor(), "/reload ");
        editor.line.set("/m");
        assert!(editor.complete(candidates(&["model-a", "model-b"])).is_empty());
        assert_eq!(editor.before_cursor(), "/model-");
        assert!(editor.complete(candidates(&[])).is_empty());
    }
}
