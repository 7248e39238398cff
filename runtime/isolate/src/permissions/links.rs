//! Where a path leads, and permissions that go by it.
//!
//! Deno goes by the path it is given. In a folder that an extension may use there may be links, and
//! what they lead to is granted to nobody by that. So the folders of every path are resolved before
//! the path is checked. The last name is left alone there, because that check is also the one for
//! what concerns the link itself, such as `lstat` or `unlink`. Where a link is followed to be read,
//! Deno asks once more, for the file it leads to; for what else follows it, see
//! [`GuardedFs`](super::files::GuardedFs).

use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::path::Component;
use std::path::Path;
use std::path::PathBuf;

use deno_runtime::deno_permissions as deno;
use deno_runtime::deno_permissions::PathQueryDescriptor;
use deno_runtime::deno_permissions::PathResolveError;
use deno_runtime::deno_permissions::PermissionDescriptorParser;
use deno_runtime::deno_permissions::RuntimePermissionDescriptorParser;
use deno_runtime::deno_permissions::SpecialFilePathQueryDescriptor;
use sys_traits::impls::RealSys;

use crate::message::Access;
use crate::message::Grant;

/// As many links as Linux follows in one path. More are an error: a path that is resolved only in
/// part would lead on to where nobody has looked.
const MOST_LINKS: usize = 40;

/// What becomes of a link at the end of a path; those before it are always followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Last {
    /// It is what is meant.
    Kept,
    /// What it leads to is meant, whether that exists or not.
    Followed,
}

/// Where a path leads. `..` is the folder above the one that was reached, as it is for the system.
pub fn real_path(path: &Path, last: Last) -> io::Result<PathBuf> {
    let mut real = PathBuf::new();
    let mut ahead = steps(&std::path::absolute(path)?);
    let mut links = 0;
    while let Some(step) = ahead.pop() {
        if step == ".." {
            real.pop();
            continue;
        }
        real.push(&step);
        let is_kept = ahead.is_empty() && last == Last::Kept;
        if is_kept || real.parent().is_none() || is_magic(&real) {
            continue;
        }
        // Whatever is no link, or not there, or not accessible, leads nowhere else.
        let Ok(target) = std::fs::read_link(&real) else { continue };
        links += 1;
        if links > MOST_LINKS {
            return Err(io::Error::from_raw_os_error(libc::ELOOP));
        }
        real.pop();
        ahead.extend(steps(&target));
    }
    Ok(real)
}

/// The names in a path, the first one at the end.
fn steps(path: &Path) -> Vec<OsString> {
    path.components()
        .rev()
        .filter(|component| *component != Component::CurDir)
        .map(|component| component.as_os_str().to_owned())
        .collect()
}

/// Links in these folders lead where their text does not say; Deno refuses nearly all of it.
fn is_magic(path: &Path) -> bool {
    cfg!(target_os = "linux") && (path.starts_with("/proc") || path.starts_with("/dev"))
}

/// Connecting to a socket follows the link, but is checked like what does not.
#[cfg(unix)]
fn leads_to_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    path.is_symlink() && std::fs::metadata(path).is_ok_and(|target| target.file_type().is_socket())
}

#[cfg(not(unix))]
fn leads_to_socket(_path: &Path) -> bool {
    false
}

/// Paths as they were granted, and where they lead: one or the other is what is compared with.
pub fn with_real_paths(paths: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    for path in paths {
        let real = [Last::Kept, Last::Followed].map(|last| real_path(Path::new(path), last));
        let real =
            real.into_iter().flatten().filter_map(|path| path.into_os_string().into_string().ok());
        for path in std::iter::once(path.clone()).chain(real) {
            if !all.contains(&path) {
                all.push(path);
            }
        }
    }
    all
}

/// The paths of one permission.
#[derive(Debug)]
struct Reach {
    allow: Option<Vec<PathBuf>>,
    deny: Vec<PathBuf>,
}

impl Reach {
    fn of(access: &Access) -> Self {
        let paths =
            |names: &[String]| with_real_paths(names).into_iter().map(PathBuf::from).collect();
        Self { allow: access.allow.as_deref().map(paths), deny: paths(&access.deny) }
    }

    fn covers(&self, path: &Path) -> bool {
        let is_in = |folders: &[PathBuf]| folders.iter().any(|folder| path.starts_with(folder));
        self.allow.as_deref().is_none_or(is_in) && !is_in(&self.deny)
    }
}

