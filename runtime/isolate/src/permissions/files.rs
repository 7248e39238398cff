//! The file system as an extension with limited permissions has it.
//!
//! Deno checks some operations as if they left a link at the end of the path alone, although the
//! system follows it: `copyFile` onto a link, `chmod`, `utime`, `readdir`, `stat` and others. Here it
//! is known what is done, so here it is checked whether it may be done to what the link leads to. The
//! same goes for files that are opened: what a path was checked for is not always where it led.

use std::borrow::Cow;
use std::path::Path;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::OnceLock;

use deno_runtime::deno_fs::FileSystem;
use deno_runtime::deno_fs::FsDirEntry;
use deno_runtime::deno_fs::FsFileType;
use deno_runtime::deno_fs::FsReadDirRc;
use deno_runtime::deno_fs::OpenOptions;
use deno_runtime::deno_fs::RealFs;
use deno_runtime::deno_io::fs::File;
use deno_runtime::deno_io::fs::FsError;
use deno_runtime::deno_io::fs::FsResult;
use deno_runtime::deno_io::fs::FsStat;
use deno_runtime::deno_io::fs::FsStatFs;
use deno_runtime::deno_permissions::CheckedPath;
use deno_runtime::deno_permissions::CheckedPathBuf;
use deno_runtime::deno_permissions::OpenAccessKind;
use deno_runtime::deno_permissions::PermissionCheckError;
use deno_runtime::deno_permissions::PermissionDeniedError;
use deno_runtime::deno_permissions::PermissionState;
use deno_runtime::deno_permissions::PermissionsContainer;

use super::links::Last;
use super::links::real_path;
use super::refusals;
use super::refusals::Attempt;

const READ: OpenAccessKind = OpenAccessKind::ReadNoFollow;
const WRITE: OpenAccessKind = OpenAccessKind::WriteNoFollow;

/// The real files, where no link leads to one that the extension has no permission for. Clones share
/// the permissions.
#[derive(Debug, Clone, Default)]
pub struct GuardedFs(Arc<OnceLock<PermissionsContainer>>);

impl GuardedFs {
    /// For a thread whose permissions are known when it starts.
    pub fn of(permissions: PermissionsContainer) -> Self {
        Self(Arc::new(permissions.into()))
    }

    /// From now on these permissions count. Until then nothing gets past the ops' own checks.
    pub fn guard(&self, permissions: PermissionsContainer) {
        // Set once, when the isolate takes on its extension.
        let _ = self.0.set(permissions);
    }

    /// Whether this may be done to what `path` leads to.
    fn check(&self, path: &CheckedPath, access: OpenAccessKind) -> FsResult<()> {
        let Some(permissions) = self.0.get() else { return Ok(()) };
        if permissions.check_has_all_permissions(path).is_ok() {
            return Ok(());
        }
        let real = real_path(path, Last::Followed)?;
        // The path itself has been checked, unless Deno has put another in its place since.
        if real == **path && !path.canonicalized() {
            return Ok(());
        }
        let checked = permissions.check_open(Cow::Owned(real), access, None);
        checked.map(drop).map_err(FsError::PermissionCheck)
    }

    /// Says that a permission is missing where the sandbox, and not a check, refused something.
    fn explain<T>(&self, result: FsResult<T>, path: &Path, attempt: Attempt) -> FsResult<T> {
        let Err(FsError::Io(error)) = result else { return result };
        let Some(permissions) = self.0.get() else { return Err(FsError::Io(error)) };
        let checked = CheckedPath::unsafe_new(Cow::Borrowed(path));
        let is_limited = permissions.check_has_all_permissions(&checked).is_err();
        if !is_limited || !refusals::by_sandbox(&error, path, attempt) {
            return Err(FsError::Io(error));
        }
        let name = if attempt == Attempt::Read { "read" } else { "write" };
        Err(FsError::PermissionCheck(PermissionCheckError::PermissionDenied(
            PermissionDeniedError {
                access: format!("{name} access to \"{}\"", path.display()),
                name,
                custom_message: None,
                state: PermissionState::Denied,
            },
        )))
    }

