//! `tenon agents`: which coding agents there are, and what is missing to use each.

use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;
use std::process::Stdio;
use std::time::Duration;

use anstyle::Style;
use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::kill_process_group;
use serde::Serialize;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::task::JoinSet;

use crate::agent_choice;
use crate::agent_choice::DefaultBy;
use crate::agent_choice::Known;
use crate::args::Args;
use crate::catalogue::one_line;
use crate::error::CliError;
use crate::output;
use crate::output::BOLD;
use crate::output::DIM;
use crate::output::GREEN;
use crate::output::Progress;
use crate::output::RED;
use crate::output::Table;
use crate::workspace;

/// How long a program may take to say its version.
const VERSION_PATIENCE: Duration = Duration::from_secs(10);

/// How much of what it says is read, in bytes.
const VERSION_BYTES: u64 = 4 * 1024;

/// The longest version that is shown, in characters.
const VERSION_LENGTH: usize = 32;

/// The longest error that is shown in a row, in characters.
const ERROR_LENGTH: usize = 100;

/// An agent as it is listed.
#[derive(Debug, Serialize)]
struct Listed {
    name: String,
    title: Option<String>,
    /// What starts it.
    command: Option<String>,
    /// The npm package it comes in.
    package: Option<String>,
    /// Where its program is; none if it is not installed.
    path: Option<PathBuf>,
    version: Option<String>,
    /// How to log in.
    login: Option<String>,
    /// `built-in`, `config`, or both.
    source: &'static str,
    /// Whether it is used when nobody names one.
    default: bool,
    /// Why it cannot be used.
    error: Option<String>,
}

/// Lists the known agents and which of them are installed.
pub async fn run(args: &Args) -> Result<ExitCode, CliError> {
    let home = workspace::home(args)?;
    let config = agent_choice::config(&home)?;
    let known = agent_choice::known(&config, &agent_choice::own_program()?);
    let default = agent_choice::default_agent(&config, &known);
    let versions = {
        let _progress = Progress::start("asking for versions ...");
        versions(&known).await
    };
    let default_name = default.as_ref().map(|(name, _)| name.as_str());
    let listed: Vec<_> = known
        .into_iter()
        .zip(versions)
        .map(|(known, version)| {
            let in_config = config.agents.contains_key(&known.name);
            let is_default = default_name == Some(known.name.as_str());
            Listed::new(known, version, in_config, is_default)
        })
        .collect();
    if args.json {
        output::json(&listed)?;
        return Ok(ExitCode::SUCCESS);
    }
    table(&listed).print();
    output::line("");
    output::line(said_of_default(default.as_ref(), &listed));
    Ok(ExitCode::SUCCESS)
}

impl Listed {
    fn new(known: Known, version: Option<String>, in_config: bool, default: bool) -> Self {
        let source = match (known.is_built_in, in_config) {
            (true, false) => "built-in",
            (true, true) => "built-in, config",
            (false, _) => "config",
        };
        let listed = Self {
            name: known.name,
            title: None,
            command: None,
            package: None,
            path: known.program,
            version,
            login: None,
            source,
            default,
            error: None,
        };
        match known.definition {
            Ok(definition) => Self {
                title: Some(definition.title),
                command: Some(definition.command.to_string()),
                package: definition.package,
                login: definition.login,
                ..listed
            },
            Err(error) => Self { error: Some(error.to_string()), ..listed },
        }
    }

    /// What is to be done before it can be used.
    fn next(&self) -> (String, Style) {
        if let Some(error) = &self.error {
            return (one_line(error, ERROR_LENGTH), RED);
        }
        let (path, login, package) = (&self.path, &self.login, &self.package);
        let command = self.command.as_deref().unwrap_or_default();
        match (path, login, package) {
            (Some(_), Some(login), _) => (format!("log in: {login}"), DIM),
            (Some(_), None, _) => (String::new(), DIM),
            (None, _, Some(package)) => (format!("npm install -g {package}"), DIM),
            (None, _, None) => (format!("not on the PATH: {command}"), DIM),
        }
    }
}

