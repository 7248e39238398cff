//! What git runs of a repository: hooks, commands in its configuration, and files by which it finds another configuration.

use std::collections::HashSet;
use std::path::Path;
use std::path::PathBuf;

use walkdir::WalkDir;

use super::PickedUp;

/// What a folder of git keeps that never makes anything run. The index is not among them: git replaces it by a file beside it,
/// and whoever may make files beside it may make any. Nor are the logs, to which git appends: a link in the place of one leads it to
/// a file that something else runs.
const HARMLESS: [&str; 2] = ["objects", "refs"];

/// What may be written in a folder of git in any case, and is never looked into: of many files.
const NOT_LOOKED_INTO: [&str; 3] = ["objects", "refs", "logs"];

/// What is protected in a folder of git that the user wants to be written.
const HARMFUL: [&str; 11] = [
    "hooks",
    "config",
    "config.worktree",
    "commondir",
    "gitdir",
    "modules",
    "worktrees",
    "info",
    "sequencer",
    "rebase-merge",
    "rebase-apply",
];

/// The last parts of keys of which git runs the value, or what it finds there.
const RUNS: [&str; 22] = [
    "hookspath",
    "fsmonitor",
    "sshcommand",
    "editor",
    "pager",
    "askpass",
    "gitproxy",
    "alternaterefscommand",
    "program",
    "helper",
    "external",
    "command",
    "textconv",
    "clean",
    "smudge",
    "process",
    "driver",
    "cmd",
    "packobjectshook",
    "difffilter",
    "templatedir",
    "defaultkeycommand",
];

/// Sections of which every value is a command.
const COMMANDS: [&str; 2] = ["alias", "pager"];

/// How much of a configuration is read, in bytes. One of a person has some kilobytes.
const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

/// How many configurations are read for one repository; git follows ten includes.
const MAX_CONFIGS: usize = 16;

/// How deep in a folder of git links are looked for: hooks are in a folder of it.
const LINK_DEPTH: usize = 2;

/// How many entries are looked at for links, in one folder of git with what its links lead to.
const MAX_ENTRIES: usize = 1_000;

/// How many submodules are looked at.
const MAX_SUBMODULES: usize = 64;

/// Protects a repository: `place` is its `.git`, a folder, or a file that names one.
pub fn protect(workspace: &Path, place: &Path, named: &[PathBuf], places: &mut PickedUp) {
    let folder = if place.is_file() {
        places.frozen.push(place.to_owned());
        match text(place).and_then(|text| named_folder(&text, place)) {
            Some(folder) => folder,
            None => return,
        }
    } else {
        place.to_owned()
    };
    let shared = text(&folder.join("commondir")).map(|text| folder.join(text.trim()));
    let folders: Vec<_> = std::iter::once(folder).chain(shared).collect();
    for folder in &folders {
        // To protect what the workspace lies in would take all of it away.
        if real(workspace).starts_with(real(folder)) {
            continue;
        }
        if named.contains(folder) {
            places.frozen.extend(HARMFUL.iter().map(|name| folder.join(name)));
        } else {
            places.frozen.push(folder.clone());
            places.open.extend(HARMLESS.iter().map(|name| folder.join(name)));
        }
    }
    let configs = ["config", "config.worktree"];
    let configs = folders.iter().flat_map(|folder| configs.map(|name| folder.join(name)));
    let root = place.parent().unwrap_or(workspace);
    let inside = Inside::of(workspace, root);
    places.frozen.extend(referred_to(&inside, root, configs.collect()));
    places.frozen.extend(folders.iter().flat_map(|folder| links_out(&inside, folder)));
    places.frozen.extend(empty_submodules(root));
}

