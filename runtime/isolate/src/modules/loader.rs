//! The module loader of one extension.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;

use deno_core::ModuleLoadOptions;
use deno_core::ModuleLoadReferrer;
use deno_core::ModuleLoadResponse;
use deno_core::ModuleLoader;
use deno_core::ModuleSource;
use deno_core::ModuleSourceCode;
use deno_core::ModuleSpecifier;
use deno_core::ModuleType;
use deno_core::RequestedModuleType;
use deno_core::ResolutionKind;
use deno_core::SourceCodeCacheInfo;
use deno_error::JsErrorBox;
use node_resolver::NodeResolutionKind;
use node_resolver::ResolutionMode;

use super::commonjs;
use super::node::NodeServices;
use super::specifier::Place;
use super::specifier::Refusal;
use super::specifier::package_name;
use super::specifier::place;
use super::typescript;
use crate::code_cache;

/// Modules that are part of the program. The first column is what extensions write.
const BUILT_IN: &[(&str, &str, &str)] = &[
    ("@github/copilot-sdk", "tenon:index", include_str!("../../../../js-sdk/src/public/index.js")),
    ("@tenon/sdk", "tenon:index", include_str!("../../../../js-sdk/src/public/index.js")),
    (
        "@github/copilot-sdk/extension",
        "tenon:extension",
        include_str!("../../../../js-sdk/src/public/extension.js"),
    ),
    (
        "@tenon/sdk/extension",
        "tenon:extension",
        include_str!("../../../../js-sdk/src/public/extension.js"),
    ),
    // Extensions get node's own module through ours, so that `require` finds the SDK too.
    (
        "node:module",
        "tenon:node-module",
        include_str!("../../../../js-sdk/src/public/node-module.js"),
    ),
    ("module", "tenon:node-module", include_str!("../../../../js-sdk/src/public/node-module.js")),
    // Evaluated in the zygote.
    ("tenon:usual", "tenon:usual", include_str!("../../../../js-sdk/src/public/usual.js")),
];

/// From this size on a module's compiled form is kept for the next load. Compiling a smaller one
/// costs less than writing its compiled form down.
const WORTH_CACHING_BYTES: usize = 64 * 1024;

/// Finds and reads modules. Made before its extension is known.
pub struct ExtensionLoader {
    services: Rc<NodeServices>,
    source_maps: Rc<RefCell<HashMap<String, Vec<u8>>>>,
}

impl ExtensionLoader {
    pub fn new(services: Rc<NodeServices>) -> Self {
        Self { services, source_maps: Rc::default() }
    }

    fn load_file(
        &self,
        url: &ModuleSpecifier,
        referrer: Option<&ModuleLoadReferrer>,
        requested: &RequestedModuleType,
    ) -> ModuleLoadResponse {
        let path = match url.to_file_path() {
            Ok(path) => path,
            Err(()) => return failed(format!("{url} is not a path on this system")),
        };
        let home = &self.services.home;
        let real = match home.check_readable(&path) {
            Ok(real) => real,
            Err(error) => return ModuleLoadResponse::Sync(Err(error)),
        };
        let bytes = match home.read(&path, &real) {
            Ok(bytes) => bytes,
            Err(error) => return failed(cannot_read(&path, &error, referrer)),
        };
        let extension = path.extension().and_then(|extension| extension.to_str());
        match (requested, extension) {
            (RequestedModuleType::Json, _) => return found(ModuleType::Json, bytes, url),
            (RequestedModuleType::Text, _) => return found(ModuleType::Text, bytes, url),
            (RequestedModuleType::Bytes, _) => return found(ModuleType::Bytes, bytes, url),
            (_, Some("wasm")) => return found(ModuleType::Wasm, bytes, url),
            (_, Some("json")) => {
                return failed(format!(
                    "Module \"{url}\" needs an import attribute of \"type: json\"{}",
                    from(referrer)
                ));
            }
            _ => {}
        }
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => return failed(not_utf8(&path, &error)),
        };
        match extension {
            Some("ts" | "mts") => match typescript::transpile(url, text) {
                Ok(transpiled) => {
                    self.source_maps.borrow_mut().insert(url.to_string(), transpiled.source_map);
                    script(transpiled.code, url)
                }
                Err(error) => ModuleLoadResponse::Sync(Err(error)),
            },
            Some("mjs") => script(text, url),
            Some("cjs" | "cts") => self.load_commonjs(url, text),
            _ => match self.services.package_says_commonjs(&path) {
                Some(false) => script(text, url),
                Some(true) => self.load_commonjs(url, text),
                None if commonjs::looks_like_module(url, &text) => script(text, url),
                None => self.load_commonjs(url, text),
            },
        }
    }

    fn load_commonjs(&self, url: &ModuleSpecifier, text: String) -> ModuleLoadResponse {
        let services = self.services.clone();
        let url = url.clone();
        ModuleLoadResponse::Async(Box::pin(async move {
            let code = commonjs::to_module(&services, &url, text).await?;
            Ok(module_source(code, &url))
        }))
    }
}

