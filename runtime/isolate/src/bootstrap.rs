//! How an engine instance is set up, that of an extension as well as that of a worker of it.

use std::sync::Arc;

use deno_runtime as rt;
use deno_runtime::BootstrapOptions;
use deno_runtime::FeatureChecker;

/// What Deno is told of the program it is in.
pub fn bootstrap_options() -> BootstrapOptions {
    BootstrapOptions {
        user_agent: concat!("Tenon/", env!("CARGO_PKG_VERSION")).to_owned(),
        color_level: rt::colors::ColorLevel::None,
        // Deno rewrites the arguments of child processes that run its own binary; a "standalone"
        // program does not.
        is_standalone: true,
        ..BootstrapOptions::default()
    }
}

/// Deno ends the process when a feature is used that was not switched on. Here they are on: what an
/// extension may do is a matter of its permissions.
pub fn feature_checker() -> Arc<FeatureChecker> {
    let mut checker = FeatureChecker::default();
    checker.set_exit_cb(Box::new(|_feature, _api| {}));
    Arc::new(checker)
}
