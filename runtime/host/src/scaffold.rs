//! New extensions: a folder with an entry file that works as it is.

use std::fmt;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::str::FromStr;

use serde::Deserialize;
use serde::Serialize;

use crate::staging::Staging;

/// The longest name of an extension, in characters. It becomes part of ids, tool names and paths.
pub const MAX_NAME_CHARS: usize = 64;

/// The longest tool name that every agent accepts, in characters.
const MAX_TOOL_NAME_CHARS: usize = 64;

/// The longest description that is written into the file, in characters: it is one line of comment.
const MAX_DESCRIPTION_CHARS: usize = 300;

/// What stands there when no description was given.
const NO_DESCRIPTION: &str = "say here in one sentence what it is for.";

/// What a new extension begins with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// One tool.
    #[default]
    Basic,
    /// A page with a server behind it.
    Canvas,
    /// Hooks before and after tool calls, and on prompts.
    Hooks,
    /// One tool, in TypeScript.
    Ts,
}

impl Kind {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Basic, Self::Canvas, Self::Hooks, Self::Ts];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Basic => "basic",
            Self::Canvas => "canvas",
            Self::Hooks => "hooks",
            Self::Ts => "ts",
        }
    }

    /// The name of its entry file, and what is in it.
    fn template(self) -> (&'static str, &'static str) {
        match self {
            Self::Basic => ("extension.mjs", include_str!("scaffold/basic.mjs")),
            Self::Canvas => ("extension.mjs", include_str!("scaffold/canvas.mjs")),
            Self::Hooks => ("extension.mjs", include_str!("scaffold/hooks.mjs")),
            Self::Ts => ("extension.ts", include_str!("scaffold/typed.ts")),
        }
    }

    /// Whether it begins with a tool.
    fn has_tool(self) -> bool {
        matches!(self, Self::Basic | Self::Ts)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| {
            let all: Vec<_> = Self::ALL.iter().map(|kind| kind.as_str()).collect();
            format!("\"{text}\" is not a kind of extension; there are: {}", all.join(", "))
        })
    }
}

/// An extension that was just made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scaffolded {
    /// Its folder.
    pub folder: PathBuf,
    /// Its entry file.
    pub entry: PathBuf,
    /// The hash of what was written, see [`crate::trust::content_hash`]; what is in the folder may have been changed since.
    pub hash: String,
    /// The tool that it begins with, if it does with one.
    pub tool: Option<String>,
}

/// A name that no extension can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{name}\" cannot be the name of an extension: use 1 to {MAX_NAME_CHARS} letters, digits, \"-\" and \
     \"_\", not beginning with \"-\""
)]
pub struct NameError {
    /// The name.
    pub name: String,
}