impl ModuleLoader for ExtensionLoader {
    fn resolve(
        &self,
        specifier: &str,
        referrer: &str,
        _kind: ResolutionKind,
    ) -> Result<ModuleSpecifier, JsErrorBox> {
        #[cfg(feature = "quickjs")]
        if let Some(url) = super::internal::second_name(specifier, referrer) {
            return Ok(url);
        }
        let ours = |name: &str| built_in(|(ours, _, _)| *ours == name).map(|(_, url, _)| *url);
        let base = match place(specifier, referrer, ours) {
            Ok(Place::At(url)) => return Ok(url),
            Ok(Place::Package(base)) => base,
            Err(Refusal::Address(error)) => return Err(JsErrorBox::from_err(error)),
            Err(Refusal::Import(message)) => return Err(JsErrorBox::type_error(message)),
        };
        let found = self.services.resolver.resolve(
            specifier,
            &base,
            ResolutionMode::Import,
            NodeResolutionKind::Execution,
        );
        match found {
            Ok(found) => found.into_url().map_err(JsErrorBox::from_err),
            Err(error) => Err(package_not_found(specifier, &base, &error)),
        }
    }

    fn load(
        &self,
        url: &ModuleSpecifier,
        referrer: Option<&ModuleLoadReferrer>,
        options: ModuleLoadOptions,
    ) -> ModuleLoadResponse {
        #[cfg(feature = "quickjs")]
        if let Some(source) = super::internal::load(url) {
            return ModuleLoadResponse::Sync(source);
        }
        match url.scheme() {
            "tenon" => match built_in(|(_, name, _)| *name == url.as_str()) {
                Some((_, _, text)) => script((*text).to_owned(), url),
                None => failed(format!("there is no module {url}")),
            },
            "file" => self.load_file(url, referrer, &options.requested_module_type),
            "data" => match decode_data_url(url) {
                Ok(text) => script(text, url),
                Err(message) => failed(message),
            },
            scheme => failed(format!("{scheme}: modules cannot be loaded{}", from(referrer))),
        }
    }

    fn get_code_cache(&self, url: &ModuleSpecifier, source: &str) -> Option<SourceCodeCacheInfo> {
        Some(code_cache::lookup(url.as_str(), source))
    }

    fn code_cache_ready(
        &self,
        url: ModuleSpecifier,
        hash: u64,
        data: &[u8],
    ) -> Pin<Box<dyn Future<Output = ()>>> {
        code_cache::store(url.as_str(), hash, data);
        Box::pin(std::future::ready(()))
    }

    fn get_source_map(&self, file: &str) -> Option<Cow<'_, [u8]>> {
        self.source_maps.borrow().get(file).cloned().map(Cow::Owned)
    }
}

