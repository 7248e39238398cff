//! Which extension owns which tool, and whether arguments fit.

use std::collections::HashMap;
use std::collections::HashSet;
use std::path::Path;
use std::path::PathBuf;

use serde_json::Value;

use crate::tool::ToolDeclaration;

/// A tool and its owner.
struct Entry {
    extension: String,
    path: PathBuf,
    validator: Option<jsonschema::Validator>,
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
        tools: &[ToolDeclaration],
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
        tools: &[ToolDeclaration],
        leaving: &HashSet<String>,
    ) -> Result<Vec<String>, String> {
        self.check(extension, path, tools, leaving)?;
        self.remove(extension);
        let mut warnings = Vec::new();
        for tool in tools {
            let validator = match tool.parameters.as_ref().map(jsonschema::validator_for) {
                Some(Ok(validator)) => Some(validator),
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

    /// How arguments differ from the tool's schema, one line each.
    pub fn mismatches(&self, tool: &str, args: &Value) -> Vec<String> {
        let Some(validator) = self.0.get(tool).and_then(|entry| entry.validator.as_ref()) else {
            return Vec::new();
        };
        problems(validator, args)
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

    fn tool(name: &str) -> ToolDeclaration {
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
        assert!(registry.mismatches("t", &json!({ "n": 1 })).is_empty());
        let mismatches = registry.mismatches("t", &json!({ "n": "one" }));
        assert!(mismatches[0].contains("/n") && mismatches[0].contains("number"), "{mismatches:?}");
        assert!(registry.mismatches("t", &json!({}))[0].contains("required"));
    }

    #[test]
    fn a_bad_schema_is_a_warning() {
        let mut registry = Registry::default();
        let mut bad = tool("t");
        bad.parameters = Some(json!({ "type": "nonsense" }));
        assert_eq!(
            registry.register("a", Path::new("/a"), &[bad], &HashSet::new()).unwrap().len(),
            1
        );
        assert!(registry.mismatches("t", &json!(1)).is_empty());
    }
}
