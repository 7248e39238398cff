//! A socket for every live session, by which other `tenon` processes of the same user reach it.
//!
//! The sockets are in `<home>/run`, one file for each session. A client connects, writes one request as
//! a line of JSON and reads one answer as a line of JSON: a value, or `{"error": text}`.

use std::io::ErrorKind;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;
use serde_json::json;
use tokio::io::AsyncBufReadExt;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::io::BufReader;
use tokio::net::UnixListener;
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::discovery;
use crate::extension::hash;
use crate::private_socket;
use crate::private_socket::Address;
use crate::private_socket::Identity;
use crate::private_socket::MAX_PATH_BYTES;
use crate::private_socket::SocketFile;
use crate::private_socket::may_give_orders;
use crate::session::Session;
use crate::session::WeakSession;

/// The longest request, in bytes. The longest there is carries a name and a reason.
pub const MAX_REQUEST_BYTES: usize = 64 * 1024;

/// The longest answer that is read, in bytes: a list of many extensions, each with many tools.
pub const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// How long a client may take to say what it wants, and to take the answer.
pub const CLIENT_DEADLINE: Duration = Duration::from_secs(5);

/// How long a session may take to answer what needs no waiting; longer, and it hangs. It is longer than
/// extensions have to say what they use, and one on a busy machine is not given up.
pub const QUICK_DEADLINE: Duration = Duration::from_secs(10);

/// How long a session may take to answer what stops and starts extensions: the calls that run are waited
/// for, then every extension has its deadline to join.
pub const SLOW_DEADLINE: Duration = Duration::from_secs(120);

/// The most clients that are served at a time; more wait until they are accepted.
const MAX_CLIENTS: usize = 32;

/// How long to wait after a client could not be accepted, most likely for want of file descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// What a client is told that may not give orders.
const REFUSED: &str =
    "a process that is confined, or of another user, gives no orders to a session";

/// What the file of a socket ends with.
const EXTENSION: &str = "sock";

/// What can be asked of a live session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "lowercase")]
pub enum Request {
    /// Who it is: `{"id", "cwd", "pid"}`.
    Hello,
    /// What its extensions use: an array of [`crate::manage::ExtensionUsage`].
    Usage,
    /// Its extensions: an array of [`crate::ExtensionInfo`].
    List,
    /// Load every extension anew: a [`crate::manage::ReloadReport`].
    Reload,
    /// Load what changed on disk: a [`crate::manage::ReloadReport`].
    Refresh,
    /// Switch an extension on: its [`crate::ExtensionInfo`].
    Enable {
        /// Its name or id.
        name: String,
    },
    /// Switch an extension off: its [`crate::ExtensionInfo`].
    Disable {
        /// Its name or id.
        name: String,
        /// Why, in words.
        why: String,
    },
}

impl Request {
    /// How long its answer may take.
    fn deadline(&self) -> Duration {
        match self {
            Self::Hello | Self::Usage | Self::List => QUICK_DEADLINE,
            Self::Reload | Self::Refresh | Self::Enable { .. } | Self::Disable { .. } => {
                SLOW_DEADLINE
            }
        }
    }
}

/// A live session did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Nobody is at the socket.
    #[error("{path} cannot be reached: {source}")]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Somebody is, but does not answer.
    #[error("no answer from {path} within {} seconds", .deadline.as_secs())]
    NoAnswer {
        /// The socket.
        path: PathBuf,
        /// How long was waited.
        deadline: Duration,
    },
    /// The answer is not what it should be.
    #[error("the answer from {path} cannot be read: {reason}")]
    BadAnswer {
        /// The socket.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The session says that it cannot.
    #[error("{0}")]
    Refused(String),
}

/// Keeps a session reachable; the socket goes with it.
#[derive(Debug)]
pub struct ControlGuard {
    socket: SocketFile,
    listening: AbortHandle,
}

impl ControlGuard {
    /// The file of the socket.
    pub fn socket(&self) -> &Path {
        self.socket.path()
    }
}