fn table(agents: &[Listed]) -> Table {
    let mut table = Table::new(&["AGENT", "TITLE", "INSTALLED", "VERSION", "FROM", "NEXT"]);
    for agent in agents {
        let mark = if agent.default { " *" } else { "" };
        let dash = || ("-".to_owned(), DIM);
        let path = agent.path.as_ref().map(|path| path.display().to_string());
        let installed = match (&agent.error, path) {
            (Some(_), _) => dash(),
            (None, Some(path)) => (path, GREEN),
            (None, None) => ("no".to_owned(), DIM),
        };
        let plain = |text: &Option<String>| match text {
            Some(text) => (text.clone(), Style::new()),
            None => dash(),
        };
        table.row(vec![
            (format!("{}{mark}", agent.name), BOLD),
            plain(&agent.title),
            installed,
            plain(&agent.version),
            (agent.source.to_owned(), DIM),
            agent.next(),
        ]);
    }
    table
}

/// Which agent is used when nobody names one, and why.
fn said_of_default(default: Option<&(String, DefaultBy)>, agents: &[Listed]) -> String {
    let Some((name, by)) = default else {
        return format!(
            "{DIM}no default: --agent NAME, ${}, or default-agent in config.toml{DIM:#}",
            agent_choice::VARIABLE
        );
    };
    if agents.iter().any(|agent| agent.name == *name) {
        format!("{DIM}* is used when none is named ({by}){DIM:#}")
    } else {
        format!("{RED}{name}{RED:#} is to be used when none is named ({by}), and is not known")
    }
}

/// What each installed agent says its version is; all are asked at once.
async fn versions(known: &[Known]) -> Vec<Option<String>> {
    let mut asked = JoinSet::new();
    for (place, known) in known.iter().enumerate() {
        if let (Ok(definition), Some(program)) = (&known.definition, &known.program)
            && !definition.version_args.is_empty()
        {
            let (program, args) = (program.clone(), definition.version_args.clone());
            asked.spawn(async move {
                let patience = tokio::time::sleep(VERSION_PATIENCE);
                (place, version(&program, &args, patience).await)
            });
        }
    }
    let mut versions = vec![None; known.len()];
    while let Some(answered) = asked.join_next().await {
        // One that panics has no version.
        if let Ok((place, version)) = answered {
            versions[place] = version;
        }
    }
    versions
}

/// The version in the first line that a program prints, or the line; none if it fails, says nothing, or has not ended
/// when patience ends.
async fn version(
    program: &Path,
    args: &[String],
    patience: impl Future<Output = ()>,
) -> Option<String> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // In a group of its own, so that what a wrapper has started ends with it.
    let mut child = command.process_group(0).kill_on_drop(true).spawn().ok()?;
    let group = Pid::from_raw(child.id()?.cast_signed())?;
    let mut output = child.stdout.take()?.take(VERSION_BYTES);
    let mut said = Vec::new();
    let ending = async {
        let _ = output.read_to_end(&mut said).await;
        drop(output);
        child.wait().await.is_ok_and(|status| status.success())
    };
    let ended = tokio::select! {
        biased;
        success = ending => Some(success),
        () = patience => None,
    };
    match ended {
        Some(true) => first_line(&said),
        Some(false) => None,
        None => {
            // The child was not waited for, so the group is still its own.
            let _ = kill_process_group(group, Signal::KILL);
            let _ = child.wait().await;
            None
        }
    }
}

fn first_line(said: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(said);
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    let is_version = |word: &&str| {
        let number = word.strip_prefix('v').unwrap_or(word);
        number.starts_with(|c: char| c.is_ascii_digit()) && number.contains('.')
    };
    let version = line.split_whitespace().find(is_version);
    let shown = version.map_or(line, |word| word.trim_end_matches(['.', ',']));
    Some(one_line(shown, VERSION_LENGTH))
}

#[cfg(test)]
mod tests {
    use tenon_acp::config::AgentsConfig;

    use super::*;

