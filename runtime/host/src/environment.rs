//! The environment of an extension: the user's, without secrets.

mod secrets;

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

use crate::config::ExtensionConfig;
use crate::config::Profile;

pub use self::secrets::is_secret;
pub use self::secrets::is_secret_name;

/// What even an extension without permissions sees.
const BASIC: [&str; 10] =
    ["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

static SEALED: OnceLock<Vec<(String, String)>> = OnceLock::new();

/// Takes the secrets out of the process's own environment, where an extension that may read files could
/// find them, and keeps them for extensions that are granted them.
///
/// # Safety
///
/// No other thread may exist.
pub unsafe fn seal() {
    let all = variables();
    // Of all variables, also those whose value is no text: it is a secret nevertheless.
    let secrets = std::env::vars_os()
        .filter(|(name, value)| is_secret(&name.to_string_lossy(), &value.to_string_lossy()));
    for (name, _) in secrets {
        let Ok(c_name) = std::ffi::CString::new(name.as_bytes()) else { continue };
        // SAFETY: getenv points into the environment block, which nobody else uses now; the bytes up to
        // the terminator are the value's.
        unsafe {
            let value = libc::getenv(c_name.as_ptr());
            if !value.is_null() {
                std::ptr::write_bytes(value, b'x', libc::strlen(value));
            }
            std::env::remove_var(&name);
        }
    }
    // Sealed once, at the start of the program.
    let _ = SEALED.set(all);
}

/// The environment that the program was started with.
pub fn of_host() -> Vec<(String, String)> {
    SEALED.get().cloned().unwrap_or_else(variables)
}

fn variables() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// The variables an extension gets from `all`, going by its configuration.
pub fn visible(
    all: impl IntoIterator<Item = (String, String)>,
    config: &ExtensionConfig,
) -> BTreeMap<String, String> {
    let basic_only = config.profile == Some(Profile::None);
    all.into_iter()
        .filter(|(name, value)| {
            if config.deny_env.contains(name) {
                return false;
            }
            config.allow_env.contains(name)
                || if basic_only { BASIC.contains(&name.as_str()) } else { !is_secret(name, value) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says that a process is to seal its environment.
    const SEALS: &str = "TENON_TEST_SEALS";

    #[test]
    fn sealing_leaves_no_secret_in_the_environment_of_the_process() {
        if std::env::var_os(SEALS).is_none() {
            // The environment block of a process is what it was started with.
            let test =
                "environment::tests::sealing_leaves_no_secret_in_the_environment_of_the_process";
            let status = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", test])
                .env(SEALS, "1")
                .env("A_TOKEN", "hunter2")
                .env("STORE", "redis://:hunter2@localhost")
                .env("PLAIN", "kept")
                .status();
            return assert!(status.unwrap().success());
        }
        // SAFETY: the test's own thread is the only one that does anything.
        unsafe { seal() };
        assert_eq!(["A_TOKEN", "STORE"].map(std::env::var_os), [None, None]);
        assert_eq!(std::env::var("PLAIN").unwrap(), "kept");
        #[cfg(target_os = "linux")]
        {
            let block = std::fs::read("/proc/self/environ").unwrap();
            assert!(!String::from_utf8_lossy(&block).contains("hunter2"));
        }
        // Those that are granted them get them.
        let all = of_host();
        for (name, value) in [("A_TOKEN", "hunter2"), ("STORE", "redis://:hunter2@localhost")] {
            assert!(all.contains(&(name.to_owned(), value.to_owned())), "{name}");
        }
    }

    #[test]
    fn a_secret_is_passed_on_only_when_it_is_named() {
        let all = || {
            let named = ["PATH", "A_TOKEN", "B_TOKEN", "PLAIN"].map(|name| (name, "x"));
            let all = named.into_iter().chain([("STORE", "redis://:hunter2@localhost")]);
            all.map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        let grant = ExtensionConfig {
            allow_env: vec!["A_TOKEN".into()],
            deny_env: vec!["PLAIN".into()],
            ..ExtensionConfig::default()
        };
        assert_eq!(visible(all(), &grant).into_keys().collect::<Vec<_>>(), ["A_TOKEN", "PATH"]);
        let none = ExtensionConfig { profile: Some(Profile::None), ..ExtensionConfig::default() };
        assert_eq!(visible(all(), &none).into_keys().collect::<Vec<_>>(), ["PATH"]);
    }
}
