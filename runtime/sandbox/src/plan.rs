//! A grant as the kernel needs it: real paths, and what is denied inside what is allowed.

use std::io;
use std::path::Path;
use std::path::PathBuf;

use tenon_protocol::message::Access;
use tenon_protocol::message::Guarded;

use crate::Request;
use crate::error::SandboxError;
use crate::links;
use crate::programs;

/// What programs are made of. They are read and started from here, whatever the grant lets be read.
pub const PROGRAMS: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix",
    // Programs of NixOS, and what they are linked with.
    "/run/current-system",
];

/// What programs read of the system: settings, themselves and the machine. Landlock keeps what is secret
/// of other processes in `/proc` (environment, memory, root and open files) from all that are confined;
/// their names and arguments remain visible. Not `/dev`: the disks and other terminals are there.
pub const PROGRAMS_READ: &[&str] = &["/etc", "/proc", "/sys"];

/// What is secret of that. Only root could read it.
const SECRET_SETTINGS: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/ssh",
    "/etc/krb5.keytab",
];

/// What the resolver and TLS read. `/etc/resolv.conf` is often a link into one of the folders, where the
/// file is replaced now and then: a rule on the file would be lost.
pub const NETWORK_READS: &[&str] = &[
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/protocols",
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/usr/share/ca-certificates",
    "/run/systemd/resolve",
    "/run/NetworkManager",
    "/run/resolvconf",
];

/// How much of the network is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// None of it.
    Nothing,
    /// Some hosts; which, is checked where names are resolved.
    SomeHosts,
    /// All of it.
    Everything,
}

/// What is to be enforced. All paths are real ones: no link is in them.
#[derive(Debug)]
pub struct Plan {
    /// Readable trees.
    pub read: Vec<PathBuf>,
    /// Writable trees.
    pub write: Vec<PathBuf>,
    /// Whether anything can be written at all.
    pub writes: bool,
    /// Readable whatever is denied: the extension's folder and what the runtime needs.
    pub kept: Vec<PathBuf>,
    /// Inside a readable tree, but not to be read.
    pub hidden: Vec<PathBuf>,
    /// Inside a writable tree, but not to be written.
    pub frozen: Vec<PathBuf>,
    /// Inside something frozen, and written all the same.
    pub reopened: Vec<PathBuf>,
    /// Denied to be written, and not there: what would be made first to get there. The folders above stay where they are.
    pub absent: Vec<PathBuf>,
    /// Links to what is closed that could be replaced, to have something else closed the next time.
    pub links: Vec<PathBuf>,
    /// Programs that are named by path, or found where the system's are not.
    pub programs: Vec<PathBuf>,
    /// Whether programs may be started.
    pub run: bool,
    /// The network.
    pub network: Network,
    /// What the kernel cannot enforce.
    pub notes: Vec<String>,
}

