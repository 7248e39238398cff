//! Where a workspace keeps what other programs run: git, editors, shells and agents. Whoever may write there can have anything
//! run outside the sandbox, by somebody who opens the folder or commits in it.

mod git;

use std::path::Path;
use std::path::PathBuf;

use walkdir::WalkDir;

/// The places by name, relative to a folder.
const NAMES: [&str; 49] = [
    ".git",
    ".github/extensions",
    ".github/workflows",
    ".github/hooks",
    ".githooks",
    ".husky",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    ".lefthook.yml",
    // Shells and what sets up their environment.
    ".envrc",
    ".mise.toml",
    "mise.toml",
    ".mise",
    ".cargo/config.toml",
    ".cargo/config",
    ".devcontainer",
    ".devcontainer.json",
    // Editors.
    ".vscode",
    ".idea",
    ".zed",
    ".fleet",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".vimrc",
    ".dir-locals.el",
    ".sublime-project",
    // Agents.
    ".claude",
    ".codex",
    ".gemini",
    ".qwen",
    ".cursor",
    ".copilot",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".pi",
    ".mcp.json",
    ".windsurf",
    ".kiro",
    ".amp",
    ".agents",
    ".crush.json",
    "crush.json",
    ".goosehints",
    ".continue",
    ".roo",
    ".cline",
    ".aider.conf.yml",
];

/// How deep below the workspace such places are looked for. A package of a repository with many is seldom deeper.
const MAX_DEPTH: usize = 3;

/// How many files and folders are looked at: a load of an extension waits for it, some milliseconds for so many.
const MAX_ENTRIES: usize = 4_000;

/// How many such places below the workspace are protected. Each is a mount, of some ten microseconds, at every load.
const MAX_NESTED: usize = 64;

/// Folders with other people's files, many of them, in which nobody works.
const SKIPPED: [&str; 4] = ["node_modules", "target", ".venv", "vendor"];

/// What is not to be written in a workspace, and what lies in it and may be all the same.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PickedUp {
    pub frozen: Vec<PathBuf>,
    pub open: Vec<PathBuf>,
}

/// Every such place of a workspace, whether it exists or not, and those further down that exist. A folder of git that the user
/// names to be written is writable, except for what git runs of it.
pub fn of(workspace: &Path, named: &[PathBuf]) -> PickedUp {
    let mut places = PickedUp::default();
    let at_the_top = NAMES.iter().map(|name| workspace.join(name));
    for place in at_the_top.chain(further_down(workspace)) {
        if place.ends_with(".git") {
            git::protect(workspace, &place, named, &mut places);
        } else {
            places.frozen.push(place);
        }
    }
    places
}

/// Places of these names below the folders of the workspace, without those at the top.
fn further_down(workspace: &Path) -> Vec<PathBuf> {
    let is_one = |name: &str| NAMES.iter().any(|it| it.split('/').next() == Some(name));
    let walk = WalkDir::new(workspace).min_depth(1).max_depth(MAX_DEPTH).into_iter();
    let walk = walk.filter_entry(|entry| {
        let name = entry.file_name().to_str().unwrap_or_default();
        let above = entry.path().parent().and_then(Path::file_name).and_then(|it| it.to_str());
        // What is in such a place is protected with it.
        !SKIPPED.contains(&name) && !above.is_some_and(is_one)
    });
    let mut found = Vec::new();
    for entry in walk.take(MAX_ENTRIES).filter_map(Result::ok) {
        if entry.depth() < 2 || !entry.file_name().to_str().is_some_and(is_one) {
            continue;
        }
        let Some(folder) = entry.path().parent() else { continue };
        let places = NAMES.iter().map(|name| folder.join(name));
        found.extend(places.filter(|it| it.starts_with(entry.path()) && it.exists()));
        if found.len() >= MAX_NESTED {
            break;
        }
    }
    found.truncate(MAX_NESTED);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: PathBuf, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn places_further_down_are_found_as_far_as_is_looked() {
        let temp = tempfile::tempdir().unwrap();
        let at = |path: &str| temp.path().join(path);
        for path in ["a/.vscode/tasks.json", "a/b/.envrc", "a/b/c/.envrc", "node_modules/p/.envrc"]
        {
            write(at(path), "");
        }
        write(at("a/.github/workflows/x.yml"), "");
        let found = further_down(temp.path());
        for path in ["a/.vscode", "a/b/.envrc", "a/.github/workflows"] {
            assert!(found.contains(&at(path)), "{path}: {found:?}");
        }
        assert_eq!(found.len(), 3, "{found:?}");
    }

    #[test]
    fn only_so_many_places_are_protected() {
        let temp = tempfile::tempdir().unwrap();
        for number in 0..MAX_NESTED + 1 {
            write(temp.path().join(format!("{number}/.envrc")), "");
        }
        assert_eq!(further_down(temp.path()).len(), MAX_NESTED);
    }
}