impl Drop for ControlGuard {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Session {
    /// Lets other processes of the same user reach the session until the guard is dropped. Must be
    /// called inside a tokio runtime.
    pub fn serve_control(&self) -> std::io::Result<ControlGuard> {
        self.serve_control_within(CLIENT_DEADLINE)
    }

    fn serve_control_within(&self, deadline: Duration) -> std::io::Result<ControlGuard> {
        let folder = run_folder(home_of(self));
        private_socket::make_folder(&folder)?;
        let path = socket_of(&folder, self.id());
        let fresh = path.with_extension(format!("new-{}", std::process::id()));
        let (listener, socket) = private_socket::listen(&path, &fresh)?;
        let listening = tokio::spawn(accept(listener, self.downgrade(), deadline)).abort_handle();
        remove_dead(&folder);
        Ok(ControlGuard { socket, listening })
    }
}

/// Tenon's own folder; a session's folder is `<home>/session-state/<id>`.
fn home_of(session: &Session) -> &Path {
    session.folder().ancestors().nth(2).unwrap_or(session.folder())
}

/// Where the sockets are.
fn run_folder(home: &Path) -> PathBuf {
    home.join("run")
}

/// The file of a session's socket. A name that does not fit into an address is replaced by its hash.
fn socket_of(folder: &Path, id: &str) -> PathBuf {
    let plain = folder.join(format!("{id}.{EXTENSION}"));
    if plain.as_os_str().len() <= MAX_PATH_BYTES {
        return plain;
    }
    folder.join(format!("{}.{EXTENSION}", &hash(id.as_bytes())[..16]))
}

/// Takes clients, each in a task of its own, so that a reload keeps nobody waiting. What a client asked
/// for is done also when it has left or the session's guard is gone.
async fn accept(listener: UnixListener, session: WeakSession, deadline: Duration) {
    let seats = Arc::new(Semaphore::new(MAX_CLIENTS));
    // The semaphore is never closed.
    while let Ok(seat) = seats.clone().acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let session = session.clone();
                tokio::spawn(async move {
                    serve(stream, session, deadline).await;
                    drop(seat);
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
        }
    }
}

/// One client: a request, an answer.
async fn serve(stream: UnixStream, session: WeakSession, deadline: Duration) {
    let is_obeyed = may_give_orders(&stream);
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader).take(MAX_REQUEST_BYTES as u64 + 1);
    let mut line = Vec::new();
    let read = timeout(deadline, reader.read_until(b'\n', &mut line)).await;
    // One that says nothing, or has left, is not answered.
    if !matches!(read, Ok(Ok(1..))) {
        return;
    }
    let answer = match parse(&line) {
        Ok(_) if !is_obeyed => Err(REFUSED.to_owned()),
        Ok(request) => perform(session, request).await,
        Err(error) => Err(error),
    };
    let answer = answer.unwrap_or_else(|error| json!({ "error": error }));
    // A client that does not take its answer has left.
    let _ = timeout(deadline, writer.write_all(format!("{answer}\n").as_bytes())).await;
}

fn parse(line: &[u8]) -> Result<Request, String> {
    if line.len() > MAX_REQUEST_BYTES {
        return Err(format!("a request has at most {MAX_REQUEST_BYTES} bytes"));
    }
    serde_json::from_slice(line).map_err(|error| format!("this is not a request: {error}"))
}

async fn perform(session: WeakSession, request: Request) -> Result<Value, String> {
    let session = session.upgrade().ok_or("the session is gone")?;
    match request {
        Request::Hello => Ok(json!({
            "id": session.id(),
            "cwd": session.cwd().to_string_lossy(),
            "pid": std::process::id(),
        })),
        Request::Usage => value(session.usage().await),
        Request::List => value(session.list()),
        Request::Reload => value(session.reload().await),
        Request::Refresh => value(session.refresh().await),
        Request::Enable { name } => {
            value(session.enable(&name).await.map_err(|error| error.to_string())?)
        }
        Request::Disable { name, why } => {
            value(session.disable(&name, &why).await.map_err(|error| error.to_string())?)
        }
    }
}

