//! Folders of the user's that count wherever the program is started: Tenon's own, and Copilot's.

use std::ffi::OsString;
use std::path::Path;
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::error::CliError;

/// Tenon's own folder: the one that the command line names, or the usual one. On the command line it is seen from where the
/// program was started, and not from the workspace: a repository must not bring a home along.
pub fn of_tenon(given: Option<&Path>) -> Result<PathBuf, CliError> {
    match given {
        Some(home) if home.is_absolute() => return Ok(std::path::absolute(home)?),
        Some(home) => return Ok(std::path::absolute(started_in()?.join(home))?),
        None => {}
    }
    let home = from_variable("TENON_HOME", std::env::var_os("TENON_HOME"))?
        .or_else(|| users_home().map(|home| home.join(".tenon")))
        .ok_or_else(|| {
            CliError::new("there is no home directory").hint("set TENON_HOME or pass --home DIR")
        })?;
    Ok(std::path::absolute(home)?)
}

/// Copilot's folder, if the user has a home.
pub fn of_copilot() -> Result<Option<PathBuf>, CliError> {
    let named = from_variable("COPILOT_HOME", std::env::var_os("COPILOT_HOME"))?;
    Ok(named.or_else(|| users_home().map(|home| home.join(".copilot"))))
}

/// Where the program was started: whoever asks first has not entered any other directory yet.
fn started_in() -> Result<PathBuf, CliError> {
    static STARTED_IN: OnceLock<PathBuf> = OnceLock::new();
    if let Some(folder) = STARTED_IN.get() {
        return Ok(folder.clone());
    }
    let folder = current_directory()?;
    Ok(STARTED_IN.get_or_init(|| folder).clone())
}

/// The directory that the program is in.
pub fn current_directory() -> Result<PathBuf, CliError> {
    std::env::current_dir()
        .map_err(|error| CliError::new(format!("the current directory is gone: {error}")))
}

/// The folder that a variable names; none if the variable is empty. What is in there counts as the user's own,
/// so it is one folder, wherever the program is started: a relative path would lead into the repository.
fn from_variable(name: &str, value: Option<OsString>) -> Result<Option<PathBuf>, CliError> {
    let Some(folder) = value.filter(|value| !value.is_empty()).map(PathBuf::from) else {
        return Ok(None);
    };
    if folder.is_absolute() {
        return Ok(Some(folder));
    }
    Err(CliError::new(format!("{name} is not an absolute path: {}", folder.display()))
        .hint(format!("set {name} to a path that begins with /, or unset it")))
}

/// The user's home, for the same reason only where it is one folder.
fn users_home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_names_one_folder_or_none() {
        let read = |value: Option<&str>| from_variable("COPILOT_HOME", value.map(OsString::from));
        assert_eq!(read(None).unwrap(), None);
        assert_eq!(read(Some("")).unwrap(), None);
        assert_eq!(read(Some("/a/b")).unwrap(), Some(PathBuf::from("/a/b")));
        for relative in [".", "..", "a", "./a", "~/a", " "] {
            let error = read(Some(relative)).unwrap_err();
            assert!(error.message().contains("COPILOT_HOME is not an absolute path"), "{relative}");
        }
    }
}
