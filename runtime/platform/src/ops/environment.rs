//! `process.env`, `process.execPath`, `process.title`: an extension's own, never the host's.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use deno_core::OpState;
use deno_core::op2;
use deno_runtime::deno_permissions::OpenAccessKind;
use deno_runtime::deno_permissions::PermissionCheckError;
use deno_runtime::deno_permissions::PermissionsContainer;

/// The environment of one extension; lives in the isolate's `OpState`.
///
/// It is filled when the extension is taken on, from what its grant lets it see. What the extension
/// writes stays here and is passed on to the processes that it starts. Clones share it.
#[derive(Debug, Default, Clone)]
pub struct ExtensionEnv(Arc<Mutex<Environment>>);

#[derive(Debug, Default, Clone)]
struct Environment {
    vars: BTreeMap<String, String>,
    exec_path: PathBuf,
}

impl ExtensionEnv {
    /// Fills the environment. `exec_path` is what `process.execPath` says.
    pub fn fill(&self, vars: BTreeMap<String, String>, exec_path: PathBuf) {
        *self.lock() = Environment { vars, exec_path };
    }

    /// A copy for a worker thread, which from then on goes its own way.
    pub fn fork(&self) -> Self {
        Self(Arc::new(Mutex::new(self.lock().clone())))
    }

    fn lock(&self) -> MutexGuard<'_, Environment> {
        // A map of strings is whole whatever happened to the thread that last touched it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a variable could not be read or written.
#[derive(Debug, thiserror::Error, deno_error::JsError)]
pub enum EnvError {
    /// A name that no system accepts.
    #[class(type)]
    #[error("Key contains invalid characters: {0:?}")]
    InvalidKey(String),
    /// A value that no system accepts.
    #[class(type)]
    #[error("Value contains invalid characters: {0:?}")]
    InvalidValue(String),
    /// The file may not be read.
    #[class(inherit)]
    #[error(transparent)]
    Permission(#[from] PermissionCheckError),
    /// The file could not be read.
    #[class(inherit)]
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

fn check_key(key: &str) -> Result<(), EnvError> {
    if key.is_empty() || key.contains(['=', '\0']) {
        return Err(EnvError::InvalidKey(key.to_owned()));
    }
    Ok(())
}

/// All variables.
#[op2]
#[serde]
pub fn op_tenon_env(state: &mut OpState) -> BTreeMap<String, String> {
    state.borrow::<ExtensionEnv>().lock().vars.clone()
}

/// One variable.
#[op2]
#[string]
pub fn op_tenon_get_env(state: &mut OpState, #[string] key: &str) -> Option<String> {
    state.borrow::<ExtensionEnv>().lock().vars.get(key).cloned()
}

/// Sets a variable, for this extension alone.
#[op2(fast)]
pub fn op_tenon_set_env(
    state: &mut OpState,
    #[string] key: &str,
    #[string] value: &str,
) -> Result<(), EnvError> {
    check_key(key)?;
    if value.contains('\0') {
        return Err(EnvError::InvalidValue(value.to_owned()));
    }
    state.borrow::<ExtensionEnv>().lock().vars.insert(key.to_owned(), value.to_owned());
    Ok(())
}

/// Removes a variable, for this extension alone.
#[op2(fast)]
pub fn op_tenon_delete_env(state: &mut OpState, #[string] key: &str) -> Result<(), EnvError> {
    check_key(key)?;
    state.borrow::<ExtensionEnv>().lock().vars.remove(key);
    Ok(())
}

/// `process.loadEnvFile`: adds what the file sets and is not set yet.
#[op2(fast, stack_trace)]
pub fn op_tenon_load_env_file(state: &mut OpState, #[string] path: &str) -> Result<(), EnvError> {
    let path = state.borrow_mut::<PermissionsContainer>().check_open(
        std::borrow::Cow::Owned(PathBuf::from(path)),
        OpenAccessKind::Read,
        Some("process.loadEnvFile"),
    )?;
    let text = std::fs::read_to_string(&*path)?;
    let mut env = state.borrow::<ExtensionEnv>().lock();
    deno_dotenv::parse_env_content_hook(&text, &mut |key, value| {
        env.vars.entry(key.to_owned()).or_insert_with(|| value.to_owned());
    });
    Ok(())
}

/// `process.execPath`.
#[op2]
#[string]
pub fn op_tenon_exec_path(state: &mut OpState) -> String {
    state.borrow::<ExtensionEnv>().lock().exec_path.to_string_lossy().into_owned()
}

/// `process.title = ...` would rename the host; it is accepted and does nothing.
#[op2(fast)]
pub fn op_tenon_set_title(#[string] _title: &str) {}
