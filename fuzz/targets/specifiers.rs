//! What extensions import, as far as that is decided without looking at files.
//!
//! A module is at an address of a few kinds; the modules of the program are reached by their names only; what is found is found
//! again under its own address; a package is what its specifier begins with.

#![no_main]

#[path = "../../runtime/isolate/src/modules"]
mod modules {
    #[allow(dead_code)]
    pub mod specifier;
}

use libfuzzer_sys::fuzz_target;
use modules::specifier::Place;
use modules::specifier::Refusal;
use modules::specifier::package_name;
use modules::specifier::place;
use url::Url;

const REFERRERS: [&str; 8] = [
    "file:///w/.github/extensions/a/extension.mjs",
    "file:///w/node_modules/@s/b/lib/index.js",
    "data:text/javascript,0",
    "blob:null/1",
    "node:fs",
    "tenon:extension",
    ".",
    "",
];

/// The table of the loader, in short.
fn built_in(name: &str) -> Option<&'static str> {
    match name {
        "@github/copilot-sdk" | "@tenon/sdk" => Some("tenon:index"),
        "node:module" | "module" => Some("tenon:node-module"),
        _ => None,
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&kind, rest)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    let (specifier, referrer) = match REFERRERS.get(usize::from(kind) % 10) {
        Some(referrer) => (&*text, *referrer),
        None => text.split_once('\n').unwrap_or((&text, "")),
    };
    look(specifier, referrer);
});

fn look(specifier: &str, referrer: &str) {
    let name = package_name(specifier);
    assert!(specifier.starts_with(&name) && name.matches('/').count() <= 1);
    let url = match place(specifier, referrer, built_in) {
        Err(Refusal::Import(why)) => return assert!(!why.is_empty()),
        Err(Refusal::Address(_)) => return,
        Ok(Place::Package(base)) => {
            assert!(!specifier.starts_with(['.', '/']) && Url::parse(specifier).is_err());
            assert_eq!(Url::parse(referrer), Ok(base));
            return;
        }
        Ok(Place::At(url)) => url,
    };
    let is_relative = Url::parse(specifier).is_err() && built_in(specifier).is_none();
    if is_relative {
        // It stays where it began: not on another protocol.
        assert_eq!(Some(url.scheme()), Url::parse(referrer).ok().as_ref().map(Url::scheme));
    } else {
        assert!(["file", "node", "tenon", "data", "blob"].contains(&url.scheme()), "{url}");
    }
    let trusted = referrer.starts_with("tenon:") || referrer.is_empty() || referrer == ".";
    if url.scheme() == "tenon" && !trusted {
        assert_eq!(built_in(specifier), Some(url.as_str()), "{specifier} reaches {url}");
        return;
    }
    if !is_relative && built_in(url.as_str()).is_none() {
        assert_eq!(place(url.as_str(), referrer, built_in), Ok(Place::At(url.clone())));
    }
    // Other addresses have paths too, which are none of files.
    if url.scheme() == "file"
        && let Ok(path) = url.to_file_path()
    {
        assert!(path.is_absolute());
    }
}
