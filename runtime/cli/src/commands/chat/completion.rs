//! What can be completed: commands, and their arguments where it costs little to know them.

use crate::sanitise::clean;

/// Something that could be meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The text.
    pub text: String,
    /// What it is.
    pub note: String,
}

impl Candidate {
    /// A text, and what it is.
    pub fn new(text: impl Into<String>, note: impl Into<String>) -> Self {
        Self { text: text.into(), note: note.into() }
    }
}

/// What could be meant by the end of a line.
#[derive(Debug, PartialEq, Eq)]
pub struct Completion {
    /// Where it begins, in bytes.
    pub from: usize,
    /// What could be meant.
    pub candidates: Vec<Candidate>,
}

/// Whoever knows what there is.
pub trait Known {
    /// Every command, without the slash.
    fn commands(&self) -> Vec<Candidate>;

    /// What can follow a command.
    fn arguments(&self, command: &str) -> Vec<Candidate>;
}

/// What could be meant by what was typed up to the cursor.
pub fn complete(typed: &str, known: &impl Known) -> Completion {
    let nothing = Completion { from: typed.len(), candidates: Vec::new() };
    // Only the first line is a command.
    let Some(rest) = typed.strip_prefix('/').filter(|rest| !rest.contains('\n')) else {
        return nothing;
    };
    match rest.split_once(' ') {
        None => matching(1, rest, known.commands()),
        Some((command, argument)) => {
            let argument = argument.trim_start();
            if argument.contains(' ') {
                return nothing;
            }
            let from = typed.len() - argument.len();
            matching(from, argument, known.arguments(command))
        }
    }
}

/// Those that begin with a text, each once, in order. What an agent calls something may be no name at all; it
/// would be typed as it is.
fn matching(from: usize, text: &str, mut candidates: Vec<Candidate>) -> Completion {
    let is_name = |name: &str| !name.contains(char::is_whitespace) && clean(name) == name;
    candidates.retain(|candidate| candidate.text.starts_with(text) && is_name(&candidate.text));
    candidates.sort_by(|a, b| a.text.cmp(&b.text));
    candidates.dedup_by(|a, b| a.text == b.text);
    Completion { from, candidates }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Few;

    impl Known for Few {
        fn commands(&self) -> Vec<Candidate> {
            ["resume", "reload", "model", "reload", "sh\x1b]52;c;eA==\x07", "two words"]
                .map(|name| Candidate::new(name, ""))
                .into()
        }

        fn arguments(&self, command: &str) -> Vec<Candidate> {
            match command {
                "model" => vec![Candidate::new("large", ""), Candidate::new("little", "")],
                _ => Vec::new(),
            }
        }
    }

    fn completed(typed: &str) -> (usize, Vec<String>) {
        let Completion { from, candidates } = complete(typed, &Few);
        (from, candidates.into_iter().map(|candidate| candidate.text).collect())
    }

    #[test]
    fn commands_are_completed_after_a_slash() {
        assert_eq!(completed("/re"), (1, vec!["reload".to_owned(), "resume".to_owned()]));
        assert_eq!(completed("/").1.len(), 3);
        assert_eq!(completed("/x"), (1, vec![]));
        assert_eq!(completed("re"), (2, vec![]));
        assert_eq!(completed("/a\n/re").1, Vec::<String>::new());
    }

    #[test]
    fn arguments_are_completed_where_they_are_known() {
        assert_eq!(completed("/model l").1, ["large", "little"]);
        assert_eq!(completed("/model  la"), (8, vec!["large".to_owned()]));
        assert_eq!(completed("/model ").1.len(), 2);
        assert_eq!(completed("/reload x").1, Vec::<String>::new());
        assert_eq!(completed("/model large x").1, Vec::<String>::new());
    }
}