impl Plan {
    pub fn of(request: &Request<'_>) -> Result<Self, SandboxError> {
        let grant = request.grant;
        let mut notes = Vec::new();
        let folder = request.folder.canonicalize().map_err(|source| SandboxError::Unresolved {
            path: request.folder.display().to_string(),
            source,
        })?;
        let needed = request.readable.iter().filter_map(|path| path.canonicalize().ok());
        let kept: Vec<_> = std::iter::once(folder).chain(needed).collect();
        let run = !matches!(&grant.run.allow, Some(names) if names.is_empty());

        let mut absent = Vec::new();
        let Guarded { frozen: guarded, open, closed } = &grant.guarded;
        let unread = grant.read.deny.iter().chain(closed).map(Path::new);
        let mut unreadable = denied(unread.clone(), "reading", &mut absent);
        notes.extend(absent.into_iter().map(|(_, note)| note));
        let mut read = allowed(&grant.read, &unreadable, "read", &mut notes);
        // What cannot be read cannot be started, nor copied or linked to be started under another name.
        if run {
            unreadable.extend(denied_programs(&grant.run.deny));
            unreadable.extend(secret_settings(&read));
        }
        read.extend(kept.iter().cloned());

        let protected = request.protected.iter().map(PathBuf::as_path);
        let unwritable = grant.write.deny.iter().map(Path::new).chain(protected);
        let mut absent = Vec::new();
        let mut frozen = denied(unwritable.clone(), "writing", &mut absent);
        let mut write = allowed(&grant.write, &frozen, "write", &mut notes);
        let guarded = guarded.iter().map(Path::new);
        let places = denied(guarded.clone(), "writing", &mut absent);
        let granted = write.iter().filter(|path| inside(path, &places)).cloned();
        let open = open.iter().filter_map(|path| Path::new(path).canonicalize().ok());
        let mut reopened: Vec<_> =
            granted.chain(open.filter(|path| inside(path, &write))).collect();
        write.retain(|path| !places.contains(path));
        frozen.extend(places);
        // What cannot be made need not be denied.
        absent.retain(|(path, _)| can_be_made(path, &write, &frozen));
        let (absent, said): (Vec<_>, Vec<_>) = absent.into_iter().unzip();
        let absent = absent.iter().filter_map(|path| first_missing(path)).collect();
        notes.extend(said);
        let mut links = replaceable_links(unwritable.chain(guarded).chain(unread), &write);

        let implied = if run { [PROGRAMS, PROGRAMS_READ].concat() } else { Vec::new() };
        let implied: Vec<_> =
            implied.iter().filter_map(|path| Path::new(path).canonicalize().ok()).collect();
        let hidden: Vec<_> = unreadable
            .into_iter()
            .filter(|path| {
                if kept.contains(path) {
                    notes.push(format!("{} is readable: the runtime needs it", path.display()));
                    return false;
                }
                inside(path, &read) || inside(path, &implied)
            })
            .collect();
        frozen.retain(|path| inside(path, &write));
        reopened.retain(|path| inside(path, &frozen));
        let is_writable = |link: &Path| !inside(link, &frozen) || inside(link, &reopened);
        links.retain(|link| is_writable(link) && !inside(link, &hidden));

        Ok(Self {
            writes: !matches!(&grant.write.allow, Some(paths) if paths.is_empty()),
            programs: if run { allowed_programs(&grant.run) } else { Vec::new() },
            network: match &grant.net {
                Access { allow: None, deny } if deny.is_empty() => Network::Everything,
                Access { allow: Some(hosts), .. } if hosts.is_empty() => Network::Nothing,
                _ => Network::SomeHosts,
            },
            read,
            write,
            kept,
            hidden,
            frozen,
            reopened,
            absent,
            links,
            run,
            notes,
        })
    }

    /// Whether something is denied inside what is allowed, which takes mounts.
    pub fn needs_mounts(&self) -> bool {
        let above_absent = || self.absent.iter().flat_map(|path| self.movable_above(path));
        !self.hidden.is_empty()
            || !self.frozen.is_empty()
            || !self.links.is_empty()
            || above_absent().next().is_some()
    }

    /// Whether only some folders are writable.
    pub fn limits_writing(&self) -> bool {
        !self.write.iter().any(|path| path == Path::new("/"))
    }

    /// The folders above a closed path that the process could rename, to put others in their place.
    pub fn movable_above<'a>(&'a self, closed: &'a Path) -> impl Iterator<Item = &'a Path> {
        let inside = |above: &&Path| {
            self.write.iter().any(|root| above.starts_with(root) && *above != root.as_path())
        };
        closed.ancestors().skip(1).filter(inside)
    }
}

/// Whether a path is one of the trees or inside one.
fn inside(path: &Path, trees: &[PathBuf]) -> bool {
    trees.iter().any(|tree| path.starts_with(tree))
}

/// The trees that are allowed, without those that are denied as a whole.
fn allowed(
    access: &Access,
    denied: &[PathBuf],
    what: &str,
    notes: &mut Vec<String>,
) -> Vec<PathBuf> {
    let Some(paths) = &access.allow else {
        let root = PathBuf::from("/");
        return if denied.contains(&root) { Vec::new() } else { vec![root] };
    };
    let mut trees = Vec::with_capacity(paths.len());
    for path in paths {
        match Path::new(path).canonicalize() {
            Ok(real) if inside(&real, denied) => {}
            Ok(real) => trees.push(real),
            // No rule can be on what does not exist: it stays closed when it is made.
            Err(error) => notes.push(format!("allowing to {what} {path} has no effect: {error}")),
        }
    }
    trees
}

/// Whether something that is not there could be made where the writable trees are.
fn can_be_made(path: &Path, writable: &[PathBuf], frozen: &[PathBuf]) -> bool {
    first_missing(path).is_some_and(|first| inside(&first, writable) && !inside(&first, frozen))
}

/// What is to be made first to get to what is not there, by where it will really be.
fn first_missing(path: &Path) -> Option<PathBuf> {
    let mut name = path.file_name();
    for above in path.ancestors().skip(1) {
        if let Ok(there) = above.canonicalize() {
            return Some(there.join(name?));
        }
        name = above.file_name();
    }
    None
}

