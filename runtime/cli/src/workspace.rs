//! Where the program works, and the session for it.

use std::path::Path;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::task::Poll;

use tenon_acp::config::AgentsConfig;
use tenon_console::home;
use tenon_host::Session;
use tenon_host::SessionOptions;
use tenon_host::Status;
use tenon_host::config::Config;
use tenon_host::control;
use tenon_host::control::ControlGuard;
use tenon_host::control::Live;
use tenon_host::discovery;
use tenon_host::discovery::Found;
use tenon_host::discovery::Places;
use tenon_host::discovery::Scope;
use tenon_host::isolates::Isolates;
use tenon_host::session::EndReason;
use tenon_host::trust::TrustStore;
use tokio::signal::unix::Signal;
use tokio::signal::unix::SignalKind;
use tokio::sync::watch;

use crate::args::Args;
use crate::error::CliError;
use crate::output;
use crate::output::BOLD;
use crate::output::Progress;
use crate::output::YELLOW;
use crate::sanitise::visible;

/// The directory the program works in, and where extensions are looked for.
pub struct Workspace {
    /// The working directory, without links.
    pub cwd: PathBuf,
    /// Tenon's own folder.
    pub home: PathBuf,
    /// Folders whose `extensions` folder holds the user's extensions.
    pub user_folders: Vec<PathBuf>,
    /// Folders named on the command line.
    pub extension_folders: Vec<PathBuf>,
}

impl Workspace {
    /// What the command line says about where to work. The program enters the directory.
    pub fn of(args: &Args) -> Result<Self, CliError> {
        let cwd = match &args.cwd {
            Some(cwd) => cwd.clone(),
            None => home::current_directory()?,
        };
        let cwd = directory("--cwd", &cwd)?;
        // Before the directory is entered: none of these is seen from there.
        let home = home(args)?;
        let user_folders = user_folders(&home)?;
        // Where threads cannot have directories of their own, this one is everybody's.
        std::env::set_current_dir(&cwd).map_err(|error| {
            CliError::new(format!("{} cannot be entered: {error}", cwd.display()))
        })?;
        let folders: Result<Vec<_>, _> =
            args.extension_folders.iter().map(|folder| directory("--extensions", folder)).collect();
        Ok(Self { cwd, user_folders, home, extension_folders: folders? })
    }

    /// The root of the repository, or the working directory.
    pub fn root(&self) -> &Path {
        discovery::project_root(&self.cwd)
    }

    /// The folder of the repository's extensions.
    pub fn project_extensions(&self) -> PathBuf {
        self.root().join(".github").join("extensions")
    }

    /// The folder that the user's new extensions are put into.
    pub fn user_extensions(&self) -> PathBuf {
        self.home.join("extensions")
    }

    /// Where extensions are looked for.
    pub fn places(&self) -> Places {
        Places::new(&self.cwd, &self.user_folders, &self.extension_folders, None)
    }

    /// Every extension there is; nothing is loaded.
    pub fn found(&self) -> Vec<Found> {
        discovery::find(&self.places(), true)
    }

    /// The extension with a name or id; nothing is loaded.
    pub fn pick(&self, name: &str) -> Result<Found, CliError> {
        pick(self.found(), name).map_err(|error| error.unwrap_or_else(|| self.nothing_found()))
    }

    /// Says where extensions were looked for and none was found.
    pub fn nothing_found(&self) -> CliError {
        nothing_in(&self.places())
    }

    /// Whether the repository's extensions may run: this time, or because the person said so before.
    pub fn is_trusted(&self, args: &Args) -> bool {
        args.trust || TrustStore::of(&self.home).is_trusted(self.root())
    }

    /// The same; a person who can be asked is, and a yes is remembered.
    pub fn trusted_or_asked(&self, args: &Args) -> Result<bool, CliError> {
        if self.is_trusted(args) {
            return Ok(true);
        }
        let found = discovery::find(&self.places(), false);
        let names: Vec<_> = found
            .into_iter()
            .filter(|found| found.scope == Scope::Project)
            .map(|found| found.name)
            .collect();
        if names.is_empty() {
            return Ok(false);
        }
        let question = format!(
            "{YELLOW}This repository has extensions, which can do what you can do:{YELLOW:#} {}\n\
             Trust {BOLD}{}{BOLD:#} and let them run, now and later?",
            names.join(", "),
            shown(self.root())
        );
        let yes = output::confirm(&question).unwrap_or(false);
        if yes {
            TrustStore::of(&self.home)
                .trust(self.root())
                .map_err(|error| CliError::new(error.to_string()))?;
        }
        Ok(yes)
    }

    /// A session here; `live` for one that goes on, and notices what changes on disk.
    fn options(self, args: &Args, live: bool) -> Result<SessionOptions, CliError> {
        let trusted = self.trusted_or_asked(args)?;
        check_agents(&self.home)?;
        Ok(SessionOptions {
            trusted,
            log_files: true,
            // People have `tenon ext` for that.
            manage_tools: false,
            watch: live,
            isolates: isolates(Some(&self.home))?,
            user_folders: self.user_folders,
            extension_folders: self.extension_folders,
            ..SessionOptions::new(self.cwd, self.home)
        })
    }

