//! Node's way of finding packages, from Deno's resolver crates.

use std::borrow::Cow;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use deno_core::FastString;
use deno_core::url::Url;
use deno_error::JsErrorBox;
use deno_resolver::npm::ByonmNpmResolverCreateOptions;
use deno_resolver::npm::CreateInNpmPkgCheckerOptions;
use deno_resolver::npm::DenoInNpmPackageChecker;
use deno_resolver::npm::NpmResolver;
use deno_resolver::npm::NpmResolverCreateOptions;
use deno_runtime::deno_node::NodeExtInitServices;
use deno_runtime::deno_node::NodeRequireLoader;
use deno_runtime::deno_permissions::OpenAccessKind;
use deno_runtime::deno_permissions::PermissionsContainer;
use node_resolver::DenoIsBuiltInNodeModuleChecker;
use node_resolver::NodeResolver;
use node_resolver::PackageJsonResolver;
use node_resolver::cache::NodeResolutionSys;
use node_resolver::errors::PackageJsonLoadError;
use sys_traits::impls::RealSys;

use super::home::Home;
use super::home::is_in_package;

/// Deno's resolver, fixed to the real file system and `node_modules` folders that are just there.
pub type Resolver = NodeResolver<
    DenoInNpmPackageChecker,
    DenoIsBuiltInNodeModuleChecker,
    NpmResolver<RealSys>,
    RealSys,
>;

/// What resolves packages for one isolate. It caches what it reads, so a new generation of an
/// extension gets a new one.
pub struct NodeServices {
    pub packages: Arc<PackageJsonResolver<RealSys>>,
    pub npm: NpmResolver<RealSys>,
    pub resolver: Arc<Resolver>,
    pub home: Home,
}

impl NodeServices {
    pub fn new(home: Home) -> Self {
        let packages = Arc::new(PackageJsonResolver::new(RealSys, None));
        let sys = NodeResolutionSys::new(RealSys, None);
        let npm = NpmResolver::<RealSys>::new(NpmResolverCreateOptions::Byonm(
            ByonmNpmResolverCreateOptions {
                root_node_modules_dir: None,
                search_stop_dir: None,
                sys: sys.clone(),
                pkg_json_resolver: packages.clone(),
            },
        ));
        let resolver = Arc::new(NodeResolver::new(
            DenoInNpmPackageChecker::new(CreateInNpmPkgCheckerOptions::Byonm),
            DenoIsBuiltInNodeModuleChecker,
            npm.clone(),
            packages.clone(),
            sys,
            Default::default(),
        ));
        Self { packages, npm, resolver, home }
    }

    /// The same, as Deno's node extension wants it.
    pub fn for_node_extension(
        &self,
    ) -> NodeExtInitServices<DenoInNpmPackageChecker, NpmResolver<RealSys>, RealSys> {
        NodeExtInitServices {
            node_require_loader: Rc::new(RequireLoader {
                packages: self.packages.clone(),
                home: self.home.clone(),
            }),
            node_resolver: self.resolver.clone(),
            pkg_json_resolver: self.packages.clone(),
            sys: RealSys,
        }
    }

    /// Whether a file with an ambiguous name is CommonJS, going by the package it is in. `None` if
    /// the package does not say.
    pub fn package_says_commonjs(&self, path: &Path) -> Option<bool> {
        let package = self.packages.get_closest_package_json(path).ok().flatten()?;
        match package.typ.as_str() {
            "module" => Some(false),
            "commonjs" => Some(true),
            _ => None,
        }
    }
}

/// Reads files for `require()`.
struct RequireLoader {
    packages: Arc<PackageJsonResolver<RealSys>>,
    home: Home,
}

impl NodeRequireLoader for RequireLoader {
    fn ensure_read_permission<'a>(
        &self,
        permissions: &mut PermissionsContainer,
        path: Cow<'a, Path>,
    ) -> Result<Cow<'a, Path>, JsErrorBox> {
        // Links and `..` are resolved first: it is the file they lead to that is read.
        if std::fs::canonicalize(&path).is_ok_and(|real| is_in_package(&real)) {
            return Ok(path);
        }
        permissions
            .check_open(path, OpenAccessKind::Read, Some("require()"))
            .map(|checked| checked.into_path())
            .map_err(JsErrorBox::from_err)
    }

    fn load_text_file_lossy(&self, path: &Path) -> Result<FastString, JsErrorBox> {
        // `require` has followed the links.
        let bytes = self.home.read(path, path).map_err(JsErrorBox::from_err)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let is_typescript = path.extension().is_some_and(|ext| ext == "ts" || ext == "cts");
        if is_typescript && let Ok(url) = Url::from_file_path(path) {
            return Ok(super::typescript::transpile(&url, text)?.code.into());
        }
        Ok(text.into())
    }

    fn is_maybe_cjs(&self, specifier: &Url) -> Result<bool, PackageJsonLoadError> {
        let Ok(path) = specifier.to_file_path() else { return Ok(false) };
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("mjs" | "mts") => Ok(false),
            Some("cjs" | "cts") => Ok(true),
            _ => {
                let package = self.packages.get_closest_package_json(&path)?;
                Ok(package.is_none_or(|package| package.typ != "module"))
            }
        }
    }

    fn is_maybe_cjs_from_require(&self, specifier: &Url) -> Result<bool, PackageJsonLoadError> {
        self.is_maybe_cjs(specifier)
    }
}
