//! CommonJS files imported from ES modules.
//!
//! `require` itself is the platform's. What is missing for `import x, { y } from "./file.cjs"` is an
//! ES module with the names that the file exports; Deno's translator writes it, and asks us what a
//! file exports.

use std::borrow::Cow;
use std::sync::Arc;

use deno_ast::MediaType;
use deno_ast::ParseParams;
use deno_ast::ParsedSource;
use deno_ast::diagnostics::Diagnostic;
use deno_core::url::Url;
use deno_error::JsErrorBox;
use deno_resolver::npm::CreateInNpmPkgCheckerOptions;
use deno_resolver::npm::DenoInNpmPackageChecker;
use deno_resolver::npm::NpmResolver;
use node_resolver::DenoIsBuiltInNodeModuleChecker;
use node_resolver::analyze::CjsAnalysis;
use node_resolver::analyze::CjsAnalysisExports;
use node_resolver::analyze::CjsCodeAnalyzer;
use node_resolver::analyze::CjsModuleExportAnalyzer;
use node_resolver::analyze::EsmAnalysisMode;
use node_resolver::analyze::NodeCodeTranslator;
use node_resolver::analyze::NodeCodeTranslatorMode;
use sys_traits::impls::RealSys;

use super::home::Home;
use super::home::follow_links;
use super::node::NodeServices;

type Translator = NodeCodeTranslator<
    ExportAnalyzer,
    DenoInNpmPackageChecker,
    DenoIsBuiltInNodeModuleChecker,
    NpmResolver<RealSys>,
    RealSys,
>;

/// Writes the ES module for a CommonJS file.
pub async fn to_module(
    services: &NodeServices,
    url: &Url,
    source: String,
) -> Result<String, JsErrorBox> {
    let analyzer = CjsModuleExportAnalyzer::new(
        ExportAnalyzer { home: services.home.clone() },
        DenoInNpmPackageChecker::new(CreateInNpmPkgCheckerOptions::Byonm),
        services.resolver.clone(),
        services.npm.clone(),
        services.packages.clone(),
        RealSys,
    );
    let translator = Translator::new(Arc::new(analyzer), NodeCodeTranslatorMode::ModuleLoader);
    translator
        .translate_cjs_to_esm(url, Some(Cow::Owned(source)))
        .await
        .map(Cow::into_owned)
        .map_err(JsErrorBox::from_err)
}

/// Whether a file whose name and package leave it open is an ES module: it uses module syntax.
pub fn looks_like_module(url: &Url, source: &str) -> bool {
    // Parsing is the only sure way, and not needed for the many files without either word.
    if !source.contains("import") && !source.contains("export") && !source.contains("await") {
        return false;
    }
    parse(url, source).map_or(true, |parsed| !parsed.compute_is_script())
}

fn parse(url: &Url, source: &str) -> Result<ParsedSource, deno_ast::ParseDiagnostic> {
    deno_ast::parse_program(ParseParams {
        specifier: url.clone(),
        text: source.into(),
        media_type: MediaType::from_specifier(url),
        capture_tokens: true,
        scope_analysis: false,
        maybe_syntax: None,
    })
}

struct ExportAnalyzer {
    home: Home,
}

#[async_trait::async_trait(?Send)]
impl CjsCodeAnalyzer for ExportAnalyzer {
    async fn analyze_cjs<'a>(
        &self,
        specifier: &Url,
        source: Option<Cow<'a, str>>,
        _mode: EsmAnalysisMode,
    ) -> Result<CjsAnalysis<'a>, JsErrorBox> {
        let source = match source {
            Some(source) => source,
            None => Cow::Owned(read(&self.home, specifier)?),
        };
        if specifier.path().ends_with(".json") {
            return Ok(CjsAnalysis::Cjs(exports(Vec::new(), Vec::new())));
        }
        let parsed = parse(specifier, &source).map_err(|error| {
            let place = error.display_position();
            super::typescript::syntax_error(
                specifier,
                error.message(),
                place.line_number,
                place.column_number,
            )
        })?;
        if !parsed.compute_is_script() && !specifier.path().ends_with(".cjs") {
            return Ok(CjsAnalysis::Esm(source, None));
        }
        let analysis = parsed.analyze_cjs();
        Ok(CjsAnalysis::Cjs(exports(analysis.exports, analysis.reexports)))
    }

    async fn analyze_cjs_member_props<'a>(
        &self,
        _specifier: &Url,
        _source: Option<Cow<'a, str>>,
        _member: &str,
    ) -> Result<Option<Vec<String>>, JsErrorBox> {
        Ok(None)
    }
}

fn exports(exports: Vec<String>, reexports: Vec<String>) -> CjsAnalysisExports {
    CjsAnalysisExports { exports, reexports, member_reexports: Vec::new() }
}

/// A file whose exports another one passes on.
fn read(home: &Home, specifier: &Url) -> Result<String, JsErrorBox> {
    let path = specifier
        .to_file_path()
        .map_err(|()| JsErrorBox::generic(format!("{specifier} is not a file")))?;
    let bytes = home.read(&path, &follow_links(&path)).map_err(JsErrorBox::from_err)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