    /// A session to try extensions out in: nothing is found or loaded by itself, and nothing is kept.
    pub fn throw_away(&self) -> Result<Session, CliError> {
        check_agents(&self.home)?;
        let options = SessionOptions {
            isolates: isolates(Some(&self.home))?,
            // Whether something may be tried at all is decided before; each is tried as what it is.
            trusted: true,
            user_folders: self.user_folders.clone(),
            extension_folders: self.extension_folders.clone(),
            ..SessionOptions::new(self.cwd.clone(), self.home.clone())
        };
        Ok(Session::new(options)?)
    }

    /// The live sessions of this repository, in whatever process.
    pub async fn live(&self) -> Vec<Live> {
        let mut live = control::live(&self.home).await;
        live.retain(|session| session.root() == self.root());
        live
    }

    /// Approves an extension that the person has just had put there, of which this is the hash, so that a session in which a
    /// restricted extension runs does not ask about it. Where the person wants to review every content, this is none. It is in
    /// its place already, so if this fails the person is asked, and told so.
    pub fn approve_own(&self, scope: Scope, folder: &Path, hash: &str) {
        let reviews = Config::read(&self.home).is_ok_and(|config| config.trust.review);
        if scope == Scope::Project && reviews {
            return;
        }
        if let Err(error) = TrustStore::of(&self.home).review(folder, hash) {
            output::note(format_args!(
                "{YELLOW}warning{YELLOW:#}: it may have to be approved with tenon trust --review: {error}"
            ));
        }
    }

    /// The live sessions that an extension concerns: one of the user's is in every repository.
    pub async fn live_with(&self, scope: Scope) -> Vec<Live> {
        match scope {
            Scope::User => control::live(&self.home).await,
            _ => self.live().await,
        }
    }
}

/// Extensions in processes of their own, forked by this program again. Sessions of the same home share the zygote.
#[cfg(target_os = "linux")]
pub fn isolates(home: Option<&Path>) -> Result<Isolates, CliError> {
    let program = std::env::current_exe().map_err(|error| {
        CliError::new(format!("the path of the tenon program cannot be determined: {error}"))
            .hint("extensions need /proc: mount it, as in mount -t proc proc /proc")
    })?;
    Ok(Isolates::processes(program, home.map(|home| home.join("zygote"))))
}

/// Extensions in this process: only Linux has what a zygote needs.
#[cfg(not(target_os = "linux"))]
pub fn isolates(_home: Option<&Path>) -> Result<Isolates, CliError> {
    let engine = crate::engine::get().ok_or_else(|| CliError::new("no engine is linked"))?;
    Ok(Isolates::in_process((engine.launcher)()))
}

/// A session does not look at what is configured about agents. A mistake in it is an error in every command
/// nevertheless, because it is in the one file that all commands read.
fn check_agents(home: &Path) -> Result<(), CliError> {
    AgentsConfig::read(home)?;
    Ok(())
}

/// The extension with a name or id; no error in particular if there are none at all.
fn pick(found: Vec<Found>, name: &str) -> Result<Found, Option<CliError>> {
    if found.is_empty() {
        return Err(None);
    }
    let ids: Vec<_> = found.iter().map(Found::id).collect();
    let mut matching: Vec<_> =
        found.into_iter().filter(|found| found.name == name || found.id() == name).collect();
    // The user has two folders; what is used counts.
    if matching.len() > 1 && matching.iter().all(|found| found.id() == name) {
        matching.sort_by_key(|found| found.shadowed_by.is_some());
        matching.truncate(1);
    }
    match matching.len() {
        0 => Err(Some(
            CliError::new(format!("there is no extension \"{name}\""))
                .hint(format!("there are: {}", ids.join(", "))),
        )),
        1 => Ok(matching.remove(0)),
        _ => {
            let ids: Vec<_> = matching.iter().map(Found::id).collect();
            Err(Some(
                CliError::new(format!("several extensions are called \"{name}\""))
                    .hint(format!("use the id: {}", ids.join(", "))),
            ))
        }
    }
}

/// A session with every extension loaded.
pub async fn load(args: &Args) -> Result<Session, CliError> {
    let session = Session::new(Workspace::of(args)?.options(args, false)?)?;
    loaded(session).await
}

/// A session with every extension loaded that goes on: it notices what changes on disk, and other
/// processes can reach it as long as the guard lives.
pub async fn load_live(args: &Args) -> Result<(Session, Option<ControlGuard>), CliError> {
    let session = Session::new(Workspace::of(args)?.options(args, true)?)?;
    let session = loaded(session).await?;
    let guard = session.serve_control();
    if let Err(error) = &guard {
        output::note(format_args!(
            "{YELLOW}warning{YELLOW:#}: other processes cannot reach this session: {error}"
        ));
    }
    Ok((session, guard.ok()))
}

