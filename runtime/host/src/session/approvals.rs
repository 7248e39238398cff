//! Secrets that the user let an extension have, remembered outside of any repository.

use std::collections::BTreeMap;
use std::path::Path;

use crate::store::JsonStore;
use crate::store::StoreError;

/// The name of the file in the home folder.
const FILE_NAME: &str = "environment-approvals.json";

/// What was approved: by extension, the sets of names as the user saw them.
pub struct Approvals(JsonStore<BTreeMap<String, Vec<Vec<String>>>>);

impl Approvals {
    /// Those in a home folder.
    pub fn of(home: &Path) -> Self {
        Self(JsonStore::new(home, FILE_NAME))
    }

    /// Whether exactly these names were approved. A file that cannot be read approves nothing: the person is
    /// asked again.
    pub fn holds(&self, extension: &str, names: &[String]) -> bool {
        let remembered = self.0.read().unwrap_or_default();
        let sets = remembered.get(extension);
        sets.is_some_and(|sets| sets.iter().any(|set| *set == sorted(names)))
    }

    /// Remembers that these names were approved together.
    pub fn remember(&self, extension: &str, names: &[String]) -> Result<(), StoreError> {
        self.0.change(|remembered| {
            let sets = remembered.entry(extension.to_owned()).or_default();
            if !sets.contains(&sorted(names)) {
                sets.push(sorted(names));
            }
        })
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