/// The real paths of what is denied and exists; and what does not, with a note.
fn denied<'a>(
    paths: impl Iterator<Item = &'a Path>,
    what: &str,
    absent: &mut Vec<(PathBuf, String)>,
) -> Vec<PathBuf> {
    let mut real = Vec::new();
    for path in paths {
        match path.canonicalize() {
            Ok(path) => real.push(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let note = format!("{what} {} is not denied: it does not exist", path.display());
                absent.push((path.to_owned(), note));
            }
            Err(error) => {
                let note = format!("{what} {} is not denied: {error}", path.display());
                absent.push((path.to_owned(), note));
            }
        }
    }
    real
}

/// The links by which paths lead somewhere, where the process may replace them.
fn replaceable_links<'a>(
    paths: impl Iterator<Item = &'a Path>,
    writable: &[PathBuf],
) -> Vec<PathBuf> {
    let mut found: Vec<_> = paths.flat_map(links::on_the_way).collect();
    found.retain(|link| link.parent().is_some_and(|folder| inside(folder, writable)));
    found.sort();
    found.dedup();
    found
}

/// The settings that programs are not to read, unless the grant names them or what they are in.
fn secret_settings(read: &[PathBuf]) -> Vec<PathBuf> {
    // SAFETY: cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return Vec::new();
    }
    let there = SECRET_SETTINGS.iter().filter_map(|path| Path::new(path).canonicalize().ok());
    there.filter(|path| !inside(path, read)).collect()
}

/// The files of denied programs, with their other names where programs are.
fn denied_programs(names: &[String]) -> Vec<PathBuf> {
    let path = std::env::var("PATH").ok();
    let mut files = programs::named(names, path.as_deref());
    for index in 0..files.len() {
        files.extend(programs::other_names(&files[index]));
    }
    files
}

/// Where the named programs are, for those that are not among the system's own.
fn allowed_programs(run: &Access) -> Vec<PathBuf> {
    let folders: Vec<_> = std::env::var_os("PATH").iter().flat_map(std::env::split_paths).collect();
    let names = run.allow.iter().flatten();
    names
        .filter_map(|name| {
            if name.contains('/') {
                return Path::new(name).canonicalize().ok();
            }
            folders.iter().find_map(|folder| folder.join(name).canonicalize().ok())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use tenon_protocol::message::Grant;

    use super::*;
    use crate::Mode;

    fn plan(grant: &Grant, folder: &Path) -> Plan {
        let request =
            Request { grant, folder, readable: &[], protected: &[], mode: Mode::Required };
        Plan::of(&request).unwrap()
    }

    fn text(path: &Path) -> String {
        path.display().to_string()
    }

    #[test]
    fn what_is_denied_as_a_whole_is_not_allowed_at_all() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        std::fs::create_dir(place.join("inner")).unwrap();
        let write =
            Access { deny: vec![text(&place)], ..Access::only([text(&place.join("inner"))]) };
        let plan = plan(&Grant { write, ..Grant::default() }, &place);
        assert!(plan.write.is_empty());
        assert!(!plan.needs_mounts());
    }

    #[test]
    fn folders_above_a_frozen_path_are_movable_up_to_the_allowed_one() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let hooks = place.join(".git/hooks");
        std::fs::create_dir_all(&hooks).unwrap();
        let write = Access { deny: vec![text(&hooks)], ..Access::only([text(&place)]) };
        let plan = plan(&Grant { write, ..Grant::default() }, &place);
        assert_eq!(plan.frozen, std::slice::from_ref(&hooks));
        assert_eq!(plan.movable_above(&hooks).collect::<Vec<_>>(), [place.join(".git")]);
    }

    #[test]
    fn what_does_not_exist_is_noted_and_neither_allowed_nor_denied() {
        let place = tempfile::tempdir().unwrap();
        let absent = text(&place.path().join("absent"));
        let write = Access { deny: vec![absent.clone()], ..Access::only([absent]) };
        let plan = plan(&Grant { write, ..Grant::default() }, place.path());
        assert!(plan.write.is_empty() && plan.frozen.is_empty());
        assert_eq!(plan.notes.len(), 1);
        assert!(plan.writes && plan.limits_writing());
    }

    #[test]
    fn what_does_not_exist_is_noted_where_it_could_be_made() {
        let place = tempfile::tempdir().unwrap();
        let inside = place.path().join("inside");
        std::fs::create_dir(&inside).unwrap();
        let (within, beside) = (inside.join("a/b"), place.path().join("beside"));
        let write =
            Access { deny: vec![text(&within), text(&beside)], ..Access::only([text(&inside)]) };
        let plan = plan(&Grant { write, ..Grant::default() }, place.path());
        assert_eq!(plan.notes.len(), 1, "{:?}", plan.notes);
        assert!(plan.notes[0].contains("inside/a/b"), "{:?}", plan.notes);
    }
}
