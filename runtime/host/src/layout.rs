//! Where things lie in Tenon's home folder and in the folder of a session.

use std::path::Path;
use std::path::PathBuf;

/// Where Tenon's sockets are, in its home: of sessions, and of zygotes.
pub const SOCKETS: [&str; 2] = ["run", "zygote"];

/// The folder, in Tenon's home, of the folders of all sessions.
const SESSIONS: &str = "session-state";

/// The folder, in a session's folder, of the files that extensions keep there.
pub const FILES: &str = "files";

/// The folder of all sessions.
pub fn sessions(home: &Path) -> PathBuf {
    home.join(SESSIONS)
}

/// The folder of one session.
pub fn session(home: &Path, id: &str) -> PathBuf {
    sessions(home).join(id)
}
