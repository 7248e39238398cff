//! Starting an agent: what is asked for is checked, then the program is started, never through a shell.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::path::PathBuf;
use std::process::Stdio;

use rustix::process::Pid;
use tokio::process::ChildStdin;
use tokio::process::ChildStdout;
use tokio::process::Command;

use crate::command_line::NotFound;
use crate::definition::AgentDefinition;
use crate::environment::EnvironmentError;
use crate::environment::Sources;
use crate::environment::file_name;
use crate::guard;
use crate::process::AgentProcess;
use crate::stderr_log::StderrLog;

/// What is needed to start an agent.
#[derive(Clone)]
pub struct Launch {
    /// The agent.
    pub definition: AgentDefinition,
    /// The directory it works in.
    pub cwd: PathBuf,
    /// Further directories it may work in; those of the definition are added to them.
    pub additional_directories: Vec<PathBuf>,
    /// Tenon's folder.
    pub home: PathBuf,
    /// The session it is started for.
    pub session_id: Option<String>,
    /// Our own program.
    pub tenon: PathBuf,
    /// Whether it is started through a guard, which ends it also when this process is killed.
    pub guarded: bool,
    /// The user's environment: `tenon_host::environment::of_host()`.
    pub environment: Vec<(String, String)>,
}

/// An agent that was started.
pub struct Launched {
    /// Where it hears us.
    pub stdin: ChildStdin,
    /// Where we hear it.
    pub stdout: ChildStdout,
    /// The process.
    pub process: AgentProcess,
}

/// An agent could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// Something that every agent needs was not given.
    #[error("an agent cannot be started without a {what}")]
    Missing {
        /// What it is.
        what: &'static str,
    },
    /// A directory is not there, or cannot be entered.
    #[error("the {what} {} cannot be used: {source}", .path.display())]
    Directory {
        /// What it is for.
        what: &'static str,
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It depends on where one is which directory is meant.
    #[error("the additional directory \"{}\" is not an absolute path", .path.display())]
    Relative {
        /// The directory.
        path: PathBuf,
    },
    /// The program is not installed.
    #[error("the program \"{program}\" of the agent \"{agent}\" was not found: {looked}{}", install(.package))]
    Program {
        /// The agent.
        agent: String,
        /// The program.
        program: String,
        /// Where it was looked for.
        looked: NotFound,
        /// The npm package it comes in.
        package: Option<String>,
    },
    /// Its environment cannot be made.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// The system did not start it.
    #[error("{} could not be started: {source}", .program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

fn install(package: &Option<String>) -> String {
    package
        .as_ref()
        .map_or_else(String::new, |package| format!("; install it with `npm install -g {package}`"))
}

impl Launch {
    /// Checks everything that can be checked before a process is started. Directories are made absolute
    /// and free of links, and each is there once.
    pub fn validate(&mut self) -> Result<(), LaunchError> {
        if self.definition.name.trim().is_empty() {
            return Err(LaunchError::Missing { what: "name" });
        }
        if self.definition.command.program.trim().is_empty() {
            return Err(LaunchError::Missing { what: "command" });
        }
        if self.cwd.as_os_str().is_empty() {
            return Err(LaunchError::Missing { what: "working directory" });
        }
        self.cwd = directory("working directory", &self.cwd)?;
        let mut directories: Vec<PathBuf> = Vec::new();
        for path in
            self.additional_directories.iter().chain(&self.definition.additional_directories)
        {
            if path.as_os_str().is_empty() {
                continue;
            }
            if !path.is_absolute() {
                return Err(LaunchError::Relative { path: path.clone() });
            }
            let found = directory("additional directory", path)?;
            if found != self.cwd && !directories.contains(&found) {
                directories.push(found);
            }
        }
        self.additional_directories = directories;
        Ok(())
    }

    /// The environment the agent gets.
    pub fn variables(&self) -> Result<BTreeMap<String, String>, EnvironmentError> {
        self.sources().variables()
    }

    /// Starts the agent; what was not checked before is checked now. Must be called within a tokio runtime.
    pub fn start(mut self) -> Result<Launched, LaunchError> {
        self.validate()?;
        let variables = self.variables()?;
        let path = variables.get("PATH").map(OsStr::new).unwrap_or_default();
        let line = &self.definition.command;
        let program = line.find(path, &self.cwd).map_err(|looked| LaunchError::Program {
            agent: self.definition.name.clone(),
            program: line.program.clone(),
            looked,
            package: self.definition.package.clone(),
        })?;
        self.sources().make_home()?;

        let started = if self.guarded { self.tenon.clone() } else { program.clone() };
        let failed = |source| LaunchError::Spawn { program: started.clone(), source };
        let (mut command, lifeline) = if self.guarded {
            let (command, lifeline) =
                guard::command(&self.tenon, &program, &line.args).map_err(failed)?;
            (Command::from(command), Some(lifeline))
        } else {
            let mut command = Command::new(&program);
            // What it starts can be ended with it, and an interrupt at the terminal is ours to handle.
            command.args(&line.args).process_group(0);
            (command, None)
        };
        command.current_dir(&self.cwd).env_clear().envs(&variables);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let pipes = (id, child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(pid), Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(failed(std::io::Error::other("its pipes are missing")));
        };
        let stderr = StderrLog::read(stderr, self.log_file(pid), format!("process {pid}: {line}"));
        let lifeline = lifeline.map(guard::Handover::given);
        let process = AgentProcess::new(child, pid, lifeline, stderr);
        Ok(Launched { stdin, stdout, process })
    }

    /// The file that the agent's standard error is written to.
    fn log_file(&self, pid: Pid) -> PathBuf {
        let name = file_name(&self.definition.name);
        let of = match &self.session_id {
            Some(session) => file_name(session),
            None => pid.to_string(),
        };
        self.home.join("logs").join("agents").join(format!("{name}-{of}.log"))
    }

    fn sources(&self) -> Sources<'_> {
        Sources {
            definition: &self.definition,
            host: &self.environment,
            tenon: &self.tenon,
            home: &self.home,
            session_id: self.session_id.as_deref(),
        }
    }
}

