//! Sockets in the file system that only the user can reach, and that go with their owner.

use std::fs::File;
use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;

use tokio::net::UnixListener;
use tokio::net::UnixStream;

use crate::store::make_private_folder;

/// The longest path in the address of a socket, in bytes: `sun_path` has 108, the last one is zero.
pub const MAX_PATH_BYTES: usize = 107;

/// Makes a folder that only the user can enter, also if it is there already.
pub fn make_folder(folder: &Path) -> std::io::Result<()> {
    make_private_folder(folder)?;
    std::fs::set_permissions(folder, Permissions::from_mode(0o700))
}

/// Listens at a socket. The file has the name `fresh` until somebody is there, so that nobody takes it for one that
/// was left behind. Must be called inside a tokio runtime.
pub fn listen(socket: &Path, fresh: &Path) -> std::io::Result<(UnixListener, SocketFile)> {
    match std::fs::remove_file(fresh) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&Address::of(fresh)?.path)?;
    let ready = std::fs::set_permissions(fresh, Permissions::from_mode(0o600))
        .and_then(|()| Identity::of(fresh))
        .and_then(|identity| std::fs::rename(fresh, socket).map(|()| identity));
    match ready {
        Ok(identity) => Ok((listener, SocketFile { path: socket.to_owned(), identity })),
        Err(error) => {
            let _ = std::fs::remove_file(fresh);
            Err(error)
        }
    }
}

/// Whether a client is a process of this user. The folder is closed to others; this is for file systems that do not
/// know of users.
pub fn is_same_user(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| peer.uid() == rustix::process::geteuid().as_raw())
}

/// Whether a client may give this process orders: it is the same user's, and not confined further than this process. A program
/// of an extension is, and has the extension's rights, not those of the session.
pub fn may_give_orders(stream: &UnixStream) -> bool {
    #[cfg(target_os = "linux")]
    return tenon_protocol::peer::check(stream).is_ok();
    #[cfg(not(target_os = "linux"))]
    return is_same_user(stream);
}

/// What tells one file from another that later has its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// The file that has this name now; a link is not followed.
    pub fn of(path: &Path) -> std::io::Result<Self> {
        let file = std::fs::symlink_metadata(path)?;
        Ok(Self { device: file.dev(), inode: file.ino() })
    }

    /// Removes the file of this name if it is still this one; says whether it did.
    pub fn remove(self, path: &Path) -> bool {
        Self::of(path).is_ok_and(|now| now == self) && std::fs::remove_file(path).is_ok()
    }
}

/// The file of a socket; it goes when this is dropped.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    identity: Identity,
}

impl SocketFile {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the file away, if it is still ours: another process may have taken its name meanwhile.
    pub fn remove(&self) {
        self.identity.remove(&self.path);
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        self.remove();
    }
}

/// A path that fits into the address of a socket.
pub struct Address {
    /// The path.
    pub path: PathBuf,
    /// Open as long as the path leads through it.
    _folder: Option<File>,
}

impl Address {
    /// The address of a socket, however deep down it lies.
    pub fn of(socket: &Path) -> std::io::Result<Self> {
        if socket.as_os_str().len() <= MAX_PATH_BYTES {
            return Ok(Self { path: socket.to_owned(), _folder: None });
        }
        let (Some(folder), Some(name)) = (socket.parent(), socket.file_name()) else {
            return Err(ErrorKind::InvalidFilename.into());
        };
        // The folder itself is too deep down; it has a short name while it is open.
        let folder = File::open(folder)?;
        let path = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name);
        Ok(Self { path, _folder: Some(folder) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen_in(folder: &Path) -> std::io::Result<(UnixListener, SocketFile)> {
        listen(&folder.join("a.sock"), &folder.join("a.new"))
    }

    #[tokio::test]
    async fn only_the_user_can_reach_a_socket_and_it_goes_with_its_owner() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("run");
        std::fs::create_dir(&folder).unwrap();
        make_folder(&folder).unwrap();
        let (_listener, file) = listen_in(&folder).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(mode(file.path()), 0o600);
        drop(file);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_file_that_has_taken_its_name_stays() {
        let temp = tempfile::tempdir().unwrap();
        let (_listener, first) = listen_in(temp.path()).unwrap();
        let (_other, second) = listen_in(temp.path()).unwrap();
        drop(first);
        assert!(second.path().exists());
    }

    #[tokio::test]
    async fn a_deep_folder_has_sockets_too() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("d".repeat(120));
        make_folder(&folder).unwrap();
        let (listener, file) = listen_in(&folder).unwrap();
        assert!(file.path().as_os_str().len() > MAX_PATH_BYTES);
        let address = Address::of(file.path()).unwrap();
        UnixStream::connect(&address.path).await.unwrap();
        assert!(is_same_user(&listener.accept().await.unwrap().0));
    }
}
