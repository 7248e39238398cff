//! What an extension offers, as it is kept: with its schemas compiled.

use std::collections::BTreeMap;

use crate::extension::Registration;
use crate::schema::Schema;

/// What an extension passed to `joinSession`, with the schemas of its tools.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckedOffers {
    registration: Registration,
    /// By tool.
    schemas: BTreeMap<String, Schema>,
    /// What its author should know.
    warnings: Vec<String>,
}

impl CheckedOffers {
    /// Compiles the schemas, which may take a while. One that is none is a warning.
    pub fn new(registration: Registration) -> Self {
        let (mut schemas, mut warnings) = (BTreeMap::new(), Vec::new());
        for tool in &registration.tools {
            let name = &tool.name;
            match tool.parameters.as_ref().map(Schema::new) {
                Some(Ok(schema)) => drop(schemas.insert(name.clone(), schema)),
                Some(Err(error)) => warnings.push(format!(
                    "the parameters of \"{name}\" are not valid JSON Schema: {error}"
                )),
                None => {}
            }
        }
        Self { registration, schemas, warnings }
    }

    pub fn registration(&self) -> &Registration {
        &self.registration
    }

    pub(super) fn schema(&self, tool: &str) -> Option<&Schema> {
        self.schemas.get(tool)
    }

    pub(super) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Takes tools away.
    pub(super) fn give_up_tools(&mut self, names: &[String]) {
        self.registration.tools.retain(|tool| !names.contains(&tool.name));
        self.schemas.retain(|tool, _| !names.contains(tool));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_bad_schema_is_a_warning_and_the_tool_is_called_without_a_check() {
        let tools = json!([
            { "name": "good", "parameters": { "type": "object" } },
            { "name": "bad", "parameters": { "type": "nonsense" } },
            { "name": "none" },
        ]);
        let offers = CheckedOffers::new(serde_json::from_value(json!({ "tools": tools })).unwrap());
        assert_eq!(offers.warnings().len(), 1);
        assert!(offers.warnings()[0].contains("\"bad\""), "{:?}", offers.warnings());
        assert!(offers.schema("good").is_some());
        assert!(offers.schema("bad").is_none() && offers.schema("none").is_none());
    }
}