/// A directory that is there, absolute and without links.
fn directory(what: &'static str, path: &Path) -> Result<PathBuf, LaunchError> {
    let unusable = |source| LaunchError::Directory { what, path: path.to_owned(), source };
    let found = std::fs::canonicalize(path).map_err(unusable)?;
    if !found.is_dir() {
        return Err(unusable(std::io::ErrorKind::NotADirectory.into()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use tokio::io::AsyncReadExt;
    use tokio::io::AsyncWriteExt;

    use crate::command_line::CommandLine;
    use crate::config::AgentsConfig;
    use crate::config::Credential;
    use crate::config::SecretSource;

    use super::*;

    /// A workspace, and an agent in it that is a shell script.
    struct Stage {
        temp: tempfile::TempDir,
    }

    impl Stage {
        fn new() -> Self {
            let stage = Self { temp: tempfile::tempdir().unwrap() };
            for folder in ["work", "home", "bin"] {
                std::fs::create_dir(stage.at(folder)).unwrap();
            }
            stage
        }

        fn at(&self, place: &str) -> PathBuf {
            // Temporary folders may be behind links.
            self.temp.path().canonicalize().unwrap().join(place)
        }

        fn launch(&self, command: CommandLine) -> Launch {
            let tenon = self.at("bin/tenon");
            let mut definition =
                AgentDefinition::resolve("demo", &AgentsConfig::default(), &tenon).unwrap();
            definition.name = "script".into();
            definition.command = command;
            Launch {
                definition,
                cwd: self.at("work"),
                additional_directories: Vec::new(),
                home: self.at("home"),
                session_id: Some("s-1".into()),
                tenon,
                guarded: false,
                environment: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
            }
        }

        fn script(&self, script: &str) -> Launch {
            self.launch(CommandLine {
                program: "sh".into(),
                args: vec!["-c".into(), script.into(), "agent".into(), "a b".into(), "$x".into()],
            })
        }
    }

    /// Waits until a log ends with a text. The end of a process is told after a moment also when the disk, or the
    /// thread that writes to it, takes longer.
    async fn wait_for_log(file: &Path, end: &str) {
        while !std::fs::read_to_string(file).is_ok_and(|log| log.ends_with(end)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn message(launch: Launch) -> String {
        launch.start().err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[tokio::test]
    async fn an_agent_runs_in_its_directory_with_its_arguments_as_they_are() {
        let stage = Stage::new();
        let launched = stage.script(r#"pwd; echo "$1|$2|$TENON_SESSION_ID"; cat"#).start().unwrap();
        let Launched { mut stdin, mut stdout, process } = launched;
        stdin.write_all(b"to the agent").await.unwrap();
        drop(stdin);
        let mut text = String::new();
        stdout.read_to_string(&mut text).await.unwrap();
        let work = stage.at("work");
        assert_eq!(text, format!("{}\na b|$x|s-1\nto the agent", work.display()));
        assert_eq!(process.exited().await, "exit code 0");
    }

    #[tokio::test]
    async fn name_command_and_directory_are_required() {
        let stage = Stage::new();
        let mut launch = stage.script("exit 0");
        launch.definition.name = " ".into();
        assert!(message(launch).ends_with("without a name"));
        let mut launch = stage.script("exit 0");
        launch.definition.command.program = String::new();
        assert!(message(launch).ends_with("without a command"));
        let mut launch = stage.script("exit 0");
        launch.cwd = PathBuf::new();
        assert!(message(launch).ends_with("without a working directory"));
    }

    #[tokio::test]
    async fn a_missing_working_directory_fails_before_anything_is_started() {
        let stage = Stage::new();
        std::fs::write(stage.at("file"), "").unwrap();
        for (place, why) in [("missing", "No such file"), ("file", "not a directory")] {
            let mut launch = stage.script("exit 0");
            launch.cwd = stage.at(place);
            let error = message(launch);
            assert!(error.contains("working directory") && error.contains(place), "{error}");
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_relative_working_directory_is_made_absolute_and_free_of_links() {
        let stage = Stage::new();
        std::os::unix::fs::symlink(stage.at("work"), stage.at("link")).unwrap();
        let mut launch = stage.script("exit 0");
        launch.cwd = stage.at("home/../link");
        launch.validate().unwrap();
        assert_eq!(launch.cwd, stage.at("work"));
        launch.cwd = PathBuf::from(".");
        launch.validate().unwrap();
        assert_eq!(launch.cwd, std::env::current_dir().unwrap().canonicalize().unwrap());
    }

    #[test]
    fn a_relative_additional_directory_is_refused() {
        let stage = Stage::new();
        let mut launch = stage.script("exit 0");
        launch.additional_directories = vec!["work".into()];
        let error = launch.validate().unwrap_err().to_string();
        assert_eq!(error, "the additional directory \"work\" is not an absolute path");
        let mut launch = stage.script("exit 0");
        launch.definition.additional_directories = vec!["./work".into()];
        assert!(matches!(launch.validate(), Err(LaunchError::Relative { .. })));
    }

    #[test]
    fn a_missing_additional_directory_is_refused() {
        let stage = Stage::new();
        let mut launch = stage.script("exit 0");
        launch.additional_directories = vec![stage.at("missing")];
        let error = launch.validate().unwrap_err().to_string();
        assert!(error.contains("additional directory") && error.contains("missing"), "{error}");
    }

    #[test]
    fn additional_directories_are_there_once_and_not_the_working_directory_again() {
        let stage = Stage::new();
        std::os::unix::fs::symlink(stage.at("home"), stage.at("link")).unwrap();
        let mut launch = stage.script("exit 0");
        launch.additional_directories =
            vec![stage.at("home"), PathBuf::new(), stage.at("link"), stage.at("work")];
        launch.definition.additional_directories = vec![stage.at("bin"), stage.at("bin/../home")];
        launch.validate().unwrap();
        assert_eq!(launch.additional_directories, [stage.at("home"), stage.at("bin")]);
        launch.validate().unwrap();
        assert_eq!(launch.additional_directories, [stage.at("home"), stage.at("bin")]);
    }

    #[tokio::test]
    async fn a_missing_program_is_named_with_where_it_was_looked_for_and_how_to_get_it() {
        let stage = Stage::new();
        let mut launch = stage.launch(CommandLine::parse("no-such-agent --acp").unwrap());
        launch.definition.package = Some("@example/agent".into());
        let error = message(launch);
        assert!(error.contains("\"no-such-agent\"") && error.contains("\"script\""), "{error}");
        assert!(error.contains("/usr/bin"), "{error}");
        assert!(error.contains("npm install -g @example/agent"), "{error}");
    }

    #[tokio::test]
    async fn a_program_is_looked_for_on_the_path_that_the_agent_will_have() {
        let stage = Stage::new();
        std::fs::create_dir(stage.at("work/tools")).unwrap();
        std::os::unix::fs::symlink("/bin/sh", stage.at("work/tools/the-agent")).unwrap();
        let launch = stage.launch(CommandLine::parse("the-agent -c 'exit 7'").unwrap());
        assert!(message(launch.clone()).contains("was not found"));
        let mut with_path = launch;
        let path = stage.at("work/tools").to_str().unwrap().to_owned();
        with_path.definition.env.insert("PATH".into(), path);
        assert_eq!(with_path.start().unwrap().process.exited().await, "exit code 7");
        // With a slash it is a path from the working directory.
        let relative = stage.launch(CommandLine::parse("tools/the-agent -c 'exit 8'").unwrap());
        assert_eq!(relative.start().unwrap().process.exited().await, "exit code 8");
    }

    #[tokio::test]
    async fn a_program_that_cannot_be_executed_is_an_error_with_its_path() {
        let stage = Stage::new();
        let program = stage.at("work/agent");
        std::fs::write(&program, "#!/no/such/interpreter\n").unwrap();
        assert!(
            message(stage.launch(CommandLine::parse("./agent").unwrap()))
                .contains("not executable")
        );
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let error = message(stage.launch(CommandLine::parse("./agent").unwrap()));
        assert!(error.contains("agent could not be started"), "{error}");
    }

    #[tokio::test]
    async fn a_missing_secret_keeps_the_agent_from_being_started() {
        let stage = Stage::new();
        let mut launch = stage.script("touch started");
        launch.definition.credentials = vec![Credential {
            slot: "API_KEY".into(),
            from: SecretSource::Env("WORK_KEY".into()),
            required: true,
        }];
        let error = message(launch.clone());
        assert!(error.contains("API_KEY") && error.contains("WORK_KEY"), "{error}");
        launch.environment.push(("WORK_KEY".into(), "secret".into()));
        launch.definition.command.args[1] = "echo $API_KEY".into();
        let mut launched = launch.start().unwrap();
        let mut text = String::new();
        launched.stdout.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "secret\n");
        assert!(!stage.at("work/started").exists());
    }

    #[tokio::test]
    async fn an_agent_does_not_see_our_own_environment() {
        let stage = Stage::new();
        let mut launched = stage.script("env").start().unwrap();
        let mut text = String::new();
        launched.stdout.read_to_string(&mut text).await.unwrap();
        let shells_own = ["PWD", "OLDPWD", "SHLVL", "_"];
        for line in text.lines() {
            let name = line.split('=').next().unwrap_or_default();
            let expected =
                name == "PATH" || name.starts_with("TENON_") || shells_own.contains(&name);
            assert!(expected, "{line}");
        }
        let folder = stage.at("bin");
        assert!(text.contains(&format!("PATH={}:/usr/local/bin", folder.display())), "{text}");
    }

    #[tokio::test]
    async fn standard_error_goes_to_a_log_of_the_session_and_its_end_is_kept() {
        let stage = Stage::new();
        let launched = stage.script("echo one >&2; echo two >&2; exit 3").start().unwrap();
        assert_eq!(launched.process.exited().await, "exit code 3");
        assert_eq!(launched.process.last_stderr(), ["one", "two"]);
        wait_for_log(&stage.at("home/logs/agents/script-s-1.log"), "one\ntwo\n").await;

        let mut nameless = stage.script("echo three >&2");
        nameless.session_id = None;
        let process = nameless.start().unwrap().process;
        process.exited().await;
        let file = format!("home/logs/agents/script-{}.log", process.pid());
        wait_for_log(&stage.at(&file), "three\n").await;
    }
}
