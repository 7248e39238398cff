//! Files below a folder, opened step by step from the folder itself. The session follows no link on the way, so an
//! extension that puts one there cannot make it read or write somewhere else.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Component;
use std::path::Path;

use rustix::fs::AtFlags;
use rustix::fs::FileType;
use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::io::Errno;

/// How a folder on the way is opened.
const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The rights of a new file and of a new folder, from which the system takes away what its mask says.
const NEW_FILE: Mode = Mode::from_raw_mode(0o644);
const NEW_FOLDER: Mode = Mode::from_raw_mode(0o755);

/// How much of a file's name the file has that is written beside it, in characters: enough to recognise it.
const NAME_CHARS_BESIDE: usize = 32;

/// A folder, and what is below it.
pub struct Beneath(OwnedFd);

/// A file below a folder could not be read, written or deleted.
#[derive(Debug, thiserror::Error)]
pub enum BeneathError {
    /// Its path begins somewhere else, or goes up.
    #[error("the path leads out of its folder")]
    Outside,
    /// A link is on the way, or in its place.
    #[error("{0} is a link, and links are not followed")]
    Link(String),
    /// The file can be reached elsewhere, too.
    #[error("{0} is another name of a file that may be elsewhere")]
    Shared(String),
    /// A folder, a pipe or something else has that name.
    #[error("it is not a file")]
    NotAFile,
    /// It is longer than the caller allows.
    #[error("it is longer than {0} bytes")]
    TooLong(usize),
    /// The system says no.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<Errno> for BeneathError {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

impl BeneathError {
    /// Whether there is no such file.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// Whether something has that name already.
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::AlreadyExists)
    }
}

/// Whether the write replaced a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// It did not.
    Nothing,
    /// It did.
    File,
}

impl Beneath {
    /// A folder that must not be a link itself.
    pub fn open(folder: &Path) -> io::Result<Self> {
        Ok(Self(rustix::fs::open(folder, FOLDER, Mode::empty())?))
    }

    /// Reads a file of at most so many bytes.
    pub fn read(&self, path: &Path, most: usize) -> Result<String, BeneathError> {
        let (folder, name) = self.parent(path, false)?;
        // Opening a pipe would block until another process writes to it.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&folder, name, flags, Mode::empty())
            .map_err(|error| explain(&folder, name, error))?;
        let file = File::from(file);
        if !file.metadata()?.is_file() {
            return Err(BeneathError::NotAFile);
        }
        let mut text = String::new();
        file.take(most as u64 + 1).read_to_string(&mut text)?;
        if text.len() > most {
            return Err(BeneathError::TooLong(most));
        }
        Ok(text)
    }

