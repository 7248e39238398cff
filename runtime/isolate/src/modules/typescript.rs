//! `extension.ts`: types are removed, nothing is checked.

use deno_ast::EmitOptions;
use deno_ast::MediaType;
use deno_ast::ParseParams;
use deno_ast::SourceMapOption;
use deno_ast::TranspileModuleOptions;
use deno_ast::TranspileOptions;
use deno_ast::diagnostics::Diagnostic;
use deno_core::url::Url;
use deno_error::JsErrorBox;

/// JavaScript made of TypeScript, and the map that leads an error back to where it was written.
pub struct Transpiled {
    pub code: String,
    pub source_map: Vec<u8>,
}

/// Makes JavaScript of a TypeScript file.
pub fn transpile(url: &Url, text: String) -> Result<Transpiled, JsErrorBox> {
    let parsed = deno_ast::parse_program(ParseParams {
        specifier: url.clone(),
        text: text.into(),
        media_type: MediaType::from_specifier(url),
        capture_tokens: false,
        scope_analysis: false,
        maybe_syntax: None,
    })
    .map_err(|error| {
        let place = error.display_position();
        syntax_error(url, error.message(), place.line_number, place.column_number)
    })?;
    let emitted = parsed
        .transpile(
            &TranspileOptions::default(),
            &TranspileModuleOptions::default(),
            &EmitOptions { source_map: SourceMapOption::Separate, ..EmitOptions::default() },
        )
        .map_err(|error| JsErrorBox::new("SyntaxError", error.to_string()))?
        .into_source();
    Ok(Transpiled {
        code: emitted.text,
        source_map: emitted.source_map.unwrap_or_default().into_bytes(),
    })
}

/// A syntax error in the words of the engine, with its place at the end.
pub fn syntax_error(
    url: &Url,
    message: impl std::fmt::Display,
    line: usize,
    column: usize,
) -> JsErrorBox {
    JsErrorBox::new("SyntaxError", format!("{message}\n    at {url}:{line}:{column}"))
}