/// Makes of a path what is compared with the grant.
#[derive(Debug)]
pub struct LinkParser {
    deno: RuntimePermissionDescriptorParser<RealSys>,
    read: Reach,
    write: Reach,
}

impl LinkParser {
    /// For the permissions that are made of this grant.
    pub fn of(grant: &Grant) -> Self {
        Self {
            deno: RuntimePermissionDescriptorParser::new(RealSys),
            read: Reach::of(&grant.read),
            write: Reach::of(&grant.write),
        }
    }

    /// Whether a file that is about to be opened may be, for all that is known here. What it is
    /// opened for is not; who may write it is sorted out when it is opened.
    fn check_end(&self, given: &Path, shown: &str) -> io::Result<()> {
        let real = real_path(given, Last::Followed)?;
        let is_only_written = self.write.covers(&real) && !self.read.covers(given);
        if real == given || self.read.covers(&real) || is_only_written {
            return Ok(());
        }
        let message = format!(
            "no read access to \"{}\", where \"{shown}\" leads; it can be granted in the user's \
             configuration",
            real.display()
        );
        Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
    }
}

impl PermissionDescriptorParser for LinkParser {
    fn parse_path_query<'a>(
        &self,
        path: Cow<'a, Path>,
    ) -> Result<PathQueryDescriptor<'a>, PathResolveError> {
        if path.as_os_str().is_empty() {
            return self.deno.parse_path_query(path);
        }
        let mut real = real_path(&path, Last::Kept).map_err(PathResolveError::Canonicalize)?;
        if leads_to_socket(&real) {
            real = real_path(&real, Last::Followed).map_err(PathResolveError::Canonicalize)?;
        }
        if real == *path {
            return self.deno.parse_path_query(path);
        }
        let shown = path.to_string_lossy().into_owned();
        Ok(PathQueryDescriptor::new_known_absolute(Cow::Owned(real)).with_requested(shown))
    }

    fn parse_special_file_descriptor<'a>(
        &self,
        path: PathQueryDescriptor<'a>,
    ) -> Result<SpecialFilePathQueryDescriptor<'a>, PathResolveError> {
        let given = path.as_descriptor().into_path_buf();
        self.check_end(&given, &path.display_name()).map_err(PathResolveError::Canonicalize)?;
        self.deno.parse_special_file_descriptor(path)
    }

    fn parse_read_descriptor(&self, text: &str) -> Result<deno::ReadDescriptor, PathResolveError> {
        self.deno.parse_read_descriptor(text)
    }

    fn parse_write_descriptor(
        &self,
        text: &str,
    ) -> Result<deno::WriteDescriptor, PathResolveError> {
        self.deno.parse_write_descriptor(text)
    }

    fn parse_net_descriptor(
        &self,
        text: &str,
    ) -> Result<deno::NetDescriptor, deno::NetDescriptorParseError> {
        self.deno.parse_net_descriptor(text)
    }

    fn parse_import_descriptor(
        &self,
        text: &str,
    ) -> Result<deno::ImportDescriptor, deno::NetDescriptorParseError> {
        self.deno.parse_import_descriptor(text)
    }

    fn parse_env_descriptor(
        &self,
        text: &str,
    ) -> Result<deno::EnvDescriptor, deno::EnvDescriptorParseError> {
        self.deno.parse_env_descriptor(text)
    }

    fn parse_sys_descriptor(
        &self,
        text: &str,
    ) -> Result<deno::SysDescriptor, deno::SysDescriptorParseError> {
        self.deno.parse_sys_descriptor(text)
    }

    fn parse_allow_run_descriptor(
        &self,
        text: &str,
    ) -> Result<deno::AllowRunDescriptorParseResult, deno::RunDescriptorParseError> {
        self.deno.parse_allow_run_descriptor(text)
    }

    fn parse_deny_run_descriptor(
        &self,
        text: &str,
    ) -> Result<deno::DenyRunDescriptor, PathResolveError> {
        self.deno.parse_deny_run_descriptor(text)
    }

    fn parse_ffi_descriptor(&self, text: &str) -> Result<deno::FfiDescriptor, PathResolveError> {
        self.deno.parse_ffi_descriptor(text)
    }

    fn parse_net_query(
        &self,
        text: &str,
    ) -> Result<deno::NetDescriptor, deno::NetDescriptorParseError> {
        self.deno.parse_net_query(text)
    }

    fn parse_run_query<'a>(
        &self,
        requested: &'a str,
    ) -> Result<deno::RunQueryDescriptor<'a>, deno::RunDescriptorParseError> {
        self.deno.parse_run_query(requested)
    }
}
