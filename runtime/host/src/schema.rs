//! JSON schemas that extensions declare.

use std::sync::Arc;

use serde_json::Value;

/// A compiled schema. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Schema(Arc<jsonschema::Validator>);

/// A value is not a JSON schema.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SchemaError(String);

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Schema {
    /// Compiles a schema, which takes long if it is large: not to be done under a lock.
    pub fn new(schema: &Value) -> Result<Self, SchemaError> {
        let validator =
            jsonschema::validator_for(schema).map_err(|error| SchemaError(error.to_string()))?;
        Ok(Self(Arc::new(validator)))
    }

    /// How a value differs from the schema, one line each.
    pub fn problems(&self, value: &Value) -> Vec<String> {
        let describe = |error: jsonschema::ValidationError<'_>| {
            let place = error.instance_path().to_string();
            if place.is_empty() { error.to_string() } else { format!("{place}: {error}") }
        };
        self.0.iter_errors(value).map(describe).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_that_do_not_fit_are_described() {
        let number = json!({ "type": "number" });
        let schema = json!({ "type": "object", "properties": { "n": number }, "required": ["n"] });
        let schema = Schema::new(&schema).unwrap();
        assert!(schema.problems(&json!({ "n": 1 })).is_empty());
        let problems = schema.problems(&json!({ "n": "one" }));
        assert!(problems[0].contains("/n") && problems[0].contains("number"), "{problems:?}");
        assert!(schema.problems(&json!({}))[0].contains("required"));
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        let error = Schema::new(&json!({ "type": "nonsense" })).unwrap_err();
        assert!(error.to_string().contains("nonsense"), "{error}");
    }
}
