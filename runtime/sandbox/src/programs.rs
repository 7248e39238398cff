//! The files of programs that a grant names.

use std::path::Path;
use std::path::PathBuf;

/// Where programs usually are. An extension may look in other places than those of its `PATH`.
const USUAL: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Every file that one of the names stands for, without links: a path for itself, a name for all programs of that name in
/// the folders of `path` and the usual ones.
pub fn named(names: &[String], path: Option<&str>) -> Vec<PathBuf> {
    let folders: Vec<_> = path
        .iter()
        .flat_map(|path| std::env::split_paths(*path))
        .chain(USUAL.iter().map(PathBuf::from))
        .collect();
    let mut found = Vec::new();
    for name in names {
        let mut add = |file: &Path| {
            if let Ok(file) = file.canonicalize()
                && !found.contains(&file)
            {
                found.push(file);
            }
        };
        if name.contains('/') {
            add(Path::new(name));
        } else {
            folders.iter().for_each(|folder| add(&folder.join(name)));
        }
    }
    found
}

/// The other names that a program's file has in its own folder.
#[cfg(target_os = "linux")]
pub fn other_names(program: &Path) -> Vec<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let (Ok(own), Some(folder)) = (program.metadata(), program.parent()) else { return Vec::new() };
    if own.nlink() < 2 {
        return Vec::new();
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_same = |path: &PathBuf| {
        let it = path.symlink_metadata();
        path != program && it.is_ok_and(|it| (it.dev(), it.ino()) == (own.dev(), own.ino()))
    };
    entries.map(|entry| entry.path()).filter(is_same).collect()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_every_program_of_that_name() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().canonicalize().unwrap();
        let (one, two) = (place.join("one"), place.join("two"));
        for folder in [&one, &two] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("tenon-test-tool"), "").unwrap();
        }
        std::os::unix::fs::symlink(one.join("tenon-test-tool"), place.join("link")).unwrap();
        let path = format!("{}:{}", one.display(), two.display());
        let both = vec![one.join("tenon-test-tool"), two.join("tenon-test-tool")];
        assert_eq!(named(&["tenon-test-tool".to_owned()], Some(&path)), both);
        let link = place.join("link").display().to_string();
        assert_eq!(named(&[link], None), both[..1]);
        assert!(named(&["tenon-test-tool".to_owned()], None).is_empty());
    }
}
