//! What an extension may touch: profiles, and lists that add to or take away from them.

use std::path::Path;
use std::path::PathBuf;

use tenon_protocol::message::Access;
use tenon_protocol::message::Grant;
use tenon_protocol::message::Guarded;

use crate::approvals;
use crate::config;
use crate::config::ExtensionConfig;
use crate::config::Profile;
use crate::layout::FILES;
use crate::layout::SOCKETS;
use crate::picked_up;
use crate::picked_up::PickedUp;
use crate::switches;
use crate::trust;

/// What decides in Tenon's home, whether it is there already or not.
const STORES: [&str; 5] =
    [config::FILE_NAME, trust::FILE_NAME, switches::FILE_NAME, approvals::FILE_NAME, "extensions"];

/// How many entries of each folder of Tenon's home are denied by name; the kernel denies all of them.
const MAX_BESIDE: usize = 256;

/// The folders that profiles speak of.
#[derive(Debug, Clone, Copy)]
pub struct GrantFolders<'a> {
    /// The workspace.
    pub workspace: &'a Path,
    /// The extension's own data folder.
    pub data: &'a Path,
    /// The session's folder, `session.workspacePath`. Only the files in it are written.
    pub session: &'a Path,
    /// Tenon's home.
    pub home: &'a Path,
    /// The person's home, which `~` means.
    pub user: Option<&'a Path>,
    /// The extension's own files.
    pub extension: &'a Path,
    /// Where extensions are looked for. Whoever may write there can have anything run.
    pub extensions: &'a [PathBuf],
}

impl GrantFolders<'_> {
    /// A path of a list as it is meant everywhere: from the person's home, or from the workspace.
    fn resolved(&self, path: &str) -> String {
        let home = |below: &str| self.user.map(|user| user.join(below));
        let path = match path.strip_prefix('~') {
            Some("") => home(""),
            // What begins with another slash would be a path of its own.
            Some(below) => {
                below.strip_prefix('/').map(|it| it.trim_start_matches('/')).and_then(home)
            }
            None => None,
        }
        .unwrap_or_else(|| self.workspace.join(path));
        // Without `.` and doubled slashes.
        text(&path.components().collect::<PathBuf>())
    }

    /// A program of a list: a name stays one.
    fn resolved_program(&self, program: &str) -> String {
        if program.contains('/') { self.resolved(program) } else { program.to_owned() }
    }

    /// What belongs to the extension and its session, and may be written.
    fn own(&self) -> [PathBuf; 2] {
        [self.data.to_owned(), self.session.join(FILES)]
    }

    /// Tenon's own folder, for the kernel: not written, but what is the extension's own; and its sockets not reached.
    fn guarded(&self) -> Guarded {
        let around = self.workspace.starts_with(self.home) && self.workspace != self.home;
        let workspace = around.then(|| self.workspace.to_owned());
        Guarded {
            frozen: vec![text(self.home)],
            open: self.own().into_iter().chain(workspace).map(|path| text(&path)).collect(),
            closed: SOCKETS.iter().map(|name| text(&self.home.join(name))).collect(),
        }
    }

    /// The same by name, for the checks in Rust, where what is denied cannot contain what is allowed: everything beside the
    /// folders that lead to what may be written.
    fn in_home(&self) -> Vec<PathBuf> {
        let kept: Vec<_> = self.own().into_iter().chain([self.workspace.to_owned()]).collect();
        let leads_on = |path: &Path| kept.iter().any(|kept| kept.starts_with(path));
        let mut denied: Vec<_> =
            STORES.iter().chain(&SOCKETS).map(|it| self.home.join(it)).collect();
        let mut folders = vec![self.home.to_owned()];
        while let Some(folder) = folders.pop() {
            let entries = std::fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok);
            for path in entries.map(|entry| entry.path()).take(MAX_BESIDE) {
                match (leads_on(&path), kept.contains(&path)) {
                    (_, true) => {}
                    (true, false) => folders.push(path),
                    (false, false) if denied.contains(&path) => {}
                    (false, false) => denied.push(path),
                }
            }
        }
        denied
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

impl ExtensionConfig {
    /// Whether an extension may do less than the user: its profile is not `full`, or something is denied to it.
    pub fn is_restricted(&self) -> bool {
        let denied =
            [&self.deny_read, &self.deny_write, &self.deny_net, &self.deny_run, &self.deny_env];
        self.profile.unwrap_or_default() != Profile::Full || denied.iter().any(|it| !it.is_empty())
    }

