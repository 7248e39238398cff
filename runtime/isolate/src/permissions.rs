//! A [`Grant`] as Deno's permissions, which every op checks.

mod addresses;
mod files;
mod links;
mod refusals;

use std::sync::Arc;

use deno_runtime::deno_permissions::Permissions;
use deno_runtime::deno_permissions::PermissionsContainer;
use deno_runtime::deno_permissions::PermissionsOptions;
use deno_runtime::deno_permissions::RuntimePermissionDescriptorParser;
use sys_traits::impls::RealSys;

pub use self::files::GuardedFs;
use self::links::LinkParser;
use self::links::with_real_paths;
pub use self::refusals::Attempt;
pub use self::refusals::would_be_permitted;
use crate::message::Access;
use crate::message::Grant;

/// A grant that names something no permission can be made of.
#[derive(Debug, thiserror::Error)]
#[error("the extension's grant is not valid: {0}")]
pub struct GrantError(String);

/// The permissions of one extension.
pub fn permissions(grant: &Grant) -> Result<PermissionsContainer, GrantError> {
    // Only who may do everything may read what Deno guards most, such as files in /proc.
    if *grant == Grant::default() {
        let parser = Arc::new(RuntimePermissionDescriptorParser::new(RealSys));
        return Ok(PermissionsContainer::allow_all(parser));
    }
    let parser = Arc::new(LinkParser::of(grant));
    let (allow_read, deny_read) = lists(&with_links(&grant.read));
    let (allow_write, deny_write) = lists(&with_links(&grant.write));
    let (allow_net, deny_net) = lists(&Access {
        allow: grant.net.allow.clone(),
        deny: addresses::with_this_machine(&grant.net.deny, addresses::of_interfaces),
    });
    let (allow_run, deny_run) = lists(&grant.run);
    // A native add-on can do whatever a program can, so it needs the right to run any program.
    let native_code = grant.run == Access::all() && grant.read == Access::all();
    let options = PermissionsOptions {
        allow_read,
        deny_read,
        allow_write,
        deny_write,
        allow_net,
        deny_net,
        allow_run,
        deny_run,
        // The environment an extension has is made for it; there is nothing behind it to guard.
        allow_env: Some(Vec::new()),
        allow_sys: Some(Vec::new()),
        allow_ffi: native_code.then(Vec::new),
        prompt: false,
        ..PermissionsOptions::default()
    };
    let permissions = Permissions::from_options(&*parser, &options)
        .map_err(|error| GrantError(error.to_string()))?;
    Ok(PermissionsContainer::new(parser, permissions))
}

/// The permissions of an isolate that has not taken on an extension yet.
pub fn nothing() -> PermissionsContainer {
    let parser = Arc::new(RuntimePermissionDescriptorParser::new(RealSys));
    PermissionsContainer::new(parser, Permissions::none_without_prompt())
}

/// What is asked for is compared by where it leads, so where the granted paths lead belongs to them.
fn with_links(access: &Access) -> Access {
    Access {
        allow: access.allow.as_deref().map(with_real_paths),
        deny: with_real_paths(&access.deny),
    }
}