fn value(answer: impl Serialize) -> Result<Value, String> {
    serde_json::to_value(answer).map_err(|error| error.to_string())
}

/// A session of some process, seen from another.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Live {
    /// Identifies the session.
    pub id: String,
    /// Its working directory.
    pub cwd: PathBuf,
    /// The process it is in.
    pub pid: u32,
    /// Where it is reached.
    #[serde(skip)]
    socket: PathBuf,
}

impl Live {
    /// The root of the repository it works in.
    pub fn root(&self) -> &Path {
        discovery::project_root(&self.cwd)
    }

    /// Asks for something and waits for the answer.
    pub async fn ask(&self, request: &Request) -> Result<Value, ControlError> {
        exchange(&self.socket, request).await
    }
}

/// What there is in the folder of sockets.
#[derive(Debug, Default)]
pub struct Survey {
    /// The sessions that answer.
    pub live: Vec<Live>,
    /// Sockets where somebody is who does not answer, each with the reason.
    pub silent: Vec<(PathBuf, String)>,
    /// Sockets that dead processes had left behind; they are removed now.
    pub removed: Vec<PathBuf>,
}

/// Every live session of the user.
pub async fn live(home: &Path) -> Vec<Live> {
    survey(home).await.live
}

/// Every live session of the user, and what else is in the folder. What dead processes left behind is
/// removed.
pub async fn survey(home: &Path) -> Survey {
    let mut asked = JoinSet::new();
    for socket in sockets(home) {
        asked.spawn(async move {
            let file = Identity::of(&socket);
            let answer = exchange(&socket, &Request::Hello).await;
            (socket, file, answer)
        });
    }
    let mut survey = Survey::default();
    while let Some(joined) = asked.join_next().await {
        let Ok((socket, file, answer)) = joined else { continue };
        match answer.and_then(|hello| introduced(&socket, hello)) {
            Ok(live) => survey.live.push(live),
            Err(ControlError::Unreachable { source, .. }) if is_nobody(&source) => {
                if file.is_ok_and(|file| file.remove(&socket)) {
                    survey.removed.push(socket);
                }
            }
            Err(error) => survey.silent.push((socket, error.to_string())),
        }
    }
    survey.live.sort_by(|a, b| (&a.cwd, &a.id).cmp(&(&b.cwd, &b.id)));
    survey.silent.sort();
    survey.removed.sort();
    survey
}

/// Removes the sockets of processes that could not do it themselves.
fn remove_dead(folder: &Path) {
    for socket in sockets_in(folder) {
        let file = Identity::of(&socket);
        let answer = Address::of(&socket)
            .and_then(|address| std::os::unix::net::UnixStream::connect(&address.path));
        if answer.is_err_and(|error| is_nobody(&error))
            && let Ok(file) = file
        {
            // Somebody else may have been quicker.
            file.remove(&socket);
        }
    }
}

/// Nobody listens, or the session has just ended.
fn is_nobody(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound)
}

fn sockets(home: &Path) -> Vec<PathBuf> {
    sockets_in(&run_folder(home))
}

fn sockets_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| path.extension().is_some_and(|extension| extension == EXTENSION)).collect()
}

fn introduced(socket: &Path, hello: Value) -> Result<Live, ControlError> {
    let live: Live = serde_json::from_value(hello).map_err(|error| ControlError::BadAnswer {
        path: socket.to_owned(),
        reason: error.to_string(),
    })?;
    Ok(Live { socket: socket.to_owned(), ..live })
}

async fn exchange(socket: &Path, request: &Request) -> Result<Value, ControlError> {
    let deadline = request.deadline();
    let late = || ControlError::NoAnswer { path: socket.to_owned(), deadline };
    let bad = |reason: String| ControlError::BadAnswer { path: socket.to_owned(), reason };
    let request = serde_json::to_string(request).map_err(|error| bad(error.to_string()))?;
    let line = timeout(deadline, talk(socket, &request)).await.map_err(|_| late())?;
    let line =
        line.map_err(|source| ControlError::Unreachable { path: socket.to_owned(), source })?;
    if line.last() != Some(&b'\n') {
        return Err(bad("it is not whole".to_owned()));
    }
    let answer: Value = serde_json::from_slice(&line).map_err(|error| bad(error.to_string()))?;
    match refusal(&answer) {
        Some(reason) => Err(ControlError::Refused(reason.to_owned())),
        None => Ok(answer),
    }
}

