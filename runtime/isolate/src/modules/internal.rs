//! Names for the platform's own modules, for QuickJS.
//!
//! When QuickJS links a module it asks again for the imports of everything below it, also of the
//! platform's modules that were linked long ago. By then deno_core has forgotten those edges and asks
//! the loader, which may not answer with an `ext:` name. So each of these modules gets a second name,
//! registered as a redirect, that leads to the same module.

use deno_core::ModuleSource;
use deno_core::ModuleSourceCode;
use deno_core::ModuleSpecifier;
use deno_core::ModuleType;
use deno_error::JsErrorBox;

use crate::embedded;

/// The module that imports every second name, and thereby registers them.
pub const ALL: &str = "tenon:internal";

const PREFIX: &str = "tenon:internal/";

/// The platform's modules that are not in a table of ours.
const CORE: [&str; 2] = ["ext:core/mod.js", "ext:core/ops"];

/// The second name of a module of the platform, if one of its own asks for it.
pub fn second_name(specifier: &str, referrer: &str) -> Option<ModuleSpecifier> {
    let is_own = referrer.starts_with("ext:") || referrer.starts_with("node:");
    if !is_own || !specifier.starts_with("ext:") || !names().any(|name| name == specifier) {
        return None;
    }
    ModuleSpecifier::parse(&format!("{PREFIX}{specifier}")).ok()
}

/// The source of one of our names: the list of all, or a redirect.
pub fn load(url: &ModuleSpecifier) -> Option<Result<ModuleSource, JsErrorBox>> {
    if url.as_str() == ALL {
        let text: String = names().map(|name| format!("import \"{PREFIX}{name}\";\n")).collect();
        let code = ModuleSourceCode::String(text.into());
        return Some(Ok(ModuleSource::new(ModuleType::JavaScript, code, url, None)));
    }
    let first_name = url.as_str().strip_prefix(PREFIX)?;
    let source = ModuleSpecifier::parse(first_name).map_err(JsErrorBox::from_err).map(|found| {
        // Never evaluated: the module that is found is there already.
        let code = ModuleSourceCode::String(String::new().into());
        ModuleSource::new_with_redirect(ModuleType::JavaScript, code, url, &found, None)
    });
    Some(source)
}

fn names() -> impl Iterator<Item = &'static str> {
    let eager = embedded::EAGER.iter().map(|&(name, _)| name);
    CORE.into_iter().chain(eager.filter(|name| name.starts_with("ext:")))
}
