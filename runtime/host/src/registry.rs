//! Which extension owns which tool, and whether arguments fit.

use std::collections::HashMap;
use std::collections::HashSet;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use crate::tool::SharedTool;

/// A tool and its owner.
struct Entry {
    extension: String,
    path: PathBuf,
    validator: Option<Arc<jsonschema::Validator>>,
}

/// All tools of all running extensions, by name.
#[derive(Default)]
pub struct Registry(HashMap<String, Entry>);

impl Registry {
    /// Whether an extension may have tools of these names. If one belongs to another extension that is not
    /// about to leave, the error names both files.
    pub fn check(
        &self,
        extension: &str,
        path: &Path,
        tools: &[SharedTool],
        leaving: &HashSet<String>,
    ) -> Result<(), String> {
        for tool in tools {
            let owner = self.0.get(&tool.name);
            let is_free =
                |it: &&Entry| it.extension == extension || leaving.contains(&it.extension);
            if let Some(owner) = owner.filter(|owner| !is_free(owner)) {
                return Err(format!(
                    "the tool name \"{}\" is already taken by {} ({}) and refused to {} ({})",
                    tool.name,
                    owner.extension,
                    owner.path.display(),
                    extension,
                    path.display(),
                ));
            }
        }
        Ok(())
    }

    /// Adds the tools of an extension, replacing those it had. If a name belongs to another
    /// extension, nothing changes and the error names both files.
    pub fn register(
        &mut self,
        extension: &str,
        path: &Path,
        tools: &[SharedTool],
        leaving: &HashSet<String>,
    ) -> Result<Vec<String>, String> {
        self.check(extension, path, tools, leaving)?;
        self.remove(extension);
        let mut warnings = Vec::new();
        for tool in tools {
            let validator = match tool.parameters.as_ref().map(jsonschema::validator_for) {
                Some(Ok(validator)) => Some(Arc::new(validator)),
                Some(Err(error)) => {
                    let name = &tool.name;
                    warnings.push(format!(
                        "the parameters of \"{name}\" are not valid JSON Schema: {error}"
                    ));
                    None
                }
                None => None,
            };
            let entry = Entry { extension: extension.to_owned(), path: path.to_owned(), validator };
            self.0.insert(tool.name.clone(), entry);
        }
        Ok(warnings)
    }

    /// Removes an extension's tools.
    pub fn remove(&mut self, extension: &str) {
        self.0.retain(|_, entry| entry.extension != extension);
    }

    /// What checks the arguments of a tool. That can take long, and is not for the lock that the registry is under.
    pub fn validator(&self, tool: &str) -> Option<Arc<jsonschema::Validator>> {
        self.0.get(tool)?.validator.clone()
    }
}

/// How a value differs from its schema, one line each.
pub fn problems(validator: &jsonschema::Validator, value: &Value) -> Vec<String> {
    let describe = |error: jsonschema::ValidationError<'_>| {
        let place = error.instance_path().to_string();
        if place.is_empty() { error.to_string() } else { format!("{place}: {error}") }
    };
    validator.iter_errors(value).map(describe).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str) -> SharedTool {
        serde_json::from_value(json!({
            "name": name,
            "parameters": { "type": "object", "properties": { "n": { "type": "number" } }, "required": ["n"] },
        }))
        .unwrap()
    }

    fn names(registry: &Registry) -> Vec<String> {
        let mut names: Vec<_> =
            registry.0.iter().map(|(name, entry)| format!("{name} {}", entry.extension)).collect();
        names.sort();
        names
    }

    #[test]
    fn a_taken_name_fails_the_newcomer_and_names_both_files() {
        let mut registry = Registry::default();
        registry.register("project:a", Path::new("/a.mjs"), &[tool("t")], &HashSet::new()).unwrap();
        let error = registry
            .register("project:b", Path::new("/b.mjs"), &[tool("u"), tool("t")], &HashSet::new())
            .unwrap_err();
        assert!(error.contains("/a.mjs") && error.contains("/b.mjs"), "{error}");
        assert_eq!(names(&registry), ["t project:a"]);
    }

    #[test]
    fn registering_again_replaces_what_the_extension_had() {
        let mut registry = Registry::default();
        registry
            .register("a", Path::new("/a"), &[tool("one"), tool("two")], &HashSet::new())
            .unwrap();
        registry
            .register("a", Path::new("/a"), &[tool("two"), tool("three")], &HashSet::new())
            .unwrap();
        assert_eq!(names(&registry), ["three a", "two a"]);
    }

    #[test]
    fn arguments_that_do_not_fit_are_described() {
        let mut registry = Registry::default();
        registry.register("a", Path::new("/a"), &[tool("t")], &HashSet::new()).unwrap();
        let validator = registry.validator("t").unwrap();
        assert!(problems(&validator, &json!({ "n": 1 })).is_empty());
        let mismatches = problems(&validator, &json!({ "n": "one" }));
        assert!(mismatches[0].contains("/n") && mismatches[0].contains("number"), "{mismatches:?}");
        assert!(problems(&validator, &json!({}))[0].contains("required"));
    }

    #[test]
    fn a_bad_schema_is_a_warning() {
        let mut registry = Registry::default();
        let bad = json!({ "name": "t", "parameters": { "type": "nonsense" } });
        let bad = [serde_json::from_value(bad).unwrap()];
        assert_eq!(
            registry.register("a", Path::new("/a"), &bad, &HashSet::new()).unwrap().len(),
            1
        );
        assert!(registry.validator("t").is_none());
    }
}
