//! Which variables are secrets: by their names, and by passwords in addresses and connection strings.

/// What makes a name a secret.
enum Sign {
    /// A word of the name, where names are taken apart at `_`, `-`, `.` and where a capital follows a small letter.
    Word,
    /// A part of the name without what separates its words: names such as `GHTOKEN` are common.
    Part,
    /// The end of the name without what separates its words, such as `MYPASS`.
    End,
    /// The whole name, which does not say so.
    Name,
    /// A word, if the name also has one of [`ADDRESSES`]: an address of such a service mostly has a password in it.
    Service,
}

/// The signs, in capitals.
const SIGNS: [(Sign, &[&str]); 5] = [
    (
        Sign::Word,
        &[
            "TOKEN",
            "TOKENS",
            "KEY",
            "KEYS",
            "AUTH",
            "AUTHORIZATION",
            "BASICAUTH",
            "BEARER",
            "COOKIE",
            "COOKIES",
            "CREDS",
            "CREDENTIAL",
            "DSN",
            "HMAC",
            "JWT",
            "KEYFILE",
            "KEYSTORE",
            "MNEMONIC",
            "NETRC",
            "OAUTH",
            "OTP",
            "PASS",
            "PAT",
            "PGPASS",
            "PGPASSFILE",
            "PRIVATE",
            "PSK",
            "PW",
            "PWD",
            "PWORD",
            "SAS",
            "SECRETS",
            "TOTP",
            "UNSEAL",
            "WEBHOOK",
            "WEBHOOKS",
        ],
    ),
    (
        Sign::Part,
        &[
            "TOKEN",
            "SECRET",
            "PASSWORD",
            "PASSWD",
            "PASSPHRASE",
            "PASSCODE",
            "CREDENTIALS",
            "APIKEY",
            "ACCESSKEY",
            "ACCOUNTKEY",
            "AUTHKEY",
            "DEPLOYKEY",
            "ENCRYPTIONKEY",
            "MASTERKEY",
            "PRIVATEKEY",
            "PRIVKEY",
            "SIGNINGKEY",
            "SSHKEY",
            "CONNECTIONSTRING",
            "CONNSTR",
        ],
    ),
    (Sign::End, &["PASS", "PW", "DSN"]),
    (
        Sign::Name,
        &["AWS_ACCESS_KEY_ID", "AZURE_CLIENT_ID", "AZURE_TENANT_ID", "KUBECONFIG", "SSH_AUTH_SOCK"],
    ),
    (
        Sign::Service,
        &[
            "AMQP",
            "BROKER",
            "CELERY",
            "CLICKHOUSE",
            "CLOUDAMQP",
            "CLOUDINARY",
            "DATABASE",
            "DB",
            "ELASTICSEARCH",
            "JDBC",
            "LDAP",
            "MAILER",
            "MARIADB",
            "MEMCACHED",
            "MONGO",
            "MONGODB",
            "MSSQL",
            "MYSQL",
            "NATS",
            "PG",
            "POSTGRES",
            "POSTGRESQL",
            "RABBITMQ",
            "REDIS",
            "REDISCLOUD",
            "SMTP",
            "SQLALCHEMY",
            "SQLSERVER",
        ],
    ),
];

/// What names of addresses end with.
const ADDRESSES: [&str; 3] = ["URL", "URI", "URLS"];

/// Names that look like secrets and are none.
const NOT_SECRET: [&str; 4] = ["PWD", "OLDPWD", "TOKENIZERS_PARALLELISM", "COMPASS"];

/// What precedes a secret in a connection string, in small letters.
const SETTINGS: [&str; 5] = ["password=", "pwd=", "accountkey=", "sharedaccesskey=", "accesskey="];

/// The end of names of proxies, in capitals. Programs have no network without them, so they keep their password.
const PROXY: &str = "PROXY";

/// Whether a variable's value is a secret, going by its name or by what it consists of.
pub fn is_secret(name: &str, value: &str) -> bool {
    is_secret_name(name) || has_password(value) && !name.to_ascii_uppercase().ends_with(PROXY)
}