async fn loaded(session: Session) -> Result<Session, CliError> {
    let _progress = Progress::start("loading extensions ...");
    let error = tokio::select! {
        () = session.load() => match session.isolates().trouble() {
            None => return Ok(session),
            Some(why) => CliError::new(format!("no extension can run: {why}"))
                .hint("run `tenon doctor` for details; `ulimit -a` shows the limits"),
        },
        () = interruption() => CliError::new("interrupted"),
    };
    session.end(EndReason::UserExit).await;
    Err(error)
}

/// Extensions that do not run, each with the reason.
pub fn missing(session: &Session, statuses: &[Status]) -> Vec<String> {
    let listed = session.list();
    let idle = listed.iter().filter(|info| statuses.contains(&info.status));
    idle.map(|info| match info.error.as_ref().filter(|_| info.status == Status::Failed) {
        Some(error) => {
            let reason = error.what.message.lines().next().unwrap_or_default();
            format!("{} ({}: {reason})", info.id, info.status)
        }
        None => format!("{} ({})", info.id, info.status),
    })
    .collect()
}

/// What the program ends with if it was interrupted in what it was asked to do, as shells have it: 128 and
/// the number of SIGINT.
pub const INTERRUPTED: u8 = 130;

/// Set once somebody wants the program to end.
static STOP: OnceLock<watch::Sender<bool>> = OnceLock::new();

/// Waits until somebody wants the program to end, so that extensions can be ended first. Whoever asks after
/// that is told at once: no signal is lost between two who wait.
pub async fn interruption() {
    // The sender is never dropped.
    let _ = stop().subscribe().wait_for(|stop| *stop).await;
}

/// Whether somebody wants the program to end, for what cannot wait for it. From the first question on,
/// whoever asks has to end the program.
pub fn is_interrupted() -> bool {
    *stop().borrow()
}

fn stop() -> &'static watch::Sender<bool> {
    STOP.get_or_init(|| {
        let stop = watch::Sender::new(false);
        tokio::spawn(listen(stop.clone(), signals()));
        stop
    })
}

/// The signals that want the program to end; none if they cannot be had, and they end it the plain way.
fn signals() -> Vec<Signal> {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let signals: Result<Vec<_>, _> = kinds.into_iter().map(tokio::signal::unix::signal).collect();
    signals.unwrap_or_default()
}

/// The first signal lets the program end what it has started; the second ends the program, whatever it waits for.
async fn listen(stop: watch::Sender<bool>, mut signals: Vec<Signal>) {
    next(&mut signals).await;
    stop.send_replace(true);
    next(&mut signals).await;
    // The agent and the extensions notice that we are gone, and end with their children.
    std::process::exit(INTERRUPTED.into());
}

/// Waits for any of the signals.
async fn next(signals: &mut [Signal]) {
    std::future::poll_fn(|cx| {
        let mut received = signals.iter_mut().map(|signal| signal.poll_recv(cx));
        if received.any(|received| received.is_ready()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Tenon's own folder, as the command line says.
pub fn home(args: &Args) -> Result<PathBuf, CliError> {
    home::of_tenon(args.home.as_deref())
}

/// Tenon's own folder, and Copilot's, where the user may already have extensions.
fn user_folders(home: &Path) -> Result<Vec<PathBuf>, CliError> {
    let mut folders = vec![home.to_owned()];
    folders.extend(home::of_copilot()?.filter(|folder| folder != home));
    Ok(folders)
}

/// A path as a person reads it. Names of folders come from repositories that nobody trusts yet, and a
/// terminal obeys what is written to it.
pub fn shown(path: &Path) -> String {
    visible(&path.display().to_string()).replace('\n', "\\u{a}")
}

/// A folder that is there, without links.
pub fn directory(option: &str, path: &Path) -> Result<PathBuf, CliError> {
    let found = std::fs::canonicalize(path).map_err(|error| {
        CliError::new(format!("{option}: {} cannot be entered: {error}", path.display()))
    })?;
    if !found.is_dir() {
        return Err(CliError::new(format!("{option}: {} is not a directory", path.display())));
    }
    Ok(found)
}

/// Says where extensions were looked for and none was found.
pub fn nothing_found(session: &Session) -> CliError {
    nothing_in(session.places())
}

fn nothing_in(places: &Places) -> CliError {
    let mut message = String::from("no extensions were found. Looked in:");
    for (scope, folder) in &places.roots {
        let note = if folder.is_dir() { "" } else { " (not there)" };
        let what = match scope {
            Scope::User => "user",
            Scope::Project => "project",
            Scope::Folder => "--extensions",
            // Nobody puts anything there by hand.
            Scope::Session if !folder.is_dir() => continue,
            Scope::Session => "session",
        };
        message += &format!("\n  {what:<12}  {}{note}", folder.display());
    }
    CliError::new(message)
        .hint("an extension is a folder with an extension.mjs in one of these places")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_harmless_line() {
        let path = Path::new("/a\x1b]0;x\x07/b\nc\u{202e}d");
        assert_eq!(shown(path), "/a\\u{1b}]0;x\\u{7}/b\\u{a}c\\u{202e}d");
        assert_eq!(shown(Path::new("/grüße/世界")), "/grüße/世界");
    }
}
