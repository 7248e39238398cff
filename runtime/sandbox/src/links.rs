//! The symbolic links that lead to a place.

use std::ffi::OsString;
use std::path::Component;
use std::path::Path;
use std::path::PathBuf;

/// As many links as Linux follows in one path.
const MOST_LINKS: usize = 40;

/// The links that a path leads through, the last one included, each by where it really is. What is not there leads nowhere.
pub fn on_the_way(path: &Path) -> Vec<PathBuf> {
    let mut links = Vec::new();
    let mut real = PathBuf::from("/");
    let mut ahead = steps(path);
    while let Some(step) = ahead.pop() {
        if step == ".." {
            real.pop();
            continue;
        }
        real.push(&step);
        let Ok(target) = std::fs::read_link(&real) else { continue };
        links.push(real.clone());
        if links.len() >= MOST_LINKS {
            break;
        }
        real.pop();
        if target.has_root() {
            real = PathBuf::from("/");
        }
        ahead.extend(steps(&target));
    }
    links
}

/// The names in a path, the first one at the end.
fn steps(path: &Path) -> Vec<OsString> {
    let names = path.components().rev().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        _ => None,
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_link_on_the_way_is_found_where_it_really_is() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        std::fs::create_dir_all(place.join("a/b")).unwrap();
        std::fs::write(place.join("a/b/file"), "").unwrap();
        symlink("a", place.join("first")).unwrap();
        symlink("b", place.join("a/second")).unwrap();
        symlink("../../first/second/file", place.join("a/b/third")).unwrap();
        let found = on_the_way(&place.join("first/second/third"));
        let names = ["first", "a/second", "a/b/third", "first", "a/second"];
        assert_eq!(found, names.map(|name| place.join(name)));
        assert!(on_the_way(&place.join("a/b/file")).is_empty());
    }

    #[test]
    fn a_link_to_nothing_is_one_and_a_circle_ends() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        symlink("absent", place.join("link")).unwrap();
        symlink("circle", place.join("circle")).unwrap();
        assert_eq!(on_the_way(&place.join("link/more")), [place.join("link")]);
        assert_eq!(on_the_way(&place.join("circle")).len(), MOST_LINKS);
    }
}
