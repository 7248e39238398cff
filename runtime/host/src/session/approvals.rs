//! Secrets that the user let an extension have, remembered outside of any repository.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;

use super::files::replace;

/// The name of the file in the home folder.
const FILE_NAME: &str = "environment-approvals.json";

/// What was approved: by extension, the sets of names as the user saw them.
pub struct Approvals {
    path: PathBuf,
}

type Remembered = BTreeMap<String, Vec<Vec<String>>>;

impl Approvals {
    /// Those in a home folder.
    pub fn of(home: &Path) -> Self {
        Self { path: home.join(FILE_NAME) }
    }

    /// Whether exactly these names were approved.
    pub fn holds(&self, extension: &str, names: &[String]) -> bool {
        let remembered = self.read();
        let sets = remembered.get(extension);
        sets.is_some_and(|sets| sets.iter().any(|set| *set == sorted(names)))
    }

    /// Remembers that these names were approved together.
    pub fn remember(&self, extension: &str, names: &[String]) -> std::io::Result<()> {
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        // Another program may be remembering something at the same moment.
        let lock = std::fs::File::create(self.path.with_extension("lock"))?;
        lock.lock()?;
        let mut remembered = self.read();
        let sets = remembered.entry(extension.to_owned()).or_default();
        if !sets.contains(&sorted(names)) {
            sets.push(sorted(names));
        }
        replace(&self.path, &serde_json::to_vec_pretty(&remembered)?)
    }

    /// A file that cannot be read approves nothing: the person is asked again.
    fn read(&self) -> Remembered {
        let text = std::fs::read(&self.path).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }
}

fn sorted(names: &[String]) -> Vec<String> {
    let mut names = names.to_vec();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn only_the_exact_set_of_names_is_approved() {
        let temp = tempfile::tempdir().unwrap();
        let approvals = Approvals::of(temp.path());
        assert!(!approvals.holds("a", &names(&["X"])));
        approvals.remember("a", &names(&["Y", "X"])).unwrap();
        assert!(approvals.holds("a", &names(&["X", "Y"])));
        assert!(!approvals.holds("a", &names(&["X"])));
        assert!(!approvals.holds("a", &names(&["X", "Y", "Z"])));
        assert!(!approvals.holds("b", &names(&["X", "Y"])));
    }
}
