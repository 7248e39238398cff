//! What a specifier means, as far as that can be said without looking at files. No type of an engine is named here, so the
//! fuzz targets compile this file on its own.

use url::ParseError;
use url::Url;

/// Where a module is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// At this address.
    At(Url),
    /// In a package, which is looked for from the folder of this address.
    Package(Url),
}

/// Why a specifier means nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It makes no address.
    Address(ParseError),
    /// Nothing is imported from there.
    Import(String),
}

/// Where the module is that `referrer` imports as `specifier`. `built_in` knows the addresses of modules that are part of the
/// program, by the names that extensions write.
pub fn place(
    specifier: &str,
    referrer: &str,
    built_in: impl Fn(&str) -> Option<&'static str>,
) -> Result<Place, Refusal> {
    // Our own modules reach node's, not themselves.
    let from_extension = !referrer.starts_with("tenon:");
    if from_extension && let Some(url) = built_in(specifier) {
        return Url::parse(url).map(Place::At).map_err(Refusal::Address);
    }
    if let Ok(url) = Url::parse(specifier) {
        return match url.scheme() {
            // Ours are for ourselves.
            "tenon" if from_extension && !referrer.is_empty() && referrer != "." => {
                Err(Refusal::Import(format!("there is no module {specifier}")))
            }
            "file" | "node" | "tenon" | "data" | "blob" => Ok(Place::At(url)),
            scheme => Err(Refusal::Import(format!(
                "Cannot import {specifier}: modules are loaded from files, not by {scheme}:"
            ))),
        };
    }
    let base = Url::parse(referrer)
        .map_err(|_| Refusal::Import(format!("Cannot resolve \"{specifier}\"")))?;
    if specifier.starts_with(['.', '/']) {
        return base.join(specifier).map(Place::At).map_err(Refusal::Address);
    }
    Ok(Place::Package(base))
}

/// The package that a specifier such as `@scope/name/file` is in.
pub fn package_name(specifier: &str) -> String {
    let parts = if specifier.starts_with('@') { 2 } else { 1 };
    specifier.split('/').take(parts).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "file:///w/a/b.mjs";

    fn found(specifier: &str, referrer: &str) -> Result<Place, Refusal> {
        place(specifier, referrer, |name| (name == "sdk").then_some("tenon:index"))
    }

    fn at(url: &str) -> Result<Place, Refusal> {
        Ok(Place::At(Url::parse(url).unwrap()))
    }

    #[test]
    fn specifiers_are_addresses_paths_or_packages() {
        assert_eq!(found("./c.mjs", FILE), at("file:///w/a/c.mjs"));
        assert_eq!(found("/c.mjs", FILE), at("file:///c.mjs"));
        assert_eq!(found("node:fs", FILE), at("node:fs"));
        assert_eq!(found("sdk", FILE), at("tenon:index"));
        let package = Ok(Place::Package(Url::parse(FILE).unwrap()));
        assert_eq!(found("lodash/fp", FILE), package);
        assert_eq!(found("#inside", FILE), package);
        assert!(matches!(found("./c.mjs", "data:text/javascript,0"), Err(Refusal::Address(_))));
        assert!(matches!(found("./c.mjs", "."), Err(Refusal::Import(_))));
        assert!(matches!(found("https://example.org/a.mjs", FILE), Err(Refusal::Import(_))));
    }

    #[test]
    fn an_extension_reaches_our_modules_by_their_names_only() {
        assert!(matches!(found("tenon:index", FILE), Err(Refusal::Import(_))));
        assert!(matches!(found("TENON:index", FILE), Err(Refusal::Import(_))));
        assert_eq!(found("tenon:index", "tenon:extension"), at("tenon:index"));
        assert_eq!(found("tenon:warm", "."), at("tenon:warm"));
    }

    #[test]
    fn a_package_is_told_by_the_first_parts_of_its_name() {
        assert_eq!(package_name("a/b/c"), "a");
        assert_eq!(package_name("@a/b/c"), "@a/b");
        assert_eq!(package_name("@a"), "@a");
    }
}