/// Writes one line and reads one.
async fn talk(socket: &Path, request: &str) -> std::io::Result<Vec<u8>> {
    let address = Address::of(socket)?;
    let stream = UnixStream::connect(&address.path).await?;
    let (reader, mut writer) = stream.into_split();
    writer.write_all(format!("{request}\n").as_bytes()).await?;
    let mut line = Vec::new();
    BufReader::new(reader).take(MAX_ANSWER_BYTES as u64).read_until(b'\n', &mut line).await?;
    Ok(line)
}

/// Why a session did not do it; descriptions of extensions have an `error` too, among other things.
fn refusal(answer: &Value) -> Option<&str> {
    let object = answer.as_object().filter(|object| object.len() == 1)?;
    object.get("error")?.as_str()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::session::SessionOptions;

    fn session(home: &Path, id: Option<&str>) -> Session {
        let options = SessionOptions {
            id: id.map(str::to_owned),
            ..SessionOptions::new(home.to_owned(), home.to_owned())
        };
        Session::new(options).unwrap()
    }

    async fn say(guard: &ControlGuard, text: &[u8]) -> String {
        let mut stream = UnixStream::connect(guard.socket()).await.unwrap();
        stream.write_all(text).await.unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).await.unwrap();
        line
    }

    #[tokio::test]
    async fn a_live_session_is_found_and_answers() {
        let temp = tempfile::tempdir().unwrap();
        let session = session(temp.path(), None);
        let guard = session.serve_control().unwrap();
        let found = live(temp.path()).await;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].id, session.id());
        assert_eq!(found[0].cwd, temp.path());
        assert_eq!(found[0].pid, std::process::id());
        assert_eq!(found[0].ask(&Request::List).await.unwrap(), json!([]));
        assert_eq!(found[0].ask(&Request::Usage).await.unwrap(), json!([]));
        let report = found[0].ask(&Request::Reload).await.unwrap();
        assert_eq!(report["extensions"], json!([]));
        drop(guard);
        assert!(live(temp.path()).await.is_empty());
        assert!(sockets(temp.path()).is_empty());
    }

    /// What a session answers to a process that has given up its privileges, as those of extensions have.
    #[cfg(target_os = "linux")]
    fn ask_confined(socket: &Path) -> String {
        use std::io::Read;
        use std::io::Write;
        use std::os::unix::process::CommandExt;

        let socket = socket.to_owned();
        let ask = move || {
            // SAFETY: takes numbers only.
            unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
            let mut stream = std::os::unix::net::UnixStream::connect(&socket)?;
            stream.write_all(b"{\"request\":\"list\"}\n")?;
            let mut answer = [0; 4096];
            let length = stream.read(&mut answer)?;
            // SAFETY: the bytes are ours; then the process ends instead of starting the program.
            unsafe {
                libc::write(libc::STDOUT_FILENO, answer.as_ptr().cast(), length);
                libc::_exit(0)
            }
        };
        let mut command = std::process::Command::new("/proc/self/exe");
        // SAFETY: after the fork it makes system calls on memory that was there before.
        let output = unsafe { command.pre_exec(ask) }.output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_confined_process_gives_no_orders() {
        let temp = tempfile::tempdir().unwrap();
        let session = session(temp.path(), None);
        let guard = session.serve_control().unwrap();
        let socket = guard.socket().to_owned();
        let answer = tokio::task::spawn_blocking(move || ask_confined(&socket)).await.unwrap();
        // SAFETY: takes numbers only.
        let here = unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) };
        // Where these tests are without privileges, such a process is as they are.
        assert_eq!(answer.contains(REFUSED), here == 0, "{answer}");
        assert!(answer.ends_with('\n'), "{answer}");
    }

    #[tokio::test]
    async fn only_the_user_can_reach_it() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("run")).unwrap();
        let session = session(temp.path(), None);
        let guard = session.serve_control().unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&temp.path().join("run")), 0o700);
        assert_eq!(mode(guard.socket()), 0o600);
    }

    #[tokio::test]
    async fn a_name_that_is_not_there_is_refused_in_words() {
        let temp = tempfile::tempdir().unwrap();
        let session = session(temp.path(), None);
        let _guard = session.serve_control().unwrap();
        let found = live(temp.path()).await;
        let error = found[0].ask(&Request::Enable { name: "nobody".into() }).await.unwrap_err();
        assert!(
            matches!(&error, ControlError::Refused(text) if text.contains("nobody")),
            "{error}"
        );
    }

    #[tokio::test]
    async fn nonsense_and_endless_requests_are_refused() {
        let temp = tempfile::tempdir().unwrap();
        let session = session(temp.path(), None);
        let guard = session.serve_control().unwrap();
        let answer = say(&guard, b"nonsense\n").await;
        assert!(answer.contains("this is not a request"), "{answer}");
        let answer = say(&guard, &vec![b'x'; MAX_REQUEST_BYTES + 1]).await;
        assert!(answer.contains("at most 65536 bytes"), "{answer}");
        assert_eq!(live(temp.path()).await.len(), 1);
    }

    #[tokio::test]
    async fn a_client_that_says_nothing_is_dropped() {
        let temp = tempfile::tempdir().unwrap();
        let session = session(temp.path(), None);
        let guard = session.serve_control_within(Duration::from_millis(1)).unwrap();
        let mut stream = UnixStream::connect(guard.socket()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert!(answer.is_empty());
    }

    #[tokio::test]
    async fn what_a_dead_process_left_behind_is_removed() {
        let temp = tempfile::tempdir().unwrap();
        let folder = run_folder(temp.path());
        private_socket::make_folder(&folder).unwrap();
        let left = folder.join("dead.sock");
        drop(std::os::unix::net::UnixListener::bind(&left).unwrap());
        let survey = survey(temp.path()).await;
        assert_eq!(survey.removed, std::slice::from_ref(&left));
        assert!(survey.live.is_empty() && !left.exists());
    }

    #[tokio::test]
    async fn long_ids_and_deep_homes_have_sockets_too() {
        let temp = tempfile::tempdir().unwrap();
        let long = "i".repeat(200);
        let first = session(temp.path(), Some(&long));
        let guard = first.serve_control().unwrap();
        assert!(guard.socket().as_os_str().len() <= MAX_PATH_BYTES);
        assert_eq!(live(temp.path()).await[0].id, long);

        let deep = temp.path().join("d".repeat(120));
        let second = session(&deep, None);
        let _guard = second.serve_control().unwrap();
        let found = live(&deep).await;
        assert_eq!(found[0].id, second.id());
        assert_eq!(found[0].ask(&Request::List).await.unwrap(), json!([]));
    }

    #[tokio::test]
    async fn a_session_that_goes_on_elsewhere_keeps_its_socket() {
        let temp = tempfile::tempdir().unwrap();
        let first = session(temp.path(), Some("same"));
        let before = first.serve_control().unwrap();
        let second = session(temp.path(), Some("same"));
        let after = second.serve_control().unwrap();
        assert_eq!(before.socket(), after.socket());
        drop(before);
        assert_eq!(live(temp.path()).await.len(), 1);
    }

    #[tokio::test]
    async fn a_session_that_was_dropped_says_so() {
        let temp = tempfile::tempdir().unwrap();
        let session = session(temp.path(), None);
        let guard = session.serve_control().unwrap();
        drop(session);
        let answer = say(&guard, b"{\"request\":\"list\"}\n").await;
        assert!(answer.contains("the session is gone"), "{answer}");
    }
}