/// Deno says "everything" with an empty list and "nothing" with none at all.
fn lists(access: &Access) -> (Option<Vec<String>>, Option<Vec<String>>) {
    let allow = match &access.allow {
        None => Some(Vec::new()),
        Some(names) if names.is_empty() => None,
        Some(names) => Some(names.clone()),
    };
    (allow, (!access.deny.is_empty()).then(|| access.deny.clone()))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::borrow::Cow;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::path::PathBuf;

    use deno_runtime::deno_permissions::OpenAccessKind;
    use deno_runtime::deno_permissions::OpenAccessKind::Read;
    use deno_runtime::deno_permissions::OpenAccessKind::ReadNoFollow;
    use deno_runtime::deno_permissions::OpenAccessKind::Write;

    use super::*;

    /// A folder that may be used, and one beside it that may not.
    struct Folders {
        temp: tempfile::TempDir,
        workspace: PathBuf,
        outside: PathBuf,
    }

    impl Folders {
        fn new() -> Self {
            let temp = tempfile::tempdir().unwrap();
            let root = temp.path().canonicalize().unwrap();
            let (workspace, outside) = (root.join("workspace"), root.join("outside"));
            for folder in [&workspace, &outside] {
                fs::create_dir(folder).unwrap();
                fs::write(folder.join("file"), "text").unwrap();
            }
            Self { temp, workspace, outside }
        }

        fn link(&self, name: &str, target: impl AsRef<Path>) -> PathBuf {
            let link = self.workspace.join(name);
            symlink(target, &link).unwrap();
            link
        }

        fn permissions(&self) -> PermissionsContainer {
            grant(only(&self.workspace), only(&self.workspace))
        }
    }

    fn only(path: &Path) -> Access {
        Access::only([path.to_str().unwrap().to_owned()])
    }

    fn grant(read: Access, write: Access) -> PermissionsContainer {
        permissions(&Grant {
            read,
            write,
            net: Access::none(),
            run: Access::none(),
            ..Grant::default()
        })
        .unwrap()
    }

    /// The path that would be used, or why not.
    fn check(
        permissions: &PermissionsContainer,
        path: &Path,
        access: OpenAccessKind,
    ) -> Result<PathBuf, String> {
        let checked = permissions.check_open(Cow::Borrowed(path), access, None);
        checked.map(|path| path.into_owned_path()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_link_to_a_file_outside_is_not_read_or_written() {
        let folders = Folders::new();
        let link = folders.link("link", folders.outside.join("file"));
        let permissions = folders.permissions();
        for access in [Read, Write] {
            let error = check(&permissions, &link, access).unwrap_err();
            assert!(error.starts_with("no read access to "), "{error}");
            assert!(error.contains("outside/file\", where "), "{error}");
        }
    }

    #[test]
    fn a_link_that_leads_outside_can_itself_be_looked_at() {
        let folders = Folders::new();
        let link = folders.link("link", folders.outside.join("file"));
        assert_eq!(check(&folders.permissions(), &link, ReadNoFollow), Ok(link));
    }

    #[test]
    fn a_link_to_a_folder_outside_leads_to_nothing_in_it() {
        let folders = Folders::new();
        let file = folders.link("folder", &folders.outside).join("file");
        let permissions = folders.permissions();
        for access in [Read, ReadNoFollow, Write] {
            let error = check(&permissions, &file, access).unwrap_err();
            assert!(error.starts_with("Requires "), "{error}");
            // What the extension asked for, not where it led.
            assert!(error.contains("workspace/folder/file"), "{error}");
        }
    }

    #[test]
    fn removing_through_a_link_to_a_folder_outside_is_refused() {
        let folders = Folders::new();
        let file = folders.link("folder", &folders.outside).join("file");
        let permissions = folders.permissions();
        assert!(permissions.check_write(Cow::Borrowed(&file), "remove").is_err());
        assert!(permissions.check_write_partial(Cow::Borrowed(&file), "remove").is_err());
        let link = folders.workspace.join("folder");
        assert!(permissions.check_write_partial(Cow::Borrowed(&link), "remove").is_ok());
    }

    #[test]
    fn a_link_to_a_file_that_does_not_exist_yet_creates_nothing_outside() {
        let folders = Folders::new();
        let link = folders.link("link", folders.outside.join("new"));
        assert!(check(&folders.permissions(), &link, Write).is_err());
        let below = folders.link("folder", folders.outside.join("none")).join("a/b");
        assert!(check(&folders.permissions(), &below, Write).is_err());
    }

    #[test]
    fn links_to_links_are_followed_to_the_end() {
        let folders = Folders::new();
        folders.link("third", "../outside");
        folders.link("second", "third/file");
        let link = folders.link("first", folders.workspace.join("second"));
        assert!(check(&folders.permissions(), &link, Read).is_err());
    }

    #[test]
    fn a_path_with_too_many_links_is_refused() {
        let folders = Folders::new();
        let mut target = folders.outside.clone();
        for number in 0..50 {
            target = folders.link(&number.to_string(), &target);
        }
        let error = check(&folders.permissions(), &target.join("file"), ReadNoFollow).unwrap_err();
        assert!(error.contains("symbolic links"), "{error}");
    }

    #[test]
    fn links_that_stay_inside_are_followed() {
        let folders = Folders::new();
        fs::create_dir(folders.workspace.join("real")).unwrap();
        fs::write(folders.workspace.join("real/file"), "text").unwrap();
        let file = folders.link("folder", "real").join("file");
        let link = folders.link("link", &file);
        let permissions = folders.permissions();
        let real = folders.workspace.join("real/file");
        for access in [Read, Write] {
            assert_eq!(check(&permissions, &file, access), Ok(real.clone()));
            assert_eq!(check(&permissions, &link, access), Ok(real.clone()));
        }
        let new = folders.workspace.join("folder/new/file");
        assert_eq!(check(&permissions, &new, Write), Ok(folders.workspace.join("real/new/file")));
    }

    #[test]
    fn a_granted_path_may_be_or_contain_a_link() {
        let folders = Folders::new();
        let alias = folders.temp.path().join("alias");
        symlink(&folders.workspace, &alias).unwrap();
        let permissions = grant(only(&alias), only(&alias));
        for folder in [&alias, &folders.workspace] {
            assert!(check(&permissions, &folder.join("file"), Read).is_ok());
            assert!(check(&permissions, &folder.join("new"), Write).is_ok());
        }
        assert_eq!(check(&permissions, &alias, ReadNoFollow).map(drop), Ok(()));
        assert!(check(&permissions, &folders.outside.join("file"), Read).is_err());

        let below = only(&alias.join("file"));
        let permissions = grant(below.clone(), below);
        assert!(check(&permissions, &folders.workspace.join("file"), Read).is_ok());
        assert!(check(&permissions, &folders.workspace.join("other"), Read).is_err());
    }

    #[test]
    fn what_is_denied_is_not_reached_through_a_link() {
        let folders = Folders::new();
        let secret = folders.workspace.join("secret");
        fs::create_dir(&secret).unwrap();
        fs::write(secret.join("file"), "text").unwrap();
        let below = folders.link("folder", "secret").join("file");
        let link = folders.link("link", "secret/file");
        let denied = vec![secret.to_str().unwrap().to_owned()];
        for allow in [None, only(&folders.workspace).allow] {
            let access = Access { allow, deny: denied.clone() };
            let permissions = grant(access.clone(), access);
            for path in [&below, &link] {
                assert!(check(&permissions, path, Read).is_err());
                assert!(check(&permissions, path, Write).is_err());
            }
            assert!(check(&permissions, &folders.workspace.join("file"), Read).is_ok());
        }
    }

    #[test]
    fn the_folder_above_a_link_is_the_one_above_where_it_leads() {
        let folders = Folders::new();
        fs::create_dir(folders.outside.join("deep")).unwrap();
        let link = folders.link("link", folders.outside.join("deep"));
        assert!(check(&folders.permissions(), &link.join("../file"), Read).is_err());
        let file = folders.workspace.join("none/../file");
        assert_eq!(check(&folders.permissions(), &file, Read), Ok(folders.workspace.join("file")));
    }

    #[test]
    fn who_may_read_everything_reads_through_every_link() {
        let folders = Folders::new();
        let link = folders.link("link", folders.outside.join("file"));
        let below = folders.link("folder", &folders.outside).join("file");
        let permissions = grant(Access::all(), only(&folders.workspace));
        for path in [&link, &below] {
            assert_eq!(check(&permissions, path, Read), Ok(folders.outside.join("file")));
        }
        assert!(check(&permissions, &below, Write).is_err());
    }

    #[test]
    fn a_link_to_a_socket_outside_does_not_connect() {
        let folders = Folders::new();
        let socket = folders.outside.join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let link = folders.link("link", &socket);
        let access = OpenAccessKind::ReadWriteNoFollow;
        assert!(check(&folders.permissions(), &link, access).is_err());
    }
}