/// Whether a variable's value is a secret, going by its name.
pub fn is_secret_name(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    if NOT_SECRET.contains(&upper.as_str()) {
        return false;
    }
    let words = words(name);
    let whole = words.concat();
    let has_word = |sign: &&str| words.iter().any(|word| word == sign);
    let is_address = ADDRESSES.iter().any(has_word);
    SIGNS.iter().any(|(sign, signs)| match sign {
        Sign::Word => signs.iter().any(has_word),
        Sign::Part => signs.iter().any(|part| whole.contains(part)),
        Sign::End => signs.iter().any(|end| whole.ends_with(end)),
        Sign::Name => signs.contains(&upper.as_str()),
        Sign::Service => is_address && signs.iter().any(has_word),
    })
}

/// The words of a name in capitals, each without the number at its end.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for c in name.chars() {
        let is_between = matches!(c, '_' | '-' | '.');
        if is_between || was_small && c.is_ascii_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| !is_between) {
            word.push(c.to_ascii_uppercase());
        }
        was_small = c.is_ascii_lowercase();
    }
    let without_number =
        |word: &String| word.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    words.iter().map(without_number).collect()
}

/// Whether there is a password in an address (`scheme://user:password@host`) or a connection string.
fn has_password(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    if SETTINGS.iter().any(|setting| has_setting(&lower, setting)) {
        return true;
    }
    value.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#', ' ', ',']).next().unwrap_or_default();
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        user.and_then(|user| user.split_once(':')).is_some_and(|(_, password)| !password.is_empty())
    })
}

/// Whether a connection string has such a setting, with a value.
fn has_setting(text: &str, setting: &str) -> bool {
    text.match_indices(setting).any(|(at, _)| {
        let before = text[..at].trim_end().chars().next_back();
        let value = text[at + setting.len()..].chars().next();
        // The lines of a shell's function look much the same, but take values from elsewhere.
        before.is_none_or(|c| matches!(c, ';' | '&' | '?'))
            && value.is_some_and(|c| !matches!(c, ';' | '&' | ' ' | '$' | '"' | '`'))
    })
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
            "AWS_SESSION_TOKEN",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "NPM_TOKEN",
            "DATABASE_URL",
            "GH_PAT",
            "github_token",
            "PGPASSWORD",
            "PGPASS",
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
            "SENTRYDSN",
            "MONGO_URI",
            "SSH_PRIVATE",
            "VAULT_UNSEAL",
            "DB_PW",
            "MYSQLPW",
            "MYSQL_PWD",
            "MASTERKEY",
            "APP_MASTERKEY_V2",
            "MASTER_KEY",
            "rsaPrivKey",
            "SIGNINGKEY",
            "AZURE_STORAGE_CONNECTION_STRING",
            "connectionString",
            "SERVICEBUS_CONNSTR",
            "POSTGRES_URL",
            "POSTGRES_PRISMA_URL",
            "APP_DB_URI",
            "REDIS_URL",
            "AMQP_URL",
            "CELERY_BROKER_URL",
            "GPG_PASSPHRASE",
            "GPGPASSPHRASE",
            "UNLOCK_PASSCODE",
            "WIFI_PSK",
            "DOCKER_CREDS",
            "PASS_WORD",
        ] {
            assert!(is_secret_name(name), "{name}");
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
            "XDG_SESSION_DESKTOP",
            "DATABASE",
            "DB_HOST",
            "PUBLIC_URL",
            "DBUS_SESSION_BUS_ADDRESS",
            "BYPASS_CACHE",
            "COMPASS",
            "HTTPS_PROXY",
        ];
        for name in harmless {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn secrets_are_told_by_a_password_in_their_value() {
        for value in [
            "postgres://app:hunter2@db.example.org/app",
            "https://user:p%40ss@host",
            "redis://:hunter2@localhost:6379/0",
            "mongodb://a,b://u:p@host",
            "Server=db;User Id=app;Password=hunter2;",
            "jdbc:mysql://db/app?user=app&password=hunter2",
            "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=b64==",
        ] {
            assert!(is_secret("STORE", value), "{value}");
        }
        for value in [
            "",
            "https://example.org/a:b@c",
            "https://user@example.org",
            "ssh://git@example.org:22/x",
            "https://user:@example.org",
            "Password=;User=a",
            "--show-password=never-asked-for",
            "() { cd ..; pwd=$(pwd); }",
        ] {
            assert!(!is_secret("STORE", value), "{value}");
        }
        assert!(!is_secret("https_proxy", "http://me:hunter2@proxy:3128"));
    }
}
