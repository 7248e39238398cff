//! What an extension may touch: profiles, and lists that add to or take away from them.

use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Serialize;
use tenon_protocol::message::Access;
use tenon_protocol::message::Grant;

use crate::config::ExtensionConfig;
use crate::session::FILES;
use crate::session::PLAN;

/// A usual set of permissions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Everything the user may do.
    #[default]
    Full,
    /// Files inside the workspace, the session's folder and the extension's own data folder; of the session's folder it
    /// writes files and plan only. No network, no subprocess.
    Workspace,
    /// Its own files, to be loaded, and nothing else.
    None,
}

impl Profile {
    /// A profile with a larger one permits all that one with a smaller one does.
    fn breadth(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Workspace => 1,
            Self::Full => 2,
        }
    }
}

/// The folders that profiles speak of.
#[derive(Debug, Clone, Copy)]
pub struct GrantFolders<'a> {
    /// The workspace.
    pub workspace: &'a Path,
    /// The extension's own data folder.
    pub data: &'a Path,
    /// The session's folder, `session.workspacePath`.
    pub session: &'a Path,
    /// The extension's own files.
    pub extension: &'a Path,
    /// Where extensions are looked for. Whoever may write there can have anything run.
    pub extensions: &'a [PathBuf],
}

/// Where a workspace keeps what other programs run, relative to it: git, editors, shells and agents. Whoever may write there
/// can have anything run outside the sandbox.
const PICKED_UP: [&str; 13] = [
    ".git/hooks",
    ".git/config",
    ".github/extensions",
    ".github/workflows",
    ".husky",
    ".envrc",
    ".vscode",
    ".idea",
    ".claude",
    ".codex",
    ".gemini",
    ".qwen",
    ".mcp.json",
];

/// Every place from which code is picked up.
fn picked_up(folders: &GrantFolders<'_>) -> Vec<PathBuf> {
    let of_workspace = PICKED_UP.iter().map(|place| folders.workspace.join(place));
    folders.extensions.iter().cloned().chain(of_workspace).collect()
}

/// What an extension may write in the session's folder. The rest is the session's own record, which says how it goes on.
fn written_of(session: &Path) -> [String; 2] {
    [FILES, PLAN].map(|name| session.join(name).to_string_lossy().into_owned())
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
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let mut grant = match self.profile.unwrap_or_default() {
            Profile::Full => Grant::default(),
            Profile::Workspace => {
                let inside = [path(folders.workspace), path(folders.data)];
                let more = [path(folders.session), path(folders.extension)];
                let readable = inside.iter().cloned().chain(more);
                Grant {
                    read: Access::only(readable),
                    write: Access {
                        deny: picked_up(&folders).iter().map(|place| path(place)).collect(),
                        ..Access::only(inside.iter().cloned().chain(written_of(folders.session)))
                    },
                    net: Access::none(),
                    run: Access::none(),
                }
            }
            Profile::None => Grant {
                read: Access::only([path(folders.extension)]),
                write: Access::none(),
                net: Access::none(),
                run: Access::none(),
            },
        };
        let changes = [
            (&mut grant.read, &self.allow_read, &self.deny_read),
            (&mut grant.write, &self.allow_write, &self.deny_write),
            (&mut grant.net, &self.allow_net, &self.deny_net),
            (&mut grant.run, &self.allow_run, &self.deny_run),
        ];
        for (access, allow, deny) in changes {
            if let Some(names) = &mut access.allow {
                names.extend(allow.iter().cloned());
            }
            access.deny.extend(deny.iter().cloned());
        }
        grant
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders() -> GrantFolders<'static> {
        GrantFolders {
            workspace: Path::new("/w"),
            data: Path::new("/d"),
            session: Path::new("/s"),
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
        assert_eq!(grant.write.allow.unwrap(), ["/w", "/d", "/s/files", "/s/plan.md"]);
        assert_eq!(grant.net, Access::none());
        assert_eq!(grant.run.allow.unwrap(), ["git"]);
    }
}