type BuiltIn = (&'static str, &'static str, &'static str);

fn built_in(matches: impl Fn(&&BuiltIn) -> bool) -> Option<&'static BuiltIn> {
    BUILT_IN.iter().find(matches)
}

fn script(code: String, url: &ModuleSpecifier) -> ModuleLoadResponse {
    ModuleLoadResponse::Sync(Ok(module_source(code, url)))
}

fn module_source(code: String, url: &ModuleSpecifier) -> ModuleSource {
    let cache =
        (code.len() >= WORTH_CACHING_BYTES).then(|| code_cache::lookup(url.as_str(), &code));
    let code = ModuleSourceCode::String(code.into());
    ModuleSource::new(ModuleType::JavaScript, code, url, cache)
}

fn found(kind: ModuleType, bytes: Vec<u8>, url: &ModuleSpecifier) -> ModuleLoadResponse {
    let code = ModuleSourceCode::Bytes(bytes.into_boxed_slice().into());
    ModuleLoadResponse::Sync(Ok(ModuleSource::new(kind, code, url, None)))
}

fn failed(message: String) -> ModuleLoadResponse {
    ModuleLoadResponse::Sync(Err(JsErrorBox::type_error(message)))
}

/// `data:text/javascript,...`, as some tools write for small modules.
fn decode_data_url(url: &ModuleSpecifier) -> Result<String, String> {
    let decoded = deno_runtime::deno_fetch::data_url::DataUrl::process(url.as_str())
        .ok()
        .and_then(|parsed| parsed.decode_to_vec().ok());
    let (bytes, _) = decoded.ok_or_else(|| "a data: URL that cannot be read".to_owned())?;
    String::from_utf8(bytes).map_err(|_| "a data: URL that is not UTF-8".to_owned())
}

/// `\n    at file:line:column` of whoever asked for the module.
fn from(referrer: Option<&ModuleLoadReferrer>) -> String {
    referrer.map_or_else(String::new, |referrer| {
        format!(
            "\n    at {}:{}:{}",
            referrer.specifier, referrer.line_number, referrer.column_number
        )
    })
}

fn cannot_read(
    path: &Path,
    error: &std::io::Error,
    referrer: Option<&ModuleLoadReferrer>,
) -> String {
    let path = path.display();
    match error.kind() {
        std::io::ErrorKind::NotFound => format!("Cannot find module '{path}'{}", from(referrer)),
        std::io::ErrorKind::IsADirectory => {
            format!("Cannot import the folder '{path}'; name a file in it{}", from(referrer))
        }
        _ => format!("Cannot read module '{path}': {error}{}", from(referrer)),
    }
}

fn not_utf8(path: &Path, error: &std::string::FromUtf8Error) -> String {
    let valid = error.utf8_error().valid_up_to();
    let line = error.as_bytes()[..valid].iter().filter(|&&byte| byte == b'\n').count() + 1;
    let byte = error.as_bytes()[valid];
    format!(
        "{} is not valid UTF-8: byte 0x{byte:02x} at offset {valid}; save the file as UTF-8\n    at {}:{line}:1",
        path.display(),
        ModuleSpecifier::from_file_path(path)
            .map_or_else(|()| String::new(), |url| url.to_string()),
    )
}

fn package_not_found(
    specifier: &str,
    referrer: &ModuleSpecifier,
    error: &node_resolver::errors::NodeResolveError,
) -> JsErrorBox {
    // Told by its words: the kinds behind it are several and say the same.
    if error.to_string().contains("Could not find package") {
        let folder = referrer
            .to_file_path()
            .ok()
            .and_then(|path| path.parent().map(|folder| folder.display().to_string()))
            .unwrap_or_default();
        let package = package_name(specifier);
        return JsErrorBox::type_error(format!(
            "Cannot find package '{package}' imported from {referrer}; \
             install it (npm install {package}) in {folder} or above"
        ));
    }
    JsErrorBox::type_error(error.to_string())
}