    /// Writes a file beside its place and moves it there, so that a crash leaves the old or the new one and two
    /// writers leave one of theirs. Missing folders on the way are made.
    pub fn replace(&self, path: &Path, content: &[u8]) -> Result<Before, BeneathError> {
        let (folder, name) = self.parent(path, true)?;
        let before = match file_type(&folder, name) {
            Ok(FileType::RegularFile) => Before::File,
            // A link that is in the way is replaced, not followed.
            Ok(FileType::Symlink) | Err(Errno::NOENT) => Before::Nothing,
            Ok(_) => return Err(BeneathError::NotAFile),
            Err(error) => return Err(error.into()),
        };
        // A name can be as long as the system allows, with nothing to spare.
        let start: String = name.to_string_lossy().chars().take(NAME_CHARS_BESIDE).collect();
        let beside = format!(".{start}.{}.new", crate::ids::unique());
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(&folder, &*beside, flags, NEW_FILE)?);
        let written = file
            .write_all(content)
            .and_then(|()| Ok(rustix::fs::renameat(&folder, &*beside, &folder, name)?));
        if let Err(error) = written {
            // What cannot be moved is of no use; that it cannot be removed either changes nothing.
            let _ = rustix::fs::unlinkat(&folder, &*beside, AtFlags::empty());
            return Err(error.into());
        }
        Ok(before)
    }

    /// Writes a file that must not be there yet, nor a link in its place. Missing folders on the way are made.
    pub fn create(&self, path: &Path, content: &[u8]) -> Result<(), BeneathError> {
        let (folder, name) = self.parent(path, true)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(&folder, name, flags, NEW_FILE)?);
        file.write_all(content).map_err(|error| {
            // Half a file is of no use; that it cannot be removed either changes nothing.
            let _ = rustix::fs::unlinkat(&folder, name, AtFlags::empty());
            error.into()
        })
    }

    /// Opens a file to be read and to be written at its end, and makes it if it is not there. A file that has another name
    /// as well, which may be anywhere, is refused.
    pub fn append(&self, path: &Path) -> Result<File, BeneathError> {
        let (folder, name) = self.parent(path, true)?;
        let flags = OFlags::RDWR
            | OFlags::APPEND
            | OFlags::CREATE
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&folder, name, flags, NEW_FILE)
            .map_err(|error| explain(&folder, name, error))?;
        let file = File::from(file);
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(BeneathError::NotAFile);
        }
        if about.nlink() > 1 {
            return Err(BeneathError::Shared(name.display().to_string()));
        }
        Ok(file)
    }

    /// Deletes a file, or a link in its place.
    pub fn remove(&self, path: &Path) -> Result<(), BeneathError> {
        let (folder, name) = self.parent(path, false)?;
        Ok(rustix::fs::unlinkat(&folder, name, AtFlags::empty())?)
    }

    /// The folder that a path ends in, and the last part of the path.
    fn parent<'a>(&self, path: &'a Path, make: bool) -> Result<(OwnedFd, &'a OsStr), BeneathError> {
        let mut parts = Vec::new();
        for part in path.components() {
            let Component::Normal(part) = part else { return Err(BeneathError::Outside) };
            parts.push(part);
        }
        let Some(name) = parts.pop() else { return Err(BeneathError::Outside) };
        let mut folder = self.0.try_clone()?;
        for part in parts {
            if make {
                match rustix::fs::mkdirat(&folder, part, NEW_FOLDER) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            folder = rustix::fs::openat(&folder, part, FOLDER, Mode::empty())
                .map_err(|error| explain(&folder, part, error))?;
        }
        Ok((folder, name))
    }
}

fn file_type(folder: &OwnedFd, name: &OsStr) -> Result<FileType, Errno> {
    let about = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(about.st_mode))
}

