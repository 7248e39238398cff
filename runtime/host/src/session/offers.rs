//! How much an extension may offer. Every declaration is kept, sent to agents and shown to models, so without limits
//! one extension could make a session useless.

use serde::Serialize;

use crate::extension::Registration;

/// The most tools of one extension; the same for commands, canvases and hooks. Models are at a loss long before.
pub const MAX_OFFERS: usize = 1_000;

/// The longest name, in bytes. Agents accept 64 to 128.
pub const MAX_NAME_BYTES: usize = 256;

/// The longest description of a tool or a command, in bytes.
pub const MAX_DESCRIPTION_BYTES: usize = 64 * 1024;

/// The longest declaration of a tool as JSON, with the schema of its parameters, in bytes.
pub const MAX_DECLARATION_BYTES: usize = 1024 * 1024;

/// An extension offers more than it may.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum OfferError {
    /// Too many of a kind.
    #[error("there are {count} {what}; the most an extension may have is {MAX_OFFERS}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        count: usize,
    },
    /// A name is too long.
    #[error(
        "the name of a {what} has {bytes} bytes; the longest may have {MAX_NAME_BYTES}: {start}..."
    )]
    LongName {
        /// Of what.
        what: &'static str,
        /// Its beginning.
        start: String,
        /// How long it is.
        bytes: usize,
    },
    /// A description is too long.
    #[error(
        "the description of {name} has {bytes} bytes; the longest may have {MAX_DESCRIPTION_BYTES}"
    )]
    LongDescription {
        /// Whose.
        name: String,
        /// How long it is.
        bytes: usize,
    },
    /// A declaration is too long.
    #[error(
        "the declaration of {name} has {bytes} bytes; the longest may have {MAX_DECLARATION_BYTES}"
    )]
    LongDeclaration {
        /// Whose.
        name: String,
        /// How long it is.
        bytes: usize,
    },
}

/// Whether an extension may offer all this.
pub fn check(offers: &Registration) -> Result<(), OfferError> {
    few("tools", offers.tools.len())?;
    few("commands", offers.commands.len())?;
    few("canvases", offers.canvases.len())?;
    few("hooks", offers.hooks.len())?;
    for tool in &offers.tools {
        short_name("tool", &tool.name)?;
        short_description(&tool.name, &tool.description)?;
        short_declaration(&tool.name, tool)?;
    }
    for command in &offers.commands {
        short_name("command", &command.name)?;
        short_declaration(&command.name, command)?;
    }
    for canvas in &offers.canvases {
        short_declaration("a canvas", canvas)?;
    }
    Ok(())
}

fn few(what: &'static str, count: usize) -> Result<(), OfferError> {
    if count > MAX_OFFERS { Err(OfferError::TooMany { what, count }) } else { Ok(()) }
}

fn short_name(what: &'static str, name: &str) -> Result<(), OfferError> {
    if name.len() <= MAX_NAME_BYTES {
        return Ok(());
    }
    let start = name.chars().take(40).collect();
    Err(OfferError::LongName { what, start, bytes: name.len() })
}

fn short_description(name: &str, description: &str) -> Result<(), OfferError> {
    let bytes = description.len();
    if bytes <= MAX_DESCRIPTION_BYTES {
        return Ok(());
    }
    Err(OfferError::LongDescription { name: name.to_owned(), bytes })
}

fn short_declaration(name: &str, declaration: &impl Serialize) -> Result<(), OfferError> {
    // Plain data always has a JSON text.
    let bytes = serde_json::to_vec(declaration).map_or(0, |text| text.len());
    if bytes <= MAX_DECLARATION_BYTES {
        return Ok(());
    }
    Err(OfferError::LongDeclaration { name: name.to_owned(), bytes })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with_tools(tools: serde_json::Value) -> Registration {
        serde_json::from_value(json!({ "tools": tools })).unwrap()
    }

    #[test]
    fn what_is_usual_is_allowed() {
        let tools: Vec<_> = (0..MAX_OFFERS).map(|it| json!({ "name": format!("t{it}") })).collect();
        assert_eq!(check(&with_tools(tools.into())), Ok(()));
        let name = "n".repeat(MAX_NAME_BYTES);
        let description = "d".repeat(MAX_DESCRIPTION_BYTES);
        let tool = json!({ "name": name, "description": description });
        assert_eq!(check(&with_tools(json!([tool]))), Ok(()));
    }

    #[test]
    fn the_number_of_tools_has_a_limit() {
        let tools = vec![json!({ "name": "t" }); MAX_OFFERS + 1];
        let error = check(&with_tools(tools.into())).unwrap_err();
        assert_eq!(error, OfferError::TooMany { what: "tools", count: MAX_OFFERS + 1 });
    }

    #[test]
    fn names_descriptions_and_schemas_have_a_limit() {
        let long_name = json!({ "name": "n".repeat(MAX_NAME_BYTES + 1) });
        let error = check(&with_tools(json!([long_name]))).unwrap_err();
        assert!(matches!(error, OfferError::LongName { what: "tool", .. }), "{error}");
        let description = "d".repeat(MAX_DESCRIPTION_BYTES + 1);
        let error = check(&with_tools(json!([{ "name": "t", "description": description }])));
        assert!(matches!(error, Err(OfferError::LongDescription { .. })), "{error:?}");
        let schema = json!({ "enum": ["x".repeat(MAX_DECLARATION_BYTES)] });
        let error = check(&with_tools(json!([{ "name": "t", "parameters": schema }])));
        assert!(matches!(error, Err(OfferError::LongDeclaration { .. })), "{error:?}");
    }
}