/// The links in a folder of git, and behind such links, that lead to something in the workspace, or to nothing yet: what they
/// lead to is protected, whoever is asked for the link.
fn links_out(inside: &Inside, folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    let mut entered = HashSet::new();
    let mut left = MAX_ENTRIES;
    while let Some(place) = folders.pop() {
        // A link may lead to where it lies.
        if !entered.insert(real(&place)) {
            continue;
        }
        let walk = WalkDir::new(&place).min_depth(1).max_depth(LINK_DEPTH).into_iter();
        let walk = walk.filter_entry(|entry| {
            let is_named = |name: &&str| entry.file_name() == *name;
            entry.depth() != 1 || place != folder || !NOT_LOOKED_INTO.iter().any(is_named)
        });
        for entry in walk.filter_map(Result::ok).take(left) {
            left -= 1;
            if !entry.path_is_symlink() {
                continue;
            }
            let link = entry.into_path();
            let Ok(target) = link.canonicalize() else {
                found.push(link);
                continue;
            };
            if inside.contains(&target) {
                if target.is_dir() {
                    folders.push(link.clone());
                }
                found.push(link);
            }
        }
    }
    found
}

/// The folders of submodules that git has not filled yet. It takes each for a repository once there is a `.git` in it.
fn empty_submodules(root: &Path) -> Vec<PathBuf> {
    let text = text(&root.join(".gitmodules")).unwrap_or_default();
    let paths = settings(&text)
        .into_iter()
        .filter(|it| it.section == "submodule" && it.key == "path")
        .map(|it| root.join(it.value));
    let is_empty =
        |path: &PathBuf| path.read_dir().is_ok_and(|mut entries| entries.next().is_none());
    paths.take(MAX_SUBMODULES).filter(is_empty).collect()
}

/// What lies in the workspace, and is not around the repository: to protect that would take all of it away.
struct Inside {
    workspace: PathBuf,
    root: PathBuf,
}

impl Inside {
    fn of(workspace: &Path, root: &Path) -> Self {
        Self { workspace: real(workspace), root: real(root) }
    }

    /// Whether something is there, by its path without links.
    fn contains(&self, real: &Path) -> bool {
        real.starts_with(&self.workspace) && !self.root.starts_with(real)
    }

    /// Whether a path leads there.
    fn is_reached_by(&self, path: &Path) -> bool {
        path.canonicalize().is_ok_and(|real| self.contains(&real))
    }
}

/// The folder that a file `.git` names.
fn named_folder(text: &str, file: &Path) -> Option<PathBuf> {
    let path = text.lines().next()?.strip_prefix("gitdir:")?.trim();
    Some(file.parent()?.join(path))
}

/// What configurations refer to inside the workspace: commands, folders of hooks, and other configurations.
fn referred_to(inside: &Inside, root: &Path, mut configs: Vec<PathBuf>) -> Vec<PathBuf> {
    let is_inside = |path: &Path| inside.is_reached_by(path);
    let mut found = Vec::new();
    let mut next = 0;
    while next < configs.len().min(MAX_CONFIGS) {
        let config = configs[next].clone();
        next += 1;
        let Some(text) = text(&config) else { continue };
        for Setting { section, key, value } in settings(&text) {
            if key == "path" && ["include", "includeif"].contains(&section.as_str()) {
                let path = config.parent().unwrap_or(root).join(expanded(&value));
                if is_inside(&path) {
                    found.push(path.clone());
                }
                if !configs.contains(&path) {
                    configs.push(path);
                }
            } else if RUNS.contains(&key.as_str()) || COMMANDS.contains(&section.as_str()) {
                let paths = paths(&value).map(|path| root.join(expanded(path)));
                found.extend(paths.filter(|path| is_inside(path)));
            }
        }
    }
    found
}

/// One line of a configuration, with section and key in small letters.
struct Setting {
    section: String,
    key: String,
    value: String,
}

/// The settings of a configuration. A value that goes on in another line is seen as far as its first.
fn settings(text: &str) -> Vec<Setting> {
    let mut section = String::new();
    let mut all = Vec::new();
    for line in text.lines() {
        let mut line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            let name = header.split([' ', '\t', '"', ']', '.']).next().unwrap_or_default();
            section = name.to_lowercase();
            // A setting may follow in the same line.
            line = header.rsplit_once(']').map_or("", |(_, rest)| rest.trim());
        }
        if let Some((key, value)) = line.split_once('=') {
            let key = key.trim().to_lowercase();
            let value = value.replace(['"', '\\'], "").trim().to_owned();
            all.push(Setting { section: section.clone(), key, value });
        }
    }
    all
}

