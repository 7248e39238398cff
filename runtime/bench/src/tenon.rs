//! The `tenon` program that is measured, as a user has it.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;
use tenon_console::error::CliError;
use tenon_host::Isolates;

/// What the program is called.
const NAME: &str = "tenon";

/// A build of the program.
#[derive(Debug, Clone)]
pub struct Tenon {
    program: PathBuf,
    /// What it says of its engine.
    pub engine: EngineInfo,
}

/// The engine in a build of the program.
#[derive(Debug, Clone, Deserialize)]
pub struct EngineInfo {
    /// `v8` or `quickjs`.
    pub name: String,
    /// The engine's own version.
    pub version: String,
}

impl Tenon {
    /// The program at the given path, or the one beside this program.
    pub fn find(given: Option<&Path>) -> Result<Self, CliError> {
        let program = match given {
            Some(program) => std::path::absolute(program)?,
            None => std::env::current_exe()?.with_file_name(NAME),
        };
        if !program.is_file() {
            return Err(CliError::new(format!("there is no program {}", program.display()))
                .hint("build it with make build, or name another with --tenon PROGRAM"));
        }
        let engine = engine_of(&program)?;
        Ok(Self { program, engine })
    }

    /// Its path.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Processes for extensions, forked by a zygote of its own.
    pub fn isolates(&self) -> Isolates {
        Isolates::processes(self.program.clone(), None)
    }
}

fn engine_of(program: &Path) -> Result<EngineInfo, CliError> {
    let output = Command::new(program).args(["--engine-info", "--json"]).output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let program = program.display();
        return Err(CliError::new(format!("{program} does not tell its engine: {text}")));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_or_tells_no_engine_is_refused() {
        for (program, why) in [
            ("/nowhere/tenon", "there is no program /nowhere/tenon"),
            ("/bin/false", "/bin/false does not tell its engine"),
        ] {
            let error = Tenon::find(Some(Path::new(program))).unwrap_err();
            assert!(error.message().contains(why), "{error:?}");
        }
    }
}
