//! Which variables are secrets: by their names, and by passwords in addresses and connection strings.

/// What makes a name a secret.
enum Sign {
    /// A word of the name, where names are taken apart at `_`, `-`, `.` and where a capital follows a small letter.
    Word,
    /// A part of the name without what separates its words: names such as `GHTOKEN` are common.
    Part,
    /// The end of the last word, such as `MYPASS`. In front of others it is part of one: `BYPASS_CACHE`.
    LastEnd,
    /// The end of a word, such as `MYSQLPW_FILE`.
    WordEnd,
    /// The last word. In front of others it is the name of a product.
    Last,
    /// The whole name, which does not say so.
    Name,
    /// A word, if the name also has one of [`ADDRESSES`]: an address of such a service mostly has a password in it.
    Service,
}

/// The signs, in capitals.
const SIGNS: [(Sign, &[&str]); 7] = [
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
            "PASS",
            "PAT",
            "PGPASS",
            "PGPASSFILE",
            "PRIVATE",
            "PSK",
            "PW",
            "PWD",
            "PWORD",
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
    (Sign::LastEnd, &["PASS"]),
    (Sign::WordEnd, &["PW", "DSN"]),
    (Sign::Last, &["OTP", "SAS"]),
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

/// What precedes a secret in a connection string or the query of an address, in small letters.
const SETTINGS: [&str; 17] = [
    "password=",
    "passwd=",
    "sslpassword=",
    "pwd=",
    "accountkey=",
    "sharedaccesskey=",
    "accesskey=",
    "access_token=",
    "auth_token=",
    "oauth_token=",
    "private_token=",
    "token=",
    "apikey=",
    "api_key=",
    "client_secret=",
    "secret=",
    // Of a shared access signature.
    "sig=",
];

/// What follows user and password in an address of Go's driver for MySQL.
const GO_PROTOCOLS: [&str; 2] = ["@tcp(", "@unix("];

/// A part of every private key in the text format, whatever its kind.
const PRIVATE_KEY: &str = "PRIVATE KEY-----";

/// The names of proxies, in capitals. Programs have no network without them, so they keep their password.
const PROXIES: [&str; 11] = [
    "ALL_PROXY",
    "CARGO_HTTP_PROXY",
    "FTP_PROXY",
    "GRPC_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NPM_CONFIG_HTTPS_PROXY",
    "NPM_CONFIG_HTTP_PROXY",
    "NPM_CONFIG_PROXY",
    "RSYNC_PROXY",
    "SOCKS_PROXY",
];

/// Whether a variable's value is a secret, going by its name or by what it consists of.
pub fn is_secret(name: &str, value: &str) -> bool {
    is_secret_name(name)
        || has_password(value) && !PROXIES.contains(&name.to_ascii_uppercase().as_str())
}

/// Whether a variable's value is a secret, going by its name.
pub fn is_secret_name(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    if NOT_SECRET.contains(&upper.as_str()) {
        return false;
    }
    let words = words(name);
    let whole = words.concat();
    let last = words.iter().rev().find(|word| !word.is_empty());
    let has_word = |sign: &&str| words.iter().any(|word| word == sign);
    let is_address = ADDRESSES.iter().any(has_word);
    SIGNS.iter().any(|(sign, signs)| match sign {
        Sign::Word => signs.iter().any(has_word),
        Sign::Part => signs.iter().any(|part| whole.contains(part)),
        Sign::LastEnd => last.is_some_and(|last| signs.iter().any(|end| last.ends_with(end))),
        Sign::WordEnd => signs.iter().any(|end| words.iter().any(|word| word.ends_with(end))),
        Sign::Last => last.is_some_and(|last| signs.contains(&last.as_str())),
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

/// Whether there is a password in an address (`scheme://user:password@host`) or a connection string, or it is a private key.
fn has_password(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    if value.contains(PRIVATE_KEY) || SETTINGS.iter().any(|setting| has_setting(&lower, setting)) {
        return true;
    }
    let of_user =
        |user: &str| user.split_once(':').is_some_and(|(_, password)| !password.is_empty());
    let is_go = |protocol: &&str| lower.split_once(protocol).is_some_and(|(user, _)| of_user(user));
    GO_PROTOCOLS.iter().any(is_go)
        || value.split("://").skip(1).any(|rest| {
            let authority = rest.split(['/', '?', '#', ' ', ',']).next().unwrap_or_default();
            authority.rsplit_once('@').is_some_and(|(user, _)| of_user(user))
        })
}

/// Whether a connection string has such a setting, with a value.
fn has_setting(text: &str, setting: &str) -> bool {
    // PostgreSQL's library puts blanks between its settings.
    let first = text.split_whitespace().next().and_then(|first| first.split_once('='));
    let has_blanks =
        first.is_some_and(|(key, _)| key.bytes().all(|c| c.is_ascii_lowercase() || c == b'_'));
    text.match_indices(setting).any(|(at, _)| {
        let is_after_blank = has_blanks && text[..at].ends_with(char::is_whitespace);
        let before = text[..at].trim_end().chars().next_back();
        let value = text[at + setting.len()..].chars().next();
        // The lines of a shell's function look much the same, but take values from elsewhere.
        (is_after_blank || before.is_none_or(|c| matches!(c, ';' | '&' | '?')))
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
            "MYSQLPW_FILE",
            "SENTRYDSN_2",
            "BLOB_SAS",
            "LOGIN_OTP",
            "MYPASS_2",
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
            "MAP_W",
            "APP_W",
            "JOB_STEP_W",
            "RECORDS_N",
            "WORDS_N",
            "SAS_HOME",
            "OTP_VERSION",
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
            "host=db user=app password=hunter2",
            "dbname=app\tsslpassword=hunter2 connect_timeout=10",
            "app:hunter2@tcp(db:3306)/app",
            "app:hunter2@unix(/run/mysqld.sock)/app?parseTime=true",
            "https://api.example.org/feed?access_token=hunter2",
            "https://a.blob.core.windows.net/c?sv=2022&sig=hunter2%3D",
            "https://example.org/hook?x=1&token=hunter2",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk=\n-----END OPENSSH PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\\nMIIE\\n-----END PRIVATE KEY-----",
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
            "host=db user=app password=$PGPASSWORD",
            "--listen-password password=asked",
            "app@tcp(db:3306)/app",
            "app:@tcp(db:3306)/app",
            "-----BEGIN PUBLIC KEY-----",
            "https://example.org/?design=1&signature-of=none",
        ] {
            assert!(!is_secret("STORE", value), "{value}");
        }
        for name in ["https_proxy", "HTTP_PROXY", "npm_config_https_proxy"] {
            assert!(!is_secret(name, "http://me:hunter2@proxy:3128"), "{name}");
        }
        // A place to get modules from, not a way to the network.
        assert!(is_secret("GOPROXY", "https://me:hunter2@corp.example.org,direct"));
        assert!(is_secret("MY_PROXY", "http://me:hunter2@proxy:3128"));
    }
}