/// An extension could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ScaffoldError {
    /// Its name will not do.
    #[error(transparent)]
    Name(#[from] NameError),
    /// There is something of that name.
    #[error("{path} is there already; edit that extension, or choose another name")]
    Exists {
        /// What is there.
        path: PathBuf,
    },
    /// The files could not be written.
    #[error("{path} cannot be written: {source}")]
    Io {
        /// What was to be written.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Whether an extension can have that name.
pub fn check_name(name: &str) -> Result<(), NameError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let fits = (1..=MAX_NAME_CHARS).contains(&name.len());
    if fits && name.chars().all(plain) && !name.starts_with('-') {
        Ok(())
    } else {
        Err(NameError { name: name.to_owned() })
    }
}

/// Makes the extension `name` in `parent`, a folder of extensions: all of it, or nothing.
pub fn scaffold(
    parent: &Path,
    name: &str,
    kind: Kind,
    description: Option<&str>,
) -> Result<Scaffolded, ScaffoldError> {
    check_name(name)?;
    let folder = parent.join(name);
    // A link to nothing counts too.
    if fs::symlink_metadata(&folder).is_ok() {
        return Err(ScaffoldError::Exists { path: folder });
    }
    let failed = |source| ScaffoldError::Io { path: folder.clone(), source };
    let staging = Staging::new(parent, "new").map_err(failed)?;
    let ready = staging.path().join(name);
    let (file, template) = kind.template();
    fs::create_dir(&ready).map_err(failed)?;
    fs::write(ready.join(file), fill(template, name, description)).map_err(failed)?;
    let hash = crate::trust::content_hash(&ready).map_err(failed)?;
    if let Err(source) = fs::rename(&ready, &folder) {
        // Somebody else was quicker.
        return Err(match source.kind() {
            std::io::ErrorKind::DirectoryNotEmpty
            | std::io::ErrorKind::AlreadyExists
            | std::io::ErrorKind::NotADirectory => ScaffoldError::Exists { path: folder },
            _ => ScaffoldError::Io { path: folder, source },
        });
    }
    let entry = folder.join(file);
    Ok(Scaffolded { folder, entry, hash, tool: kind.has_tool().then(|| tool_name(name)) })
}

/// The template with its blanks filled in.
fn fill(template: &str, name: &str, description: Option<&str>) -> String {
    template
        .replace("__name__", name)
        .replace("__tool__", &tool_name(name))
        // Last: what somebody wrote is not looked into.
        .replace("__description__", &one_line(description.unwrap_or_default()))
}

/// The name of an extension's example tool: an identifier that every agent takes.
fn tool_name(name: &str) -> String {
    const SUFFIX: &str = "_example";
    let mut tool = name.replace('-', "_");
    if tool.starts_with(|c: char| c.is_ascii_digit()) {
        tool.insert_str(0, "ext_");
    }
    tool.truncate(MAX_TOOL_NAME_CHARS - SUFFIX.len());
    tool + SUFFIX
}

/// A description as one line of comment. JavaScript knows more line breaks than one would think.
fn one_line(text: &str) -> String {
    let breaks =
        |c: char| c.is_whitespace() || c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let words: Vec<&str> = text.split(breaks).filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return NO_DESCRIPTION.to_owned();
    }
    // Harmless in a line comment, and still so if somebody makes a block of it.
    let line = words.join(" ").replace("*/", "* /");
    line.chars().take(MAX_DESCRIPTION_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn names_are_letters_digits_hyphens_and_underscores() {
        let long = "a".repeat(MAX_NAME_CHARS);
        for name in ["a", "My-ext_2", "_private", "9lives", &long] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        let longer = "a".repeat(MAX_NAME_CHARS + 1);
        for name in ["", "-rf", "a b", "a/b", "..", ".hidden", "é", "a\n", &longer] {
            let error = check_name(name).unwrap_err();
            assert!(error.to_string().contains("cannot be the name"), "{error}");
        }
    }

    #[test]
    fn tool_names_are_identifiers_that_every_agent_takes() {
        assert_eq!(tool_name("my-ext"), "my_ext_example");
        assert_eq!(tool_name("9lives"), "ext_9lives_example");
        assert_eq!(tool_name(&"x".repeat(64)).len(), MAX_TOOL_NAME_CHARS);
    }

    #[test]
    fn every_kind_is_written_whole_and_without_blanks() {
        let temp = tempfile::tempdir().unwrap();
        let parent = temp.path().join(".github/extensions");
        for kind in Kind::ALL {
            let made = scaffold(&parent, kind.as_str(), kind, Some("Does a thing.")).unwrap();
            assert_eq!(made.folder, parent.join(kind.as_str()));
            let text = fs::read_to_string(&made.entry).unwrap();
            assert!(text.starts_with(&format!("// {kind}: Does a thing.\n")), "{text}");
            assert!(text.contains("await joinSession("), "{text}");
            for blank in ["__name__", "__tool__", "__description__"] {
                assert!(!text.contains(blank), "{kind}: {blank}");
            }
            let named = made.tool.as_ref().is_none_or(|tool| text.contains(&format!("\"{tool}\"")));
            assert!(named, "{text}");
        }
        assert_eq!(entries(&parent), ["basic", "canvas", "hooks", "ts"]);
    }

    #[test]
    fn a_description_cannot_leave_its_comment() {
        let temp = tempfile::tempdir().unwrap();
        let evil = "one\ntwo\r\u{2028}process.exit()\u{2029}*/ __tool__";
        let made = scaffold(temp.path(), "a", Kind::Basic, Some(evil)).unwrap();
        let text = fs::read_to_string(made.entry).unwrap();
        assert_eq!(text.lines().next(), Some("// a: one two process.exit() * / __tool__"));
        assert_eq!(one_line(" \n "), NO_DESCRIPTION);
        assert_eq!(one_line(&"x".repeat(1000)).len(), MAX_DESCRIPTION_CHARS);
    }

    #[test]
    fn what_is_there_is_named_and_left_alone() {
        let temp = tempfile::tempdir().unwrap();
        let there = temp.path().join("a");
        fs::create_dir(&there).unwrap();
        let error = scaffold(temp.path(), "a", Kind::Basic, None).unwrap_err();
        assert!(error.to_string().contains(&there.display().to_string()), "{error}");
        assert_eq!(entries(&there), [""; 0]);
        std::os::unix::fs::symlink("/no/where", temp.path().join("b")).unwrap();
        let error = scaffold(temp.path(), "b", Kind::Basic, None).unwrap_err();
        assert!(matches!(error, ScaffoldError::Exists { .. }), "{error}");
        assert_eq!(entries(temp.path()), ["a", "b"]);
    }

    #[test]
    fn a_bad_name_makes_no_folder_at_all() {
        let temp = tempfile::tempdir().unwrap();
        let parent = temp.path().join("extensions");
        scaffold(&parent, "../a", Kind::Basic, None).unwrap_err();
        assert!(!parent.exists());
    }

    #[test]
    fn kinds_have_names() {
        assert_eq!("ts".parse::<Kind>(), Ok(Kind::Ts));
        let error = "big".parse::<Kind>().unwrap_err();
        assert!(error.contains("basic, canvas, hooks, ts"), "{error}");
        assert_eq!(serde_json::to_value(Kind::Basic).unwrap(), "basic");
    }
}