    fn check_buf(&self, path: &CheckedPathBuf, access: OpenAccessKind) -> FsResult<()> {
        self.check(&path.as_checked_path(), access)
    }
}

/// What a file is opened for.
fn attempt(options: &OpenOptions) -> Attempt {
    let writes = options.write || options.append || options.create || options.truncate;
    if writes { Attempt::Write } else { Attempt::Read }
}

#[async_trait::async_trait(?Send)]
impl FileSystem for GuardedFs {
    fn cwd(&self) -> FsResult<PathBuf> {
        RealFs.cwd()
    }

    fn tmp_dir(&self) -> FsResult<PathBuf> {
        RealFs.tmp_dir()
    }

    fn chdir(&self, path: &CheckedPath) -> FsResult<()> {
        self.check(path, READ)?;
        RealFs.chdir(path)
    }

    fn umask(&self, mask: Option<u32>) -> FsResult<u32> {
        RealFs.umask(mask)
    }

    fn open_sync(&self, path: &CheckedPath, options: OpenOptions) -> FsResult<Rc<dyn File>> {
        self.check(path, options.access_kind())?;
        let attempt = attempt(&options);
        self.explain(RealFs.open_sync(path, options), path, attempt)
    }

    async fn open_async<'a>(
        &'a self,
        path: CheckedPathBuf,
        options: OpenOptions,
    ) -> FsResult<Rc<dyn File>> {
        self.check_buf(&path, options.access_kind())?;
        let (shown, attempt) = (path.to_path_buf(), attempt(&options));
        self.explain(RealFs.open_async(path, options).await, &shown, attempt)
    }

    fn write_file_sync(
        &self,
        path: &CheckedPath,
        options: OpenOptions,
        data: &[u8],
    ) -> FsResult<()> {
        self.check(path, options.access_kind())?;
        self.explain(RealFs.write_file_sync(path, options, data), path, Attempt::Write)
    }

    async fn write_file_async<'a>(
        &'a self,
        path: CheckedPathBuf,
        options: OpenOptions,
        data: Box<[u8]>,
    ) -> FsResult<()> {
        self.check_buf(&path, options.access_kind())?;
        let shown = path.to_path_buf();
        self.explain(RealFs.write_file_async(path, options, data).await, &shown, Attempt::Write)
    }

    fn read_file_sync(
        &self,
        path: &CheckedPath,
        options: OpenOptions,
    ) -> FsResult<Cow<'static, [u8]>> {
        self.check(path, options.access_kind())?;
        self.explain(RealFs.read_file_sync(path, options), path, Attempt::Read)
    }

    async fn read_file_async<'a>(
        &'a self,
        path: CheckedPathBuf,
        options: OpenOptions,
    ) -> FsResult<Cow<'static, [u8]>> {
        self.check_buf(&path, options.access_kind())?;
        let shown = path.to_path_buf();
        self.explain(RealFs.read_file_async(path, options).await, &shown, Attempt::Read)
    }

    fn mkdir_sync(&self, path: &CheckedPath, recursive: bool, mode: Option<u32>) -> FsResult<()> {
        self.check(path, WRITE)?;
        self.explain(RealFs.mkdir_sync(path, recursive, mode), path, Attempt::Write)
    }

    async fn mkdir_async(
        &self,
        path: CheckedPathBuf,
        recursive: bool,
        mode: Option<u32>,
    ) -> FsResult<()> {
        self.check_buf(&path, WRITE)?;
        let shown = path.to_path_buf();
        self.explain(RealFs.mkdir_async(path, recursive, mode).await, &shown, Attempt::Write)
    }

    #[cfg(unix)]
    fn chmod_sync(&self, path: &CheckedPath, mode: u32) -> FsResult<()> {
        self.check(path, WRITE)?;
        RealFs.chmod_sync(path, mode)
    }

    #[cfg(not(unix))]
    fn chmod_sync(&self, path: &CheckedPath, mode: i32) -> FsResult<()> {
        self.check(path, WRITE)?;
        RealFs.chmod_sync(path, mode)
    }

    #[cfg(unix)]
    async fn chmod_async(&self, path: CheckedPathBuf, mode: u32) -> FsResult<()> {
        self.check_buf(&path, WRITE)?;
        RealFs.chmod_async(path, mode).await
    }

    #[cfg(not(unix))]
    async fn chmod_async(&self, path: CheckedPathBuf, mode: i32) -> FsResult<()> {
        self.check_buf(&path, WRITE)?;
        RealFs.chmod_async(path, mode).await
    }

    fn chown_sync(&self, path: &CheckedPath, uid: Option<u32>, gid: Option<u32>) -> FsResult<()> {
        self.check(path, WRITE)?;
        RealFs.chown_sync(path, uid, gid)
    }

    async fn chown_async(
        &self,
        path: CheckedPathBuf,
        uid: Option<u32>,
        gid: Option<u32>,
    ) -> FsResult<()> {
        self.check_buf(&path, WRITE)?;
        RealFs.chown_async(path, uid, gid).await
    }

    fn copy_file_sync(&self, from: &CheckedPath, to: &CheckedPath) -> FsResult<()> {
        self.check(from, READ)?;
        self.check(to, WRITE)?;
        self.explain(RealFs.copy_file_sync(from, to), to, Attempt::Write)
    }

    async fn copy_file_async(&self, from: CheckedPathBuf, to: CheckedPathBuf) -> FsResult<()> {
        self.check_buf(&from, READ)?;
        self.check_buf(&to, WRITE)?;
        let shown = to.to_path_buf();
        self.explain(RealFs.copy_file_async(from, to).await, &shown, Attempt::Write)
    }

    fn cp_sync(&self, from: &CheckedPath, to: &CheckedPath) -> FsResult<()> {
        self.check(from, READ)?;
        self.check(to, WRITE)?;
        RealFs.cp_sync(from, to)
    }

    async fn cp_async(&self, from: CheckedPathBuf, to: CheckedPathBuf) -> FsResult<()> {
        self.check_buf(&from, READ)?;
        self.check_buf(&to, WRITE)?;
        RealFs.cp_async(from, to).await
    }

    fn stat_sync(&self, path: &CheckedPath) -> FsResult<FsStat> {
        self.check(path, READ)?;
        RealFs.stat_sync(path)
    }

    async fn stat_async(&self, path: CheckedPathBuf) -> FsResult<FsStat> {
        self.check_buf(&path, READ)?;
        RealFs.stat_async(path).await
    }

    fn statfs_sync(&self, path: &CheckedPath, bigint: bool) -> FsResult<FsStatFs> {
        self.check(path, READ)?;
        RealFs.statfs_sync(path, bigint)
    }

    async fn statfs_async(&self, path: CheckedPathBuf, bigint: bool) -> FsResult<FsStatFs> {
        self.check_buf(&path, READ)?;
        RealFs.statfs_async(path, bigint).await
    }

    fn exists_sync(&self, path: &CheckedPath) -> bool {
        self.check(path, READ).is_ok() && RealFs.exists_sync(path)
    }

    async fn exists_async(&self, path: CheckedPathBuf) -> FsResult<bool> {
        Ok(self.check_buf(&path, READ).is_ok() && RealFs.exists_async(path).await?)
    }

    fn read_dir_sync(&self, path: &CheckedPath) -> FsResult<Vec<FsDirEntry>> {
        self.check(path, READ)?;
        self.explain(RealFs.read_dir_sync(path), path, Attempt::Read)
    }

    async fn read_dir_async(&self, path: CheckedPathBuf) -> FsResult<FsReadDirRc> {
        self.check_buf(&path, READ)?;
        let shown = path.to_path_buf();
        self.explain(RealFs.read_dir_async(path).await, &shown, Attempt::Read)
    }

    fn utime_sync(
        &self,
        path: &CheckedPath,
        atime_secs: i64,
        atime_nanos: u32,
        mtime_secs: i64,
        mtime_nanos: u32,
    ) -> FsResult<()> {
        self.check(path, WRITE)?;
        RealFs.utime_sync(path, atime_secs, atime_nanos, mtime_secs, mtime_nanos)
    }

    async fn utime_async(
        &self,
        path: CheckedPathBuf,
        atime_secs: i64,
        atime_nanos: u32,
        mtime_secs: i64,
        mtime_nanos: u32,
    ) -> FsResult<()> {
        self.check_buf(&path, WRITE)?;
        RealFs.utime_async(path, atime_secs, atime_nanos, mtime_secs, mtime_nanos).await
    }

    // What follows is done to links themselves, or tells no more than `readlink` does.

    fn realpath_sync(&self, path: &CheckedPath) -> FsResult<PathBuf> {
        RealFs.realpath_sync(path)
    }

    async fn realpath_async(&self, path: CheckedPathBuf) -> FsResult<PathBuf> {
        RealFs.realpath_async(path).await
    }

    fn lstat_sync(&self, path: &CheckedPath) -> FsResult<FsStat> {
        RealFs.lstat_sync(path)
    }

    async fn lstat_async(&self, path: CheckedPathBuf) -> FsResult<FsStat> {
        RealFs.lstat_async(path).await
    }

    fn lchmod_sync(&self, path: &CheckedPath, mode: u32) -> FsResult<()> {
        RealFs.lchmod_sync(path, mode)
    }

    async fn lchmod_async(&self, path: CheckedPathBuf, mode: u32) -> FsResult<()> {
        RealFs.lchmod_async(path, mode).await
    }

    fn lchown_sync(&self, path: &CheckedPath, uid: Option<u32>, gid: Option<u32>) -> FsResult<()> {
        RealFs.lchown_sync(path, uid, gid)
    }

    async fn lchown_async(
        &self,
        path: CheckedPathBuf,
        uid: Option<u32>,
        gid: Option<u32>,
    ) -> FsResult<()> {
        RealFs.lchown_async(path, uid, gid).await
    }

    fn lutime_sync(
        &self,
        path: &CheckedPath,
        atime_secs: i64,
        atime_nanos: u32,
        mtime_secs: i64,
        mtime_nanos: u32,
    ) -> FsResult<()> {
        RealFs.lutime_sync(path, atime_secs, atime_nanos, mtime_secs, mtime_nanos)
    }

    async fn lutime_async(
        &self,
        path: CheckedPathBuf,
        atime_secs: i64,
        atime_nanos: u32,
        mtime_secs: i64,
        mtime_nanos: u32,
    ) -> FsResult<()> {
        RealFs.lutime_async(path, atime_secs, atime_nanos, mtime_secs, mtime_nanos).await
    }

    fn remove_sync(&self, path: &CheckedPath, recursive: bool) -> FsResult<()> {
        self.explain(RealFs.remove_sync(path, recursive), path, Attempt::Name)
    }

    async fn remove_async(&self, path: CheckedPathBuf, recursive: bool) -> FsResult<()> {
        let shown = path.to_path_buf();
        self.explain(RealFs.remove_async(path, recursive).await, &shown, Attempt::Name)
    }

    fn rename_sync(&self, from: &CheckedPath, to: &CheckedPath) -> FsResult<()> {
        self.explain(RealFs.rename_sync(from, to), from, Attempt::Name)
    }

    async fn rename_async(&self, from: CheckedPathBuf, to: CheckedPathBuf) -> FsResult<()> {
        let shown = from.to_path_buf();
        self.explain(RealFs.rename_async(from, to).await, &shown, Attempt::Name)
    }

    fn rmdir_sync(&self, path: &CheckedPath) -> FsResult<()> {
        self.explain(RealFs.rmdir_sync(path), path, Attempt::Name)
    }

    async fn rmdir_async(&self, path: CheckedPathBuf) -> FsResult<()> {
        let shown = path.to_path_buf();
        self.explain(RealFs.rmdir_async(path).await, &shown, Attempt::Name)
    }

    fn link_sync(&self, from: &CheckedPath, to: &CheckedPath) -> FsResult<()> {
        self.explain(RealFs.link_sync(from, to), to, Attempt::Write)
    }

    async fn link_async(&self, from: CheckedPathBuf, to: CheckedPathBuf) -> FsResult<()> {
        let shown = to.to_path_buf();
        self.explain(RealFs.link_async(from, to).await, &shown, Attempt::Write)
    }

    fn symlink_sync(
        &self,
        target: &CheckedPath,
        path: &CheckedPath,
        file_type: Option<FsFileType>,
    ) -> FsResult<()> {
        RealFs.symlink_sync(target, path, file_type)
    }

    async fn symlink_async(
        &self,
        target: CheckedPathBuf,
        path: CheckedPathBuf,
        file_type: Option<FsFileType>,
    ) -> FsResult<()> {
        RealFs.symlink_async(target, path, file_type).await
    }

    fn read_link_sync(&self, path: &CheckedPath) -> FsResult<PathBuf> {
        RealFs.read_link_sync(path)
    }

    async fn read_link_async(&self, path: CheckedPathBuf) -> FsResult<PathBuf> {
        RealFs.read_link_async(path).await
    }

    // Deno's own opens no link here.
    fn truncate_sync(&self, path: &CheckedPath, len: u64) -> FsResult<()> {
        self.explain(RealFs.truncate_sync(path, len), path, Attempt::Write)
    }

    async fn truncate_async(&self, path: CheckedPathBuf, len: u64) -> FsResult<()> {
        let shown = path.to_path_buf();
        self.explain(RealFs.truncate_async(path, len).await, &shown, Attempt::Write)
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::message::Access;
    use crate::message::Grant;

    /// A folder that may be read and written, and one beside it that may be read at most. In the
    /// first are the links `file` and `folder` to the second and what is in it.
    struct Folders {
        _temp: tempfile::TempDir,
        workspace: PathBuf,
        outside: PathBuf,
        permissions: PermissionsContainer,
    }

    impl Folders {
        fn new(read: impl FnOnce(&Path) -> Access) -> Self {
            let temp = tempfile::tempdir().unwrap();
            let root = temp.path().canonicalize().unwrap();
            let (workspace, outside) = (root.join("workspace"), root.join("outside"));
            fs::create_dir(&workspace).unwrap();
            fs::create_dir(&outside).unwrap();
            fs::write(outside.join("file"), "theirs").unwrap();
            fs::write(workspace.join("own"), "own").unwrap();
            symlink(outside.join("file"), workspace.join("file")).unwrap();
            symlink(&outside, workspace.join("folder")).unwrap();
            let write = only(&workspace);
            let grant = Grant {
                read: read(&workspace),
                write,
                net: Access::none(),
                run: Access::none(),
                ..Grant::default()
            };
            let permissions = crate::permissions::permissions(&grant).unwrap();
            Self { _temp: temp, workspace, outside, permissions }
        }

        fn files(&self) -> GuardedFs {
            GuardedFs::of(self.permissions.clone())
        }

        /// As an op has it checked before it turns to the file system.
        fn checked(&self, name: &str, access: OpenAccessKind) -> CheckedPath<'static> {
            let path = self.workspace.join(name);
            self.permissions.check_open(Cow::Owned(path), access, None).unwrap()
        }
    }

    fn only(path: &Path) -> Access {
        Access::only([path.to_str().unwrap().to_owned()])
    }

    fn is_denied<T>(result: FsResult<T>) -> bool {
        matches!(result, Err(FsError::PermissionCheck(_)))
    }

    #[test]
    fn nothing_is_written_through_a_link_to_a_file_outside() {
        let folders = Folders::new(only);
        let (files, link) = (folders.files(), folders.checked("file", WRITE));
        let own = folders.checked("own", OpenAccessKind::Read);
        assert!(is_denied(files.copy_file_sync(&own, &link)));
        assert!(is_denied(files.chmod_sync(&link, 0o777)));
        assert!(is_denied(files.chown_sync(&link, None, None)));
        assert!(is_denied(files.utime_sync(&link, 0, 0, 0, 0)));
        assert!(files.truncate_sync(&link, 0).is_err());
        let file = folders.outside.join("file");
        assert_eq!(fs::read_to_string(&file).unwrap(), "theirs");
        assert_ne!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o777);
    }

    #[test]
    fn nothing_is_told_of_what_a_link_leads_to_outside() {
        let folders = Folders::new(only);
        let files = folders.files();
        let (link, folder) = (folders.checked("file", READ), folders.checked("folder", READ));
        assert!(is_denied(files.read_dir_sync(&folder)));
        assert!(is_denied(files.chdir(&folder)));
        assert!(is_denied(files.stat_sync(&link)));
        assert!(!files.exists_sync(&link));
        // Some of Deno's ops read a path that was checked as one that is not followed.
        assert!(is_denied(files.read_file_sync(&link, OpenOptions::read())));
        assert!(files.lstat_sync(&link).unwrap().is_symlink);
    }

    #[test]
    fn a_folder_for_temporary_files_is_no_way_outside() {
        let folders = Folders::new(only);
        let files = folders.files();
        let path = CheckedPath::unsafe_new(Cow::Owned(folders.workspace.join("folder/new")));
        assert!(is_denied(files.mkdir_sync(&path, false, None)));
        let create = OpenOptions::write(true, false, true, None);
        assert!(is_denied(files.open_sync(&path, create)));
        assert!(!folders.outside.join("new").exists());
    }

    #[test]
    fn a_link_from_what_may_be_written_to_what_may_only_be_read_is_only_read() {
        let folders = Folders::new(|_| Access::all());
        let files = folders.files();
        let link = folders.checked("file", OpenAccessKind::Read);
        assert_eq!(&*files.read_file_sync(&link, OpenOptions::read()).unwrap(), b"theirs");
        let link = folders.checked("file", OpenAccessKind::Write);
        let overwrite = OpenOptions::write(true, false, false, None);
        assert!(is_denied(files.write_file_sync(&link, overwrite, b"mine")));
        assert_eq!(fs::read_to_string(folders.outside.join("file")).unwrap(), "theirs");
    }

    #[test]
    fn a_denial_says_where_the_link_leads() {
        let folders = Folders::new(only);
        let stat = folders.files().stat_sync(&folders.checked("file", READ));
        let denial = stat.map(drop).unwrap_err();
        let file = folders.outside.join("file");
        let expected = format!("Requires read access to \"{}\"", file.display());
        assert!(denial.to_string().starts_with(&expected), "{denial}");
    }

    #[test]
    fn who_may_do_everything_follows_every_link() {
        let mut folders = Folders::new(only);
        folders.permissions = crate::permissions::permissions(&Grant::default()).unwrap();
        let (files, link) = (folders.files(), folders.checked("file", WRITE));
        let own = folders.checked("own", OpenAccessKind::Read);
        files.copy_file_sync(&own, &link).unwrap();
        assert_eq!(fs::read_to_string(folders.outside.join("file")).unwrap(), "own");
    }
}
