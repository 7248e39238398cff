//! The environment of an extension: the user's, without secrets.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

use crate::config::ExtensionConfig;
use crate::grants::Profile;

/// Words that make a variable a secret when its name, split at underscores, contains one.
const SECRET_WORDS: [&str; 18] = [
    "TOKEN",
    "TOKENS",
    "KEY",
    "KEYS",
    "AUTH",
    "COOKIE",
    "CREDS",
    "PASS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "PWD",
    "CREDENTIAL",
    "CREDENTIALS",
    "APIKEY",
    "PAT",
];

/// Secrets whose names do not say so.
const SECRET_NAMES: [&str; 10] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SESSION_TOKEN",
    "AZURE_CLIENT_ID",
    "AZURE_TENANT_ID",
    "DATABASE_URL",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "KUBECONFIG",
    "MONGODB_URI",
    "REDIS_URL",
    "SSH_AUTH_SOCK",
];

/// Names that look like secrets and are none.
const NOT_SECRET: [&str; 2] = ["PWD", "OLDPWD"];

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
    let names = std::env::vars_os().map(|(name, _)| name);
    for name in names.filter(|name| is_secret(&name.to_string_lossy())) {
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

/// Whether a variable's value is a secret, going by its name.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    if NOT_SECRET.contains(&name.as_str()) {
        return false;
    }
    SECRET_NAMES.contains(&name.as_str())
        || name.contains("PASSWORD")
        || name.contains("SECRET")
        || name.split(['_', '-', '.']).any(|word| SECRET_WORDS.contains(&word))
}

/// The variables an extension gets from `all`, going by its configuration.
pub fn visible(
    all: impl IntoIterator<Item = (String, String)>,
    config: &ExtensionConfig,
) -> BTreeMap<String, String> {
    let basic_only = config.profile == Some(Profile::None);
    all.into_iter()
        .filter(|(name, _)| {
            if config.deny_env.contains(name) {
                return false;
            }
            config.allow_env.contains(name)
                || if basic_only { BASIC.contains(&name.as_str()) } else { !is_secret(name) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_by_their_names() {
        for name in [
            "GITHUB_TOKEN",
            "OPENAI_API_KEY",
            "MY_SECRET",
            "DB_PASSWORD",
            "MYPASSWORD2",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_ACCESS_KEY_ID",
            "NPM_TOKEN",
            "DATABASE_URL",
            "GH_PAT",
            "github_token",
            "PGPASSWORD",
            "DB_PASS",
            "API_KEYS",
            "NPM_CONFIG__AUTH",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["PATH", "HOME", "PWD", "OLDPWD", "KEYBOARD", "MONKEY", "EDITOR", "NODE_PATH"] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn a_secret_is_passed_on_only_when_it_is_named() {
        let all = || {
            ["PATH", "A_TOKEN", "B_TOKEN", "PLAIN"].map(|name| (name.to_owned(), "x".to_owned()))
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
