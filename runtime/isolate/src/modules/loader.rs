//! The module loader of one extension.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::path::Path;
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::OnceLock;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

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
use deno_runtime::deno_permissions::OpenAccessKind;
use deno_runtime::deno_permissions::PermissionsContainer;
use node_resolver::NodeResolutionKind;
use node_resolver::ResolutionMode;
use sha2::Digest;
use sha2::Sha256;

use super::commonjs;
use super::node::NodeServices;
use super::node::is_in_package;
use super::outside;
use super::typescript;
use crate::code_cache;
use crate::message::LoadedFile;
use crate::message::Outside;

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
    // Evaluated in a spare isolate before it is needed.
    ("tenon:warm", "tenon:warm", include_str!("../../../../js-sdk/src/public/warm.js")),
];

/// From this size on a module's compiled form is kept for the next load. Compiling a smaller one
/// costs less than writing its compiled form down.
const WORTH_CACHING_BYTES: usize = 64 * 1024;

/// What is known once the isolate has an extension, and the files it was loaded from. Clones, such as
/// those of worker threads, share it.
#[derive(Clone, Default)]
pub struct Home(Arc<House>);

#[derive(Default)]
struct House {
    resident: OnceLock<Resident>,
    /// Whether any file has been loaded since somebody asked.
    any_loaded: AtomicBool,
    loaded: Mutex<Loaded>,
}

struct Resident {
    id: String,
    folder: PathBuf,
    permissions: PermissionsContainer,
    outside: Outside,
}

#[derive(Default)]
struct Loaded {
    /// Every file that was loaded, as it was when it was last read.
    known: HashMap<PathBuf, LoadedFile>,
    /// Those that nobody was told of yet.
    fresh: Vec<LoadedFile>,
}

impl Home {
    /// Everything below `folder` may be imported; for the rest the permissions decide.
    pub fn fill(
        &self,
        id: String,
        folder: PathBuf,
        permissions: PermissionsContainer,
        outside: Outside,
    ) {
        // Filled once, when the isolate takes on its extension.
        let _ = self.0.resident.set(Resident { id, folder, permissions, outside });
    }

    /// The extension's id, once it is known.
    pub fn id(&self) -> Option<&str> {
        self.0.resident.get().map(|resident| resident.id.as_str())
    }

    /// The files that were loaded as modules, by any of the extension's threads, since this was last
    /// called. A file that could not be read has no hash.
    pub fn take_loaded(&self) -> Vec<LoadedFile> {
        // Asked at every turn of the event loop, and nearly always there is nothing.
        if !self.0.any_loaded.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let mut loaded = self.0.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.any_loaded.store(false, Ordering::Relaxed);
        std::mem::take(&mut loaded.fresh)
    }

    /// Reads a file that is loaded as a module, and remembers it whatever comes of it: also what
    /// cannot be read or parsed is worth another try when the file changes. `real` is its path after
    /// links were followed.
    pub fn read(&self, path: &Path, real: &Path) -> std::io::Result<Vec<u8>> {
        let outside = self.outside().filter(|outside| !real.starts_with(&outside.folder));
        let is_package = is_in_package(real);
        // Installed packages are not what a person edits. Those of the repository are told of all the same.
        if is_package && outside.is_none() {
            return std::fs::read(path);
        }
        let mut read = outside::read(path);
        let hash = read.as_ref().map_or_else(|_| String::new(), |(bytes, _)| sha256(bytes));
        let suspicion = outside.and_then(|outside| outside.suspicion.as_ref());
        let mut is_refused = false;
        if let (Ok((_, changed)), Some(suspicion)) = (&read, suspicion)
            && let Err(error) = outside::check(suspicion, real, &hash, *changed)
        {
            is_refused = true;
            read = Err(error);
        }
        self.remember(LoadedFile { path: real.to_owned(), hash, is_package, is_refused });
        if outside.is_some()
            && let Some(manifest) = outside::manifest(real)
        {
            // It says which of the package's files is loaded.
            let hash = std::fs::read(&manifest).map_or_else(|_| String::new(), |it| sha256(&it));
            let is_refused = false;
            self.remember(LoadedFile { path: manifest, hash, is_package, is_refused });
        }
        read.map(|(bytes, _)| bytes)
    }

    fn outside(&self) -> Option<&Outside> {
        self.0.resident.get().map(|resident| &resident.outside)
    }

    fn remember(&self, file: LoadedFile) {
        let mut loaded = self.0.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if loaded.known.get(&file.path) == Some(&file) {
            return;
        }
        loaded.known.insert(file.path.clone(), file.clone());
        loaded.fresh.push(file);
        self.0.any_loaded.store(true, Ordering::Relaxed);
    }