    fn listed(name: &str) -> Listed {
        Listed {
            name: name.to_owned(),
            title: Some("Title".to_owned()),
            command: Some(format!("{name} --acp")),
            package: Some("pack".to_owned()),
            path: None,
            version: None,
            login: Some("run it once".to_owned()),
            source: "built-in",
            default: false,
            error: None,
        }
    }

    fn shell(script: &str) -> Vec<String> {
        vec!["-c".to_owned(), script.to_owned()]
    }

    #[test]
    fn what_comes_next_depends_on_what_is_there() {
        assert_eq!(listed("a").next().0, "npm install -g pack");
        let installed = Listed { path: Some("/bin/a".into()), ..listed("a") };
        assert_eq!(installed.next().0, "log in: run it once");
        let own = Listed { package: None, ..listed("a") };
        assert_eq!(own.next().0, "not on the PATH: a --acp");
        let broken = Listed { error: Some("no\ncommand".to_owned()), ..listed("a") };
        assert_eq!(broken.next().0, "no command");
    }

    #[test]
    fn every_agent_is_a_row_and_the_default_is_marked() {
        let broken = Listed { error: Some("no command".to_owned()), ..listed("broken") };
        let lines = table(&[Listed { default: true, ..listed("a") }, broken]).lines();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].contains("a *") && lines[1].contains("npm install"), "{}", lines[1]);
        assert!(lines[2].contains("no command") && !lines[2].contains(" * "), "{}", lines[2]);
    }

    #[test]
    fn a_default_that_is_not_known_is_said() {
        let default = ("gone".to_owned(), DefaultBy::Config);
        let said = said_of_default(Some(&default), &[listed("a")]);
        assert!(said.contains("gone") && said.contains("not known"), "{said}");
        let said = said_of_default(None, &[listed("a")]);
        assert!(said.contains("--agent NAME"), "{said}");
    }

    #[test]
    fn built_in_agents_are_listed_with_their_command() {
        let known = agent_choice::known(&AgentsConfig::default(), Path::new("/bin/tenon"));
        let agents: Vec<_> =
            known.into_iter().map(|known| Listed::new(known, None, false, false)).collect();
        let copilot = agents.iter().find(|agent| agent.name == "copilot").unwrap();
        assert_eq!(copilot.command.as_deref(), Some("copilot --acp"));
        assert_eq!((copilot.source, copilot.error.as_deref()), ("built-in", None));
    }

    #[tokio::test]
    async fn a_version_is_found_in_the_first_line_that_a_program_prints() {
        let patience = || tokio::time::sleep(Duration::from_secs(60));
        let ask =
            async |script: &str| version(Path::new("/bin/sh"), &shell(script), patience()).await;
        assert_eq!(ask("echo; echo 1.2.3 '(x)'; echo more").await.as_deref(), Some("1.2.3"));
        assert_eq!(ask("echo @a/some-agent 2.6.0").await.as_deref(), Some("2.6.0"));
        assert_eq!(ask("echo The Agent v1.0.102.").await.as_deref(), Some("v1.0.102"));
        assert_eq!(ask("echo nightly build").await.as_deref(), Some("nightly build"));
        assert_eq!(ask("echo 1.2.3; exit 1").await, None);
        assert_eq!(ask("true").await, None);
        assert_eq!(version(Path::new("/no/such/program"), &[], patience()).await, None);
    }

    #[tokio::test]
    async fn a_program_that_does_not_end_is_ended_with_what_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        // The child of the shell says that it is there, and holds the pipe open; the reader gets to its end when it is
        // gone.
        let mut reader = tokio::net::unix::pipe::OpenOptions::new().open_receiver(&pipe).unwrap();
        let script = format!("(echo; exec sleep 1000) > '{}' & wait", pipe.display());
        let until_it_is_there = async {
            reader.read_u8().await.unwrap();
        };
        assert_eq!(version(Path::new("/bin/sh"), &shell(&script), until_it_is_there).await, None);
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(60), reader.read_to_end(&mut rest));
        assert_eq!(ended.await.expect("nobody holds the pipe any more").unwrap(), 0);
    }
}