    /// Whether an extension with this configuration may do nothing that one with the other may not. In doubt it is not.
    pub fn is_within(&self, other: &Self) -> bool {
        let (mine, its) = (self.profile.unwrap_or_default(), other.profile.unwrap_or_default());
        let all_of = |names: &[String], among: &[String]| names.iter().all(|it| among.contains(it));
        let lists = [
            (&self.allow_read, &self.deny_read, &other.allow_read, &other.deny_read),
            (&self.allow_write, &self.deny_write, &other.allow_write, &other.deny_write),
            (&self.allow_net, &self.deny_net, &other.allow_net, &other.deny_net),
            (&self.allow_run, &self.deny_run, &other.allow_run, &other.deny_run),
        ];
        mine.breadth() <= its.breadth()
            && lists.iter().all(|(allow, deny, its_allow, its_deny)| {
                let allowed = its == Profile::Full || all_of(allow, its_allow);
                let nothing = mine == Profile::None && allow.is_empty();
                allowed && (nothing || all_of(its_deny, deny))
            })
            && all_of(&self.allow_env, &other.allow_env)
            && (mine == Profile::None || all_of(&other.deny_env, &self.deny_env))
    }

    /// The permissions that result from the profile and the lists.
    pub fn grant(&self, folders: GrantFolders<'_>) -> Grant {
        let paths = |paths: &[String]| paths.iter().map(|it| folders.resolved(it)).collect();
        let programs =
            |names: &[String]| names.iter().map(|it| folders.resolved_program(it)).collect();
        let mut grant = match self.profile.unwrap_or_default() {
            Profile::Full => Grant::default(),
            Profile::Workspace => self.of_workspace(&folders),
            Profile::None => Grant {
                read: Access::only([text(folders.extension)]),
                write: Access::none(),
                net: Access::none(),
                run: Access::none(),
                guarded: Guarded::default(),
            },
        };
        let changes: [(&mut Access, Vec<String>, Vec<String>); 4] = [
            (&mut grant.read, paths(&self.allow_read), paths(&self.deny_read)),
            (&mut grant.write, paths(&self.allow_write), paths(&self.deny_write)),
            (&mut grant.net, self.allow_net.clone(), self.deny_net.clone()),
            (&mut grant.run, programs(&self.allow_run), programs(&self.deny_run)),
        ];
        for (access, allow, deny) in changes {
            if let Some(names) = &mut access.allow {
                names.extend(allow);
            }
            access.deny.extend(deny);
        }
        if self.is_restricted() {
            let guarded = folders.guarded();
            grant.guarded.frozen.extend(guarded.frozen);
            grant.guarded.open.extend(guarded.open);
            grant.guarded.closed.extend(guarded.closed);
            let around = |path: &String| folders.home.starts_with(path);
            if grant.write.allow.as_ref().is_none_or(|paths| paths.iter().any(around)) {
                grant.write.deny.extend(folders.in_home().iter().map(|path| text(path)));
            }
        }
        grant
    }