    /// Where a file really is, if the extension may import it.
    fn check_readable(&self, path: &Path) -> Result<PathBuf, JsErrorBox> {
        let Some(resident) = self.0.resident.get() else {
            return Err(JsErrorBox::type_error(
                "no file can be imported before there is an extension",
            ));
        };
        // Links are followed first: it is the file they lead to that is read.
        let real = follow_links(path);
        if real.starts_with(&resident.folder) || is_in_package(&real) {
            return Ok(real);
        }
        let checked = resident
            .permissions
            .check_open(Cow::Borrowed(&real), OpenAccessKind::Read, Some("import"))
            .map(drop);
        match checked {
            Ok(()) => Ok(real),
            Err(_) => Err(JsErrorBox::type_error(format!(
                "{} has no read access to \"{}\"; it can be granted in the user's configuration",
                resident.id,
                path.display()
            ))),
        }
    }
}

fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// Where a path leads; the path itself if it leads nowhere.
pub fn follow_links(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

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
        // Our own modules reach node's, not themselves.
        let from_extension = !referrer.starts_with("tenon:");
        if from_extension && let Some((_, url, _)) = built_in(|(name, _, _)| *name == specifier) {
            return ModuleSpecifier::parse(url).map_err(JsErrorBox::from_err);
        }
        #[cfg(feature = "quickjs")]
        if let Some(url) = super::internal::second_name(specifier, referrer) {
            return Ok(url);
        }
        if let Ok(url) = ModuleSpecifier::parse(specifier) {
            return match url.scheme() {
                // Ours are for ourselves.
                "tenon" if from_extension && !referrer.is_empty() && referrer != "." => {
                    Err(JsErrorBox::type_error(format!("there is no module {specifier}")))
                }
                "file" | "node" | "tenon" | "data" | "blob" => Ok(url),
                scheme => Err(JsErrorBox::type_error(format!(
                    "Cannot import {specifier}: modules are loaded from files, not by {scheme}:"
                ))),
            };
        }
        let base = ModuleSpecifier::parse(referrer)
            .map_err(|_| JsErrorBox::type_error(format!("Cannot resolve \"{specifier}\"")))?;
        if specifier.starts_with(['.', '/']) {
            return base.join(specifier).map_err(JsErrorBox::from_err);
        }
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

/// The package that a specifier such as `@scope/name/file` is in.
fn package_name(specifier: &str) -> String {
    let parts = if specifier.starts_with('@') { 2 } else { 1 };
    specifier.split('/').take(parts).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(home: &Home, path: &Path) -> std::io::Result<Vec<u8>> {
        home.read(path, &follow_links(path))
    }

    fn of(path: &Path, hash: &str) -> LoadedFile {
        LoadedFile {
            path: path.to_owned(),
            hash: hash.to_owned(),
            is_package: false,
            is_refused: false,
        }
    }

    #[test]
    fn a_file_is_told_of_once_and_again_when_something_else_was_read() {
        let temp = tempfile::tempdir().unwrap();
        let file = follow_links(temp.path()).join("a.mjs");
        let home = Home::default();
        assert!(home.take_loaded().is_empty());
        fs::write(&file, "abc").unwrap();
        assert_eq!(read(&home, &file).unwrap(), b"abc");
        read(&home, &file).unwrap();
        let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(home.take_loaded(), [of(&file, hash)]);
        read(&home, &file).unwrap();
        assert!(home.take_loaded().is_empty());
        fs::write(&file, "abcd").unwrap();
        read(&home.clone(), &file).unwrap();
        assert_eq!(home.take_loaded().len(), 1);
    }

    #[test]
    fn a_missing_file_is_told_of_without_a_hash() {
        let temp = tempfile::tempdir().unwrap();
        let missing = temp.path().join("folder/missing.mjs");
        let home = Home::default();
        assert!(read(&home, &missing).is_err());
        assert_eq!(home.take_loaded(), [of(&missing, "")]);
    }

    #[test]
    fn links_are_followed_and_packages_left_out() {
        let temp = tempfile::tempdir().unwrap();
        let folder = follow_links(temp.path());
        let packages = folder.join("node_modules");
        fs::create_dir_all(packages.join("installed")).unwrap();
        fs::create_dir(folder.join("linked")).unwrap();
        std::os::unix::fs::symlink(folder.join("linked"), packages.join("linked")).unwrap();
        for path in [packages.join("installed/a.js"), folder.join("linked/b.js")] {
            fs::write(path, "").unwrap();
        }
        let home = Home::default();
        read(&home, &packages.join("installed/a.js")).unwrap();
        read(&home, &packages.join("linked/b.js")).unwrap();
        let paths: Vec<_> = home.take_loaded().into_iter().map(|file| file.path).collect();
        assert_eq!(paths, [folder.join("linked/b.js")]);
    }
}
