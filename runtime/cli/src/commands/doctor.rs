//! `tenon doctor`: what keeps extensions from running on this machine, and what to do about it.

mod system;

use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use tenon_acp::config::AgentsConfig;
use tenon_host::config;
use tenon_host::config::Config;
use tenon_host::control;
use tenon_host::discovery;
use tenon_host::discovery::Found;
use tenon_host::discovery::Scope;
use tenon_host::switches;
use tenon_host::switches::Switches;
use tenon_host::trust;
use tenon_host::trust::TrustStore;

use crate::args::Args;
use crate::error::CliError;
use crate::output;
use crate::output::BOLD;
use crate::output::DIM;
use crate::output::GREEN;
use crate::output::Progress;
use crate::output::RED;
use crate::output::YELLOW;
use crate::output::count;
use crate::sanitise::visible;
use crate::workspace;
use crate::workspace::Workspace;

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    Warn,
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    state: State,
    text: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Check {
    fn ok(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, state: State::Ok, text: text.into(), hint: None }
    }

    fn warn(name: &'static str, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { name, state: State::Warn, text: text.into(), hint: Some(hint.into()) }
    }

    fn fail(name: &'static str, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { name, state: State::Fail, text: text.into(), hint: Some(hint.into()) }
    }
}

pub async fn run(args: &Args) -> Result<ExitCode, CliError> {
    let workspace = Workspace::of(args)?;
    let checks = {
        let _progress = Progress::start("looking ...");
        look(args, &workspace).await
    };
    let failed = checks.iter().filter(|check| check.state == State::Fail).count();
    let warned = checks.iter().filter(|check| check.state == State::Warn).count();
    if args.json {
        output::json(&checks)?;
    } else {
        checks.iter().for_each(print);
        summarise(failed, warned);
    }
    Ok(if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn look(args: &Args, workspace: &Workspace) -> Vec<Check> {
    let home = &workspace.home;
    let mut checks = vec![
        engine(),
        zygote(home).await,
        sandbox(),
        control_group(),
        system::writable("home", home),
        system::writable("logs", &home.join("logs")),
        configuration(home),
        store("trust store", trust::FILE_NAME, TrustStore::of(home).list().map(|list| list.len())),
        store("switches", switches::FILE_NAME, Switches::of(home).list().map(|list| list.len())),
        workspace_trust(args, workspace),
    ];
    checks.extend(extensions(args, workspace));
    checks.push(system::program("git", "tenon ext install needs it for repositories"));
    checks.push(system::program("node", "some extensions start it; tenon itself does not"));
    checks.push(system::open_files());
    checks.extend(system::inotify());
    checks.extend(sessions(home).await);
    checks
}

fn engine() -> Check {
    let engine = crate::engine::info();
    let snapshot = if engine.snapshot { "with" } else { "without" };
    let text = format!(
        "tenon {} on {} {}, {snapshot} snapshot, node {}",
        env!("CARGO_PKG_VERSION"),
        engine.name,
        engine.version,
        engine.node
    );
    Check::ok("engine", text)
}

fn sandbox() -> Check {
    const NAME: &str = "sandbox";
    let layers = tenon_sandbox::available();
    let text = layers.to_string();
    if layers.is_whole() {
        Check::ok(NAME, text)
    } else {
        Check::warn(
            NAME,
            text,
            "what is missing is checked by Tenon alone; SECURITY.md says what each layer is for",
        )
    }
}

/// It is an addition to what holds anyway, so there is nothing wrong without it.
#[cfg(target_os = "linux")]
fn control_group() -> Check {
    const NAME: &str = "control group";
    let hint = "an extension's memory and processes are limited together with those of all it starts where a group is \
                delegated to tenon alone: systemd-run --user --scope -p Delegate=yes tenon ..., or a container \
                whose only program it is, with /sys/fs/cgroup writable"
        .to_owned();
    let (text, hint) = match tenon_sandbox::control_groups::survey(std::process::id()) {
        Ok(group) => (group.to_string(), (!group.memory || !group.tasks).then_some(hint)),
        Err(missing) => (format!("none: {missing}"), Some(hint)),
    };
    Check { name: NAME, state: State::Ok, text, hint }
}

#[cfg(not(target_os = "linux"))]
fn control_group() -> Check {
    Check::ok("control group", "none: only Linux has them")
}

async fn zygote(home: &Path) -> Check {
    const NAME: &str = "zygote";
    let isolates = match workspace::isolates(Some(home)) {
        Ok(isolates) => isolates,
        Err(_) => {
            return Check::fail(
                NAME,
                "the path of the tenon program cannot be determined",
                "was it deleted or replaced while it runs? Start it again",
            );
        }
    };
    match isolates.probe().await {
        Ok(took) => Check::ok(NAME, format!("answers after {} ms", took.as_millis())),
        Err(error) => Check::fail(
            NAME,
            error,
            "no extension can run; look at the limits for processes and memory (ulimit -a)",
        ),
    }
}

fn configuration(home: &Path) -> Check {
    const NAME: &str = "configuration";
    let file = home.join(config::FILE_NAME);
    match AgentsConfig::read(home).and_then(|_| Ok(Config::read(home)?)) {
        Ok(_) if !file.exists() => {
            Check::ok(NAME, format!("{} is not there; the usual holds", file.display()))
        }
        Ok(config) => {
            let entries = count(config.extensions.len(), "entry", "entries");
            Check::ok(NAME, format!("{}, {entries} for extensions", file.display()))
        }
        Err(error) => Check::fail(NAME, error.to_string(), "correct the file, or move it away"),
    }
}

/// A file in which decisions of the person are remembered.
fn store(
    name: &'static str,
    file: &str,
    read: Result<usize, tenon_host::store::StoreError>,
) -> Check {
    match read {
        Ok(entries) => Check::ok(name, format!("{file}, {}", count(entries, "entry", "entries"))),
        Err(error) => Check::fail(name, error.to_string(), "correct the file, or move it away"),
    }
}

fn workspace_trust(args: &Args, workspace: &Workspace) -> Check {
    const NAME: &str = "trust";
    let root = workspace.root().display();
    let found = discovery::find(&workspace.places(), false);
    let extensions = found.iter().filter(|found| found.scope == Scope::Project).count();
    if workspace.is_trusted(args) {
        let how = if args.trust { " for this run" } else { "" };
        Check::ok(NAME, format!("{root} is trusted{how}"))
    } else if extensions == 0 {
        Check::ok(NAME, format!("{root} is not trusted, and has no extensions"))
    } else {
        let extensions = count(extensions, "extension", "extensions");
        Check::warn(
            NAME,
            format!("{root} is not trusted; its {extensions} will not run"),
            "tenon trust lets them run",
        )
    }
}

/// What there is in each place; nothing is loaded.
fn extensions(args: &Args, workspace: &Workspace) -> Vec<Check> {
    const NAME: &str = "extensions";
    let places = workspace.places();
    let found = discovery::find(&places, workspace.is_trusted(args));
    let switches = Switches::of(&workspace.home);
    let mut checks = Vec::new();
    for (scope, root) in &places.roots {
        let here: Vec<_> =
            found.iter().filter(|found| found.folder.parent() == Some(root)).collect();
        let place = format!("{scope}  {}", root.display());
        if here.is_empty() {
            let note = if root.is_dir() { "none" } else { "not there" };
            checks.push(Check::ok(NAME, format!("{place}: {note}")));
            continue;
        }
        let names: Vec<_> = here.iter().map(|found| describe(found, &switches)).collect();
        let text = format!("{place}: {}", names.join(", "));
        let broken: Vec<_> = here.iter().filter_map(|found| found.entry.as_ref().err()).collect();
        checks.push(match broken.first() {
            None => Check::ok(NAME, text),
            Some(reason) => Check::warn(NAME, text, reason.as_str()),
        });
    }
    checks
}

/// A name, and why it does not run where that can be seen from here.
fn describe(found: &Found, switches: &Switches) -> String {
    let note = if found.entry.is_err() {
        " (broken)"
    } else if found.shadowed_by.is_some() {
        " (shadowed)"
    } else if switches.is_off(&found.folder).is_some() {
        " (disabled)"
    } else {
        ""
    };
    format!("{}{note}", found.name)
}

async fn sessions(home: &Path) -> Vec<Check> {
    const NAME: &str = "sessions";
    let survey = control::survey(home).await;
    let mut text = count(survey.live.len(), "is live", "are live");
    for live in &survey.live {
        text += &format!("\npid {}  {}", live.pid, live.cwd.display());
    }
    let mut checks = vec![Check::ok(NAME, text)];
    if !survey.removed.is_empty() {
        let sockets = count(survey.removed.len(), "socket", "sockets");
        checks.push(Check::ok(NAME, format!("{sockets} of dead processes removed")));
    }
    for (socket, reason) in &survey.silent {
        checks.push(Check::warn(
            NAME,
            reason.as_str(),
            format!("the process behind {} hangs, or is another version; end it", socket.display()),
        ));
    }
    checks
}

/// Prints one. Paths and reasons in it are of repositories that nobody trusts, too.
fn print(check: &Check) {
    let (mark, style) = match check.state {
        State::Ok => ("ok  ", GREEN),
        State::Warn => ("warn", YELLOW),
        State::Fail => ("FAIL", RED),
    };
    let text = visible(&check.text);
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    output::line(format_args!("{style}{mark}{style:#}  {BOLD}{:<14}{BOLD:#}  {first}", check.name));
    let indent = " ".repeat(22);
    lines.for_each(|line| output::line(format_args!("{indent}{line}")));
    if let Some(hint) = &check.hint {
        for line in visible(hint).lines() {
            output::line(format_args!("{indent}{DIM}{line}{DIM:#}"));
        }
    }
}

fn summarise(failed: usize, warned: usize) {
    let said = match (failed, warned) {
        (0, 0) => format!("{GREEN}everything is fine{GREEN:#}"),
        (0, _) => format!("{YELLOW}{}{YELLOW:#}", count(warned, "warning", "warnings")),
        (_, 0) => format!("{RED}{}{RED:#}", count(failed, "failure", "failures")),
        _ => format!(
            "{RED}{}{RED:#}, {YELLOW}{}{YELLOW:#}",
            count(failed, "failure", "failures"),
            count(warned, "warning", "warnings")
        ),
    };
    output::line(said);
}