    fn of_workspace(&self, folders: &GrantFolders<'_>) -> Grant {
        let inside = folders.own().into_iter().chain([folders.workspace.to_owned()]);
        let inside: Vec<_> = inside.map(|path| text(&path)).collect();
        let more = [folders.session, folders.extension].map(text);
        let named: Vec<_> =
            self.allow_write.iter().map(|path| PathBuf::from(folders.resolved(path))).collect();
        let PickedUp { frozen, open } = picked_up::of(folders.workspace, &named);
        let deny = folders.extensions.iter().chain(&frozen).map(|place| text(place)).collect();
        Grant {
            read: Access::only(inside.iter().cloned().chain(more)),
            write: Access { deny, ..Access::only(inside) },
            net: Access::none(),
            run: Access::none(),
            guarded: Guarded {
                open: open.iter().map(|it| text(it)).collect(),
                ..Guarded::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders() -> GrantFolders<'static> {
        GrantFolders {
            workspace: Path::new("/w"),
            data: Path::new("/d"),
            session: Path::new("/h/session-state/s"),
            home: Path::new("/h"),
            user: Some(Path::new("/u")),
            extension: Path::new("/e"),
            extensions: &[],
        }
    }

    #[test]
    fn full_is_everything_minus_what_is_denied() {
        let config =
            ExtensionConfig { deny_net: vec!["example.org".into()], ..ExtensionConfig::default() };
        let grant = config.grant(folders());
        assert_eq!(grant.read, Access::all());
        assert_eq!(grant.net.allow, None);
        assert_eq!(grant.net.deny, ["example.org"]);
    }

    #[test]
    fn a_configuration_is_within_those_that_permit_as_much() {
        let of = |text: &str| toml::from_str::<ExtensionConfig>(text).unwrap();
        let (full, workspace, none) =
            (of(""), of("profile = \"workspace\""), of("profile = \"none\""));
        assert!(!full.is_restricted());
        for restricted in [&workspace, &none, &of("deny-net = [\"a\"]")] {
            assert!(restricted.is_restricted());
            assert!(!full.is_within(restricted));
            assert!(restricted.is_within(restricted));
            assert!(restricted.is_within(&full));
        }
        assert!(none.is_within(&workspace));
        assert!(!workspace.is_within(&none));
        for more in ["allow-net = [\"a\"]", "allow-read = [\"/a\"]", "allow-env = [\"A_TOKEN\"]"] {
            let more = of(&format!("profile = \"workspace\"\n{more}"));
            assert!(!more.is_within(&workspace));
            assert!(workspace.is_within(&more));
        }
        for denied in ["deny-write = [\"a\"]", "deny-run = [\"a\"]", "deny-env = [\"A\"]"] {
            let less = of(&format!("profile = \"workspace\"\n{denied}"));
            assert!(!workspace.is_within(&less));
            assert!(less.is_within(&workspace));
        }
    }

    #[test]
    fn workspace_reads_and_writes_inside_and_runs_nothing() {
        let config = ExtensionConfig {
            profile: Some(Profile::Workspace),
            allow_run: vec!["git".into()],
            ..ExtensionConfig::default()
        };
        let grant = config.grant(folders());
        assert_eq!(grant.write.allow.unwrap(), ["/d", "/h/session-state/s/files", "/w"]);
        assert!(grant.read.allow.unwrap().contains(&"/h/session-state/s".to_owned()));
        assert_eq!(grant.guarded.frozen, ["/h"]);
        assert_eq!(grant.guarded.closed, ["/h/run", "/h/zygote"]);
        assert_eq!(grant.net, Access::none());
        assert_eq!(grant.run.allow.unwrap(), ["git"]);
    }

    #[test]
    fn paths_are_resolved_against_the_workspace_and_the_home() {
        let all = ["sec", "./a/../b", "~/keys", "~", "~//keys", "/abs//x/."];
        let all = all.map(str::to_owned).to_vec();
        let config = ExtensionConfig {
            deny_read: all.clone(),
            allow_write: all,
            deny_run: vec!["git".into(), "bin/tool".into()],
            profile: Some(Profile::Workspace),
            ..ExtensionConfig::default()
        };
        let grant = config.grant(folders());
        let resolved = ["/w/sec", "/w/a/../b", "/u/keys", "/u", "/u/keys", "/abs/x"];
        assert_eq!(grant.read.deny, resolved);
        assert!(grant.write.allow.unwrap().ends_with(&resolved.map(str::to_owned)));
        assert_eq!(grant.run.deny, ["git", "/w/bin/tool"]);
    }

    #[test]
    fn what_is_restricted_writes_nothing_in_the_home_but_its_own() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path();
        let session = home.join("session-state/s");
        let data = home.join("extension-data/user/e");
        for folder in [
            session.join("files"),
            data.clone(),
            home.join("logs"),
            home.join("session-state/other"),
        ] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(session.join("events.jsonl"), "").unwrap();
        let folders = GrantFolders { home, session: &session, data: &data, ..folders() };
        let full = ExtensionConfig { deny_net: vec!["a".into()], ..ExtensionConfig::default() };
        let grant = full.grant(folders);
        assert_eq!(grant.guarded.frozen, [text(home)]);
        assert_eq!(grant.guarded.open, [text(&data), text(&session.join("files"))]);
        let denied = |path: &str| grant.write.deny.contains(&text(&home.join(path)));
        for path in
            ["trust.json", "logs", "run", "session-state/other", "session-state/s/events.jsonl"]
        {
            assert!(denied(path), "{path}: {:?}", grant.write.deny);
        }
        for path in [
            "",
            "session-state",
            "session-state/s",
            "session-state/s/files",
            "extension-data/user/e",
        ] {
            assert!(!denied(path), "{path}");
        }
        assert_eq!(ExtensionConfig::default().grant(folders), Grant::default());
        // A home in the workspace is as any other.
        let workspace =
            ExtensionConfig { profile: Some(Profile::Workspace), ..ExtensionConfig::default() };
        let grant =
            workspace.grant(GrantFolders { workspace: temp.path().parent().unwrap(), ..folders });
        assert!(grant.write.deny.contains(&text(&home.join("config.toml"))));
    }
}
