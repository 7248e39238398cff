//! Which extension owns which tool.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;

use super::CheckedOffers;
use super::Key;
use super::id_of;
use crate::schema::Schema;

/// A name belongs to another extension.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the {what} is already taken by {owner} ({}) and refused to {newcomer} ({})",
    owner_path.display(),
    newcomer_path.display()
)]
pub struct Taken {
    /// What has that name, and the name.
    pub what: String,
    pub owner: String,
    pub owner_path: PathBuf,
    pub newcomer: String,
    pub newcomer_path: PathBuf,
}

/// Whose a tool is.
#[derive(Debug, Clone, PartialEq)]
struct Owner {
    key: Key,
    path: PathBuf,
    schema: Option<Schema>,
}

/// All tools of all extensions that serve, by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Names(BTreeMap<String, Owner>);

impl Names {
    /// Whether an extension may have the tools it offers. If one belongs to another extension that is not about to leave, the
    /// error names both files.
    pub fn check(
        &self,
        key: &Key,
        path: &Path,
        offers: &CheckedOffers,
        leaving: &BTreeSet<Key>,
    ) -> Result<(), Taken> {
        for tool in &offers.registration().tools {
            let owner = self.0.get(&tool.name);
            let is_free = |it: &&Owner| it.key == *key || leaving.contains(&it.key);
            if let Some(owner) = owner.filter(|owner| !is_free(owner)) {
                return Err(Taken {
                    what: format!("tool name \"{}\"", tool.name),
                    owner: id_of(&owner.key),
                    owner_path: owner.path.clone(),
                    newcomer: id_of(key),
                    newcomer_path: path.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Adds the tools of an extension, replacing those it had. If a name belongs to another extension, nothing changes and the
    /// error names both files.
    pub fn register(
        &mut self,
        key: &Key,
        path: &Path,
        offers: &CheckedOffers,
        leaving: &BTreeSet<Key>,
    ) -> Result<(), Taken> {
        self.check(key, path, offers, leaving)?;
        self.remove(key);
        for tool in &offers.registration().tools {
            let schema = offers.schema(&tool.name).cloned();
            let owner = Owner { key: key.clone(), path: path.to_owned(), schema };
            self.0.insert(tool.name.clone(), owner);
        }
        Ok(())
    }

    /// Removes an extension's tools.
    pub fn remove(&mut self, key: &Key) {
        self.0.retain(|_, owner| owner.key != *key);
    }

    /// The schema of a tool's arguments, if it has a valid one.
    pub fn schema(&self, tool: &str) -> Option<&Schema> {
        self.0.get(tool)?.schema.as_ref()
    }

    /// Every tool with its owner.
    #[cfg(test)]
    pub fn owners(&self) -> impl Iterator<Item = (&str, &Key)> {
        self.0.iter().map(|(name, owner)| (name.as_str(), &owner.key))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::discovery::Scope;

    fn key(name: &str) -> Key {
        (Scope::Project, name.to_owned(), Path::new("/").join(name))
    }

    fn tools(names: &[&str]) -> CheckedOffers {
        let tools: Vec<_> = names.iter().map(|name| json!({ "name": name })).collect();
        CheckedOffers::new(serde_json::from_value(json!({ "tools": tools })).unwrap())
    }

    fn owners(names: &Names) -> Vec<String> {
        names.owners().map(|(name, key)| format!("{name} {}", id_of(key))).collect()
    }

    #[test]
    fn a_taken_name_fails_the_newcomer_and_names_both_files() {
        let mut names = Names::default();
        let nobody = BTreeSet::new();
        names.register(&key("a"), Path::new("/a.mjs"), &tools(&["t"]), &nobody).unwrap();
        let newcomer = names.register(&key("b"), Path::new("/b.mjs"), &tools(&["u", "t"]), &nobody);
        let error = newcomer.unwrap_err().to_string();
        assert!(error.contains("/a.mjs") && error.contains("/b.mjs"), "{error}");
        assert_eq!(owners(&names), ["t project:a"]);
    }

    #[test]
    fn a_name_of_one_that_leaves_is_free() {
        let mut names = Names::default();
        names.register(&key("a"), Path::new("/a"), &tools(&["t"]), &BTreeSet::new()).unwrap();
        let leaving = BTreeSet::from([key("a")]);
        names.register(&key("b"), Path::new("/b"), &tools(&["t"]), &leaving).unwrap();
        assert_eq!(owners(&names), ["t project:b"]);
    }

    #[test]
    fn registering_again_replaces_what_the_extension_had() {
        let mut names = Names::default();
        let nobody = BTreeSet::new();
        names.register(&key("a"), Path::new("/a"), &tools(&["one", "two"]), &nobody).unwrap();
        names.register(&key("a"), Path::new("/a"), &tools(&["two", "three"]), &nobody).unwrap();
        assert_eq!(owners(&names), ["three project:a", "two project:a"]);
    }
}