/// What may be paths of a command: the whole of it, and those words that look like some.
fn paths(value: &str) -> impl Iterator<Item = &str> {
    let words = value.split([' ', '\t', ';', '&', '|', '!', '\'', '(', ')']);
    std::iter::once(value).chain(words.filter(|word| word.contains(['/', '.'])))
}

/// A path in a configuration, with the person's home in it.
fn expanded(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(below), Some(home)) => Path::new(&home).join(below),
        _ => PathBuf::from(path),
    }
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// A file of git, if it is one and no pipe or the like, which would not end.
fn text(path: &Path) -> Option<String> {
    let metadata = path.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > MAX_CONFIG_BYTES {
        return None;
    }
    Some(String::from_utf8_lossy(&std::fs::read(path).ok()?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Repository(tempfile::TempDir);

    impl Repository {
        fn with(files: &[(&str, &str)]) -> Self {
            let temp = tempfile::tempdir().unwrap();
            for (path, text) in files {
                let path = temp.path().join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            Self(temp)
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        fn protected(&self, place: &str, named: &[PathBuf]) -> PickedUp {
            let mut places = PickedUp::default();
            protect(self.0.path(), &self.at(place), named, &mut places);
            places
        }
    }

    #[test]
    fn all_of_a_repository_is_protected_but_what_runs_nothing() {
        let repository = Repository::with(&[(".git/config", "")]);
        let places = repository.protected(".git", &[]);
        assert_eq!(places.frozen, [repository.at(".git")]);
        assert_eq!(places.open, [repository.at(".git/objects"), repository.at(".git/refs")]);
    }

    #[test]
    fn a_repository_that_is_named_is_writable_but_for_what_it_runs() {
        let repository = Repository::with(&[(".git/config", "")]);
        let places = repository.protected(".git", &[repository.at(".git")]);
        assert!(places.frozen.contains(&repository.at(".git/hooks")));
        assert!(places.frozen.contains(&repository.at(".git/commondir")));
        assert!(!places.frozen.contains(&repository.at(".git")));
    }

    #[test]
    fn a_file_in_the_place_of_a_repository_and_what_it_names_are_protected() {
        let repository = Repository::with(&[
            (".git", "gitdir: real/worktrees/a\n"),
            ("real/worktrees/a/commondir", "../..\n"),
            ("real/config", "[core]\n\thooksPath = hooks-of-ours\n"),
            ("hooks-of-ours/pre-commit", ""),
        ]);
        let frozen = repository.protected(".git", &[]).frozen;
        let real: Vec<_> = frozen.iter().map(|path| real(path)).collect();
        for path in [".git", "real/worktrees/a", "real", "hooks-of-ours"] {
            assert!(real.contains(&super::real(&repository.at(path))), "{path}: {real:?}");
        }
    }

    #[test]
    fn a_workspace_inside_its_repository_is_not_lost() {
        let repository = Repository::with(&[(".git", "gitdir: .\n")]);
        assert_eq!(repository.protected(".git", &[]).frozen, [repository.at(".git")]);
    }

    #[test]
    fn what_links_in_a_repository_lead_to_is_protected() {
        let repository = Repository::with(&[
            (".git/config", ""),
            (".git/hooks/kept", ""),
            (".git/objects/ab/cd", ""),
            ("tools/pre-push", ""),
            ("hooks/pre-commit", ""),
            ("shared/deep/post-merge", ""),
            ("sources/main.c", ""),
        ]);
        let link = |target: &str, place: &str| {
            std::os::unix::fs::symlink(repository.at(target), repository.at(place)).unwrap();
        };
        link("tools/pre-push", ".git/hooks/pre-push");
        link("hooks", ".git/more-hooks");
        // Behind a link there may be another.
        link("shared/deep", "hooks/deep");
        link("not-there-yet", ".git/hooks/post-commit");
        link("sources", ".git/objects/link");
        // To where it came from.
        link(".git/more-hooks", "hooks/again");
        // To all of the workspace.
        link("", ".git/hooks/root");
        let outside = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), repository.at(".git/outside")).unwrap();
        let mut links = repository.protected(".git", &[]).frozen.split_off(1);
        links.sort();
        let expected = [
            ".git/hooks/post-commit",
            ".git/hooks/pre-push",
            ".git/more-hooks",
            ".git/more-hooks/again",
            ".git/more-hooks/deep",
        ];
        assert_eq!(links, expected.map(|path| repository.at(path)));
    }

    #[test]
    fn only_so_many_entries_are_looked_at_for_links() {
        let repository = Repository::with(&[(".git/config", ""), ("target", "")]);
        for number in 0..MAX_ENTRIES + 10 {
            let link = repository.at(&format!(".git/{number}"));
            std::os::unix::fs::symlink(repository.at("target"), link).unwrap();
        }
        let links = repository.protected(".git", &[]).frozen.len() - 1;
        assert!((MAX_ENTRIES - 10..=MAX_ENTRIES).contains(&links), "{links}");
    }

    #[test]
    fn folders_of_submodules_are_protected_as_long_as_they_are_empty() {
        let modules = "[submodule \"a\"]\n\tpath = libs/a\n\turl = ../a\n\
                       [submodule \"b\"]\n\tpath = libs/b\n[submodule \"c\"]\n\tpath = libs/c\n";
        let repository = Repository::with(&[
            (".git/config", ""),
            (".gitmodules", modules),
            ("libs/b/.git", "gitdir: ../../.git/modules/b\n"),
        ]);
        std::fs::create_dir(repository.at("libs/a")).unwrap();
        let frozen = repository.protected(".git", &[]).frozen;
        assert_eq!(frozen, [repository.at(".git"), repository.at("libs/a")]);
    }

    #[test]
    fn only_so_many_submodules_are_looked_at() {
        let names = 0..MAX_SUBMODULES + 1;
        let modules: String =
            names.clone().map(|it| format!("[submodule \"{it}\"]\npath = m{it}\n")).collect();
        let repository = Repository::with(&[(".git/config", ""), (".gitmodules", &modules)]);
        names.for_each(|it| std::fs::create_dir(repository.at(&format!("m{it}"))).unwrap());
        let places = repository.protected(".git", &[]);
        assert_eq!(places.frozen.len(), 1 + MAX_SUBMODULES);
    }

    #[test]
    fn what_a_configuration_runs_in_the_workspace_is_protected() {
        let config = "[core]\n\thooksPath = .hooks\n\tfsmonitor = \"tools/watch --fast\"\n\
                      [Include] path = ../shared.conf\n[user]\n\tname = notes.txt\n";
        let repository = Repository::with(&[
            (".git/config", config),
            (".hooks/pre-commit", ""),
            ("tools/watch", ""),
            ("notes.txt", ""),
            (
                "shared.conf",
                "[alias]\n\tx = !sh run.sh\n[includeIf \"gitdir:/\"]\n\tpath = more.conf\n",
            ),
            ("run.sh", ""),
            ("more.conf", "[filter \"f\"]\n\tclean = sh -c './clean.sh %f'\n"),
            ("clean.sh", ""),
        ]);
        let frozen = repository.protected(".git", &[]).frozen;
        let frozen: Vec<_> = frozen.iter().map(|path| real(path)).collect();
        for path in [".hooks", "tools/watch", "shared.conf", "run.sh", "more.conf", "clean.sh"] {
            assert!(frozen.contains(&real(&repository.at(path))), "{path}: {frozen:?}");
        }
        assert!(!frozen.contains(&real(&repository.at("notes.txt"))));
    }
}
