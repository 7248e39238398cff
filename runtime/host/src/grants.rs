//! What an extension may touch: profiles, and lists that add to or take away from them.

use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Serialize;
use tenon_protocol::message::Access;
use tenon_protocol::message::Grant;

use crate::config::ExtensionConfig;

/// A usual set of permissions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Everything the user may do.
    #[default]
    Full,
    /// Files inside the workspace, the session's folder and the extension's own data folder; no network,
    /// no subprocess.
    Workspace,
    /// Its own files, to be loaded, and nothing else.
    None,
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

impl ExtensionConfig {
    /// The permissions that result from the profile and the lists.
    pub fn grant(&self, folders: GrantFolders<'_>) -> Grant {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let mut grant = match self.profile.unwrap_or_default() {
            Profile::Full => Grant::default(),
            Profile::Workspace => {
                let inside = [path(folders.workspace), path(folders.data), path(folders.session)];
                let readable = inside.iter().cloned().chain([path(folders.extension)]);
                Grant {
                    read: Access::only(readable),
                    write: Access {
                        deny: picked_up(&folders).iter().map(|place| path(place)).collect(),
                        ..Access::only(inside.clone())
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
    fn workspace_reads_and_writes_inside_and_runs_nothing() {
        let config = ExtensionConfig {
            profile: Some(Profile::Workspace),
            allow_run: vec!["git".into()],
            ..ExtensionConfig::default()
        };
        let grant = config.grant(folders());
        assert_eq!(grant.write.allow.unwrap(), ["/w", "/d", "/s"]);
        assert_eq!(grant.net, Access::none());
        assert_eq!(grant.run.allow.unwrap(), ["git"]);
    }
}
