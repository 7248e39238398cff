//! A program with its arguments: taken apart as a shell would, found without one.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;

/// A text that is no command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the agent's command `{command}` cannot be used: {why}")]
pub struct CommandError {
    /// The text.
    pub command: String,
    /// What is wrong with it.
    pub why: &'static str,
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// A name that is looked for on the `PATH`, or a path.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
}

impl CommandLine {
    /// Takes a command apart: quotes and backslashes mean what they mean in a shell, and nothing else has
    /// a meaning.
    pub fn parse(command: &str) -> Result<Self, CommandError> {
        let unusable = |why| CommandError { command: command.to_owned(), why };
        let words = shell_words::split(command).map_err(|_| unusable("a quote is not closed"))?;
        let mut words = words.into_iter();
        match words.next() {
            None => Err(unusable("there is no program in it")),
            Some(program) if program.is_empty() => Err(unusable("its program has no name")),
            Some(_) if command.contains('\0') => Err(unusable("it contains a NUL character")),
            Some(program) => Ok(Self { program, args: words.collect() }),
        }
    }

    /// Where the program is: a name is looked for in the absolute folders of `path`, a relative path is
    /// one from `cwd`.
    pub fn find(&self, path: &OsStr, cwd: &Path) -> Result<PathBuf, NotFound> {
        let mut not_found = NotFound::default();
        // A name, not a path.
        if !self.program.contains('/') {
            for folder in std::env::split_paths(path).filter(|folder| folder.is_absolute()) {
                if let Some(found) = not_found.look_at(folder.join(&self.program)) {
                    return Ok(found);
                }
                not_found.folders.push(folder);
            }
            return Err(not_found);
        }
        let place = cwd.join(&self.program);
        match not_found.look_at(place.clone()) {
            Some(found) => Ok(found),
            None => {
                not_found.folders.extend(place.parent().map(Path::to_owned));
                Err(not_found)
            }
        }
    }
}

/// The command as one would type it.
impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = std::iter::once(&self.program).chain(&self.args);
        f.write_str(&shell_words::join(words))
    }
}

/// Where a program was looked for in vain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NotFound {
    /// The folders.
    pub folders: Vec<PathBuf>,
    /// A file of that name that is there but cannot be executed.
    pub not_executable: Option<PathBuf>,
}

impl NotFound {
    /// The file, if it can be executed.
    fn look_at(&mut self, file: PathBuf) -> Option<PathBuf> {
        let found = std::fs::metadata(&file).ok().filter(std::fs::Metadata::is_file)?;
        if found.permissions().mode() & 0o111 != 0 {
            return Some(file);
        }
        self.not_executable.get_or_insert(file);
        None
    }
}

/// In words, to follow the program's name.
impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.not_executable {
            return write!(f, "{} is not executable", file.display());
        }
        if self.folders.is_empty() {
            return f.write_str("PATH names no folder to look in");
        }
        let folders: Vec<_> =
            self.folders.iter().map(|folder| folder.display().to_string()).collect();
        write!(f, "looked in {}", folders.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(command: &str) -> CommandLine {
        CommandLine::parse(command).unwrap()
    }

    fn executable(file: &Path) {
        std::fs::write(file, "").unwrap();
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_command_is_taken_apart_as_by_a_shell() {
        let npx = parse("npx -y @agentclientprotocol/claude-agent-acp@latest");
        assert_eq!(npx.program, "npx");
        assert_eq!(npx.args, ["-y", "@agentclientprotocol/claude-agent-acp@latest"]);
        let quoted = parse(r#"'/opt/my agent/bin' "--name=a b" c\ d '' "#);
        assert_eq!(quoted.program, "/opt/my agent/bin");
        assert_eq!(quoted.args, ["--name=a b", "c d", ""]);
    }

    #[test]
    fn what_only_a_shell_would_understand_is_plain_text() {
        let command = parse("agent $HOME `id` $(id) a;b | c > d && e *");
        let expected = ["$HOME", "`id`", "$(id)", "a;b", "|", "c", ">", "d", "&&", "e", "*"];
        assert_eq!(command.args, expected);
    }

    #[test]
    fn a_command_that_cannot_be_parsed_is_an_error_that_shows_it() {
        for (command, why) in [
            ("agent 'unclosed", "a quote is not closed"),
            ("agent \"unclosed", "a quote is not closed"),
            ("", "there is no program in it"),
            ("  # nothing", "there is no program in it"),
            ("'' --acp", "its program has no name"),
            ("agent a\0b", "NUL"),
        ] {
            let error = CommandLine::parse(command).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(command), "{error}");
        }
    }

    #[test]
    fn a_command_is_shown_so_that_it_can_be_typed() {
        for command in ["gemini --acp", "'/opt/my agent' 'a b' '' '$x'"] {
            let parsed = parse(command);
            assert_eq!(parse(&parsed.to_string()), parsed);
        }
        assert_eq!(parse("gemini   --acp").to_string(), "gemini --acp");
    }

    #[test]
    fn a_program_is_found_in_absolute_folders_only_and_must_be_executable() {
        let temp = tempfile::tempdir().unwrap();
        let (first, second) = (temp.path().join("first"), temp.path().join("second"));
        std::fs::create_dir_all(first.join("folder")).unwrap();
        std::fs::create_dir(&second).unwrap();
        std::fs::write(first.join("gemini"), "").unwrap();
        let path = std::env::join_paths([Path::new("relative"), first.as_path(), second.as_path()])
            .unwrap();
        let find = |command: &str| parse(command).find(&path, temp.path());

        let error = find("gemini --acp").unwrap_err();
        assert_eq!(error.not_executable, Some(first.join("gemini")));
        assert!(error.to_string().ends_with("first/gemini is not executable"), "{error}");
        executable(&second.join("gemini"));
        assert_eq!(find("gemini --acp").unwrap(), second.join("gemini"));

        let error = find("folder").unwrap_err();
        assert_eq!(error.folders, [first.clone(), second.clone()]);
        let expected = format!("looked in {}, {}", first.display(), second.display());
        assert_eq!(error.to_string(), expected);
        let error = parse("gemini").find(OsStr::new("relative"), temp.path()).unwrap_err();
        assert_eq!(error.to_string(), "PATH names no folder to look in");
    }

    #[test]
    fn a_path_is_one_from_the_working_directory_and_not_looked_for_elsewhere() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("bin")).unwrap();
        let agent = temp.path().join("bin/agent");
        executable(&agent);
        let path = temp.path().as_os_str();
        assert_eq!(
            parse("./bin/agent").find(path, temp.path()).unwrap(),
            temp.path().join("./bin/agent")
        );
        let absolute =
            CommandLine { program: agent.to_str().unwrap().to_owned(), args: Vec::new() };
        assert_eq!(absolute.find(OsStr::new(""), Path::new("/")).unwrap(), agent);
        let elsewhere = temp.path().join("elsewhere");
        let error = parse("bin/agent").find(path, &elsewhere).unwrap_err();
        assert_eq!(error.folders, [elsewhere.join("bin")]);
    }
}