/// What the system says about a link depends on how it was opened; this says what it is.
fn explain(folder: &OwnedFd, name: &OsStr, error: Errno) -> BeneathError {
    match file_type(folder, name) {
        Ok(FileType::Symlink) => BeneathError::Link(name.display().to_string()),
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const MOST: usize = 100;

    fn folders() -> (tempfile::TempDir, Beneath) {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("inside")).unwrap();
        std::fs::write(temp.path().join("secret"), "secret").unwrap();
        let beneath = Beneath::open(&temp.path().join("inside")).unwrap();
        (temp, beneath)
    }

    #[test]
    fn what_is_written_is_read_again_and_deleted() {
        let (temp, beneath) = folders();
        let path = Path::new("a/b/file.txt");
        assert_eq!(beneath.replace(path, b"one").unwrap(), Before::Nothing);
        assert_eq!(beneath.replace(path, b"two").unwrap(), Before::File);
        assert_eq!(beneath.read(path, MOST).unwrap(), "two");
        // Nothing is left beside it.
        assert_eq!(std::fs::read_dir(temp.path().join("inside/a/b")).unwrap().count(), 1);
        beneath.remove(path).unwrap();
        assert!(beneath.read(path, MOST).unwrap_err().is_missing());
    }

    #[test]
    fn a_name_may_be_as_long_as_the_system_allows() {
        let (_temp, beneath) = folders();
        let name = "é".repeat(127);
        beneath.create(Path::new(&name), b"one").unwrap();
        assert_eq!(beneath.replace(Path::new(&name), b"two").unwrap(), Before::File);
        assert_eq!(beneath.read(Path::new(&name), MOST).unwrap(), "two");
    }

    #[test]
    fn a_link_is_never_read() {
        let (temp, beneath) = folders();
        symlink(temp.path().join("secret"), temp.path().join("inside/link")).unwrap();
        symlink(temp.path(), temp.path().join("inside/outside")).unwrap();
        for path in ["link", "outside/secret"] {
            let error = beneath.read(Path::new(path), MOST).unwrap_err().to_string();
            assert!(error.contains("is a link"), "{path}: {error}");
        }
    }

    #[test]
    fn a_link_is_replaced_and_not_written_through() {
        let (temp, beneath) = folders();
        symlink(temp.path().join("secret"), temp.path().join("inside/link")).unwrap();
        beneath.replace(Path::new("link"), b"mine").unwrap();
        assert_eq!(std::fs::read_to_string(temp.path().join("secret")).unwrap(), "secret");
        assert_eq!(beneath.read(Path::new("link"), MOST).unwrap(), "mine");
        symlink(temp.path(), temp.path().join("inside/outside")).unwrap();
        assert!(beneath.replace(Path::new("outside/new"), b"x").is_err());
        assert!(!temp.path().join("new").exists());
    }

    #[test]
    fn a_new_file_is_written_through_no_link_and_over_nothing() {
        let (temp, beneath) = folders();
        beneath.create(Path::new("a/new"), b"first").unwrap();
        assert!(beneath.create(Path::new("a/new"), b"second").unwrap_err().is_taken());
        assert_eq!(beneath.read(Path::new("a/new"), MOST).unwrap(), "first");
        symlink(temp.path().join("absent"), temp.path().join("inside/dangling")).unwrap();
        assert!(beneath.create(Path::new("dangling"), b"x").unwrap_err().is_taken());
        assert!(!temp.path().join("absent").exists());
        symlink(temp.path(), temp.path().join("inside/outside")).unwrap();
        assert!(matches!(
            beneath.create(Path::new("outside/new"), b"x"),
            Err(BeneathError::Link(_))
        ));
        assert!(!temp.path().join("new").exists());
    }

    #[test]
    fn another_name_of_a_file_is_replaced_and_the_file_is_not() {
        let (temp, beneath) = folders();
        std::fs::hard_link(temp.path().join("secret"), temp.path().join("inside/hard")).unwrap();
        beneath.replace(Path::new("hard"), b"mine").unwrap();
        assert_eq!(std::fs::read_to_string(temp.path().join("secret")).unwrap(), "secret");
    }

    #[test]
    fn a_dangling_link_is_no_file_and_makes_none() {
        let (temp, beneath) = folders();
        symlink(temp.path().join("absent"), temp.path().join("inside/dangling")).unwrap();
        assert!(matches!(beneath.read(Path::new("dangling"), MOST), Err(BeneathError::Link(_))));
        beneath.replace(Path::new("dangling"), b"mine").unwrap();
        assert!(!temp.path().join("absent").exists());
    }

    #[test]
    fn a_linked_folder_is_not_opened() {
        let (temp, _) = folders();
        symlink(temp.path(), temp.path().join("elsewhere")).unwrap();
        assert!(Beneath::open(&temp.path().join("elsewhere")).is_err());
    }

    #[test]
    fn no_path_leads_out() {
        let (_temp, beneath) = folders();
        for path in ["../secret", "/etc/passwd", "", "a/../../secret"] {
            assert!(beneath.read(Path::new(path), MOST).is_err(), "{path}");
            assert!(beneath.replace(Path::new(path), b"x").is_err(), "{path}");
        }
    }

    #[test]
    fn neither_a_pipe_nor_a_long_file_is_read() {
        let (temp, beneath) = folders();
        std::fs::write(temp.path().join("inside/long"), vec![b'x'; MOST + 1]).unwrap();
        assert!(beneath.read(Path::new("long"), MOST).unwrap_err().to_string().contains("longer"));
        let pipe = temp.path().join("inside/pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .unwrap();
        assert!(beneath.read(Path::new("pipe"), MOST).is_err());
        assert!(matches!(beneath.replace(Path::new("pipe"), b"x"), Err(BeneathError::NotAFile)));
    }
}
