//! The environment of an extension: the user's, without secrets.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

use crate::config::ExtensionConfig;
use crate::config::Profile;

/// Words that make a variable a secret when its name, taken apart where words begin, contains one.
const SECRET_WORDS: [&str; 30] = [
    "TOKEN",
    "TOKENS",
    "KEY",
    "KEYS",
    "AUTH",
    "AUTHORIZATION",
    "BEARER",
    "COOKIE",
    "CREDS",
    "DSN",
    "JWT",
    "NETRC",
    "OTP",
    "PASS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "PGPASS",
    "PGPASSFILE",
    "PRIVATE",
    "PWD",
    "CREDENTIAL",
    "CREDENTIALS",
    "APIKEY",
    "PAT",
    "UNSEAL",
    "WEBHOOK",
    "WEBHOOKS",
];

/// Parts of a name that make it a secret wherever they stand: names such as `GHTOKEN` are common.
const SECRET_PARTS: [&str; 6] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "APIKEY", "PRIVATEKEY"];

/// Ends of a name that make it a secret, such as `MYPASS`.
const SECRET_ENDS: [&str; 2] = ["PASS", "CREDENTIALS"];

/// Secrets whose names do not say so.
const SECRET_NAMES: [&str; 13] = [
    "AMQP_URL",
    "AWS_ACCESS_KEY_ID",
    "AWS_SESSION_TOKEN",
    "AZURE_CLIENT_ID",
    "AZURE_TENANT_ID",
    "DATABASE_URL",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "KUBECONFIG",
    "MONGODB_URI",
    "MONGO_URI",
    "MONGO_URL",
    "REDIS_URL",
    "SSH_AUTH_SOCK",
];

/// Names that look like secrets and are none.
const NOT_SECRET: [&str; 4] = ["PWD", "OLDPWD", "TOKENIZERS_PARALLELISM", "COMPASS"];

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
    let upper = name.to_ascii_uppercase();
    if NOT_SECRET.contains(&upper.as_str()) {
        return false;
    }
    SECRET_NAMES.contains(&upper.as_str())
        || SECRET_PARTS.iter().any(|part| upper.contains(part))
        || SECRET_ENDS.iter().any(|end| upper.ends_with(end))
        || words(name).any(|word| SECRET_WORDS.contains(&word.as_str()))
}

/// The words of a name in capitals: what stands between `_`, `-` and `.`, each also taken apart where a capital follows a
/// small letter, and without the number at its end.
fn words(name: &str) -> impl Iterator<Item = String> {
    let mut spaced = String::with_capacity(name.len());
    let mut was_small = false;
    for c in name.chars() {
        if matches!(c, '_' | '-' | '.') || was_small && c.is_ascii_uppercase() {
            spaced.push(' ');
        }
        if !matches!(c, '_' | '-' | '.') {
            spaced.push(c);
        }
        was_small = c.is_ascii_lowercase();
    }
    let words: Vec<String> = spaced
        .split(' ')
        .map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()).to_ascii_uppercase())
        .collect();
    words.into_iter()
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
            "AUTHTOKEN",
            "githubToken",
            "npm_config__authToken",
            "TOKEN1",
            "HEROKU_API_KEY2",
            "TOKENURL",
            "privatekey",
            "Authorization",
            "SLACK_WEBHOOK_URL",
            "MYPASS",
            "pgpassfile",
            "SENTRY_DSN",
            "MONGO_URI",
            "SSH_PRIVATE",
            "VAULT_UNSEAL",
        ] {
            assert!(is_secret(name), "{name}");
        }
        let harmless = [
            "PATH",
            "HOME",
            "PWD",
            "OLDPWD",
            "KEYBOARD",
            "MONKEY",
            "EDITOR",
            "NODE_PATH",
            "TOKENIZERS_PARALLELISM",
            "AUTHOR",
            "XDG_SESSION_TYPE",
        ];
        for name in harmless {
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
