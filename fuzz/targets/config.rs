//! What people write: `config.toml`, the commands of agents, where an extension is installed from; and the record in an
//! installed extension.
//!
//! What is accepted has a meaning: every denied path is denied, no more is granted than to a configuration that permits as much;
//! an address that git gets is no option and shows no password; commands and records are read again as they are written.

#![no_main]

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;
use tenon_acp::command_line::CommandLine;
use tenon_acp::config::AgentsConfig;
use tenon_acp::config::is_agent_name;
use tenon_acp::definition::AgentDefinition;
use tenon_host::config::Config;
use tenon_host::config::ExtensionConfig;
use tenon_host::config::FILE_NAME;
use tenon_host::config::Profile;
use tenon_host::grants::GrantFolders;
use tenon_host::install::InstallRecord;
use tenon_host::install::RECORD_FILE;
use tenon_host::install::Source;
use tenon_host::install::record;
use tenon_protocol::message::Access;
use tenon_protocol::message::Grant;

/// A home folder, in memory where that can be.
fn home() -> &'static Path {
    static HOME: OnceLock<TempDir> = OnceLock::new();
    let make = || {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        tempfile::Builder::new().prefix("tenon-fuzz-").tempdir_in(folder).unwrap()
    };
    HOME.get_or_init(make).path()
}

fuzz_target!(|data: &[u8]| {
    let Some((&kind, rest)) = data.split_first() else { return };
    match kind % 6 {
        0..=2 => config(rest),
        3 => install_record(rest),
        4 => std::str::from_utf8(rest).map(source).unwrap_or_default(),
        _ => std::str::from_utf8(rest).map(command).unwrap_or_default(),
    }
});

fn config(text: &[u8]) {
    fs::write(home().join(FILE_NAME), text).unwrap();
    if let Ok(config) = Config::read(home()) {
        let mut all: Vec<_> = config.extensions.values().cloned().collect();
        all.push(ExtensionConfig::default());
        for extension in &all {
            one(extension);
            all.iter().for_each(|other| compare(extension, other));
        }
        for (name, extension) in &config.extensions {
            assert_eq!(config.of(name, name), *extension);
        }
    }
    if let Ok(config) = AgentsConfig::read(home()) {
        assert!(config.agents.keys().all(|name| is_agent_name(name)));
        for definition in
            AgentDefinition::all(&config, Path::new("/bin/tenon")).into_iter().flatten()
        {
            assert!(!definition.command.program.is_empty());
            assert!(definition.mcp_servers.iter().all(|server| server["name"].is_string()));
        }
    }
}

fn grant(config: &ExtensionConfig) -> Grant {
    config.grant(GrantFolders {
        workspace: Path::new("/w"),
        data: Path::new("/no/data"),
        session: Path::new("/no/session"),
        home: Path::new("/no/home"),
        user: Some(Path::new("/u")),
        extension: Path::new("/no/extension"),
        extensions: &[],
    })
}

fn one(config: &ExtensionConfig) {
    // It is kept with approvals, and compared.
    let written = serde_json::to_string(config).unwrap();
    assert_eq!(serde_json::from_str::<ExtensionConfig>(&written).unwrap(), *config);
    assert!(config.is_within(config));
    assert!(config.is_restricted() || config.profile.unwrap_or_default() == Profile::Full);
    let grant = grant(config);
    let lists = [
        (&config.allow_read, &config.deny_read, &grant.read),
        (&config.allow_write, &config.deny_write, &grant.write),
    ];
    for (allow, deny, access) in lists {
        assert!(access.deny.len() >= deny.len());
        let of_user = |paths: &[String]| paths.iter().filter(|path| path.starts_with('~')).count();
        let in_home = |paths: &[String]| {
            paths.iter().filter(|path| Path::new(path).starts_with("/u")).count()
        };
        assert!(in_home(&access.deny) >= of_user(deny), "{deny:?} became {:?}", access.deny);
        let all = access.deny.iter().chain(access.allow.iter().flatten());
        for path in all {
            assert!(path.starts_with('/') && !path.contains('\0'), "{path:?} is no place");
            assert!(!path.contains("//") && !path.ends_with("/."), "{path:?}");
        }
        assert!(access.allow.as_ref().is_none_or(|allowed| allowed.len() >= allow.len()));
    }
}

/// One that is within another may do no more.
fn compare(config: &ExtensionConfig, other: &ExtensionConfig) {
    if !config.is_within(other) {
        return;
    }
    let (mine, its) = (grant(config), grant(other));
    for (mine, its) in [
        (&mine.read, &its.read),
        (&mine.write, &its.write),
        (&mine.net, &its.net),
        (&mine.run, &its.run),
    ] {
        assert!(is_less(mine, its), "{mine:?} is more than {its:?}");
    }
}

fn is_less(mine: &Access, its: &Access) -> bool {
    let Some(allowed) = &its.allow else { return true };
    mine.allow.as_ref().is_some_and(|mine| mine.iter().all(|name| allowed.contains(name)))
}

fn install_record(text: &[u8]) {
    fs::write(home().join(RECORD_FILE), text).unwrap();
    let Some(read) = record(home()) else { return };
    let written = serde_json::to_string_pretty(&read).unwrap();
    assert_eq!(serde_json::from_str::<InstallRecord>(&written).unwrap(), read);
}

fn source(text: &str) {
    let Ok(Source::Git { url, reference }) = Source::parse(text) else { return };
    assert!(!url.starts_with('-') && !url.is_empty());
    // As git reads it: what stands before `::` is a program.
    let is_helper =
        |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    assert!(!url.split_once("::").is_some_and(|(helper, _)| is_helper(helper)), "{url}");
    if let Some(reference) = &reference {
        assert!(
            !reference.starts_with('-')
                && !reference.contains([':', '+', '^', '~', ' ', '*', '?', '[', '\\'])
        );
    }
    let shown = Source::Git { url: url.clone(), reference }.to_string();
    if let Ok(parsed) = url::Url::parse(&url)
        && parsed.has_host()
        && let Some(password) = parsed.password()
    {
        // One of a few characters may be in the address anyway.
        assert!(password.len() < 8 || !shown.contains(password), "{shown} shows {password}");
    }
}

fn command(text: &str) {
    let Ok(command) = CommandLine::parse(text) else { return };
    assert!(!command.program.is_empty());
    assert!(command.args.iter().chain([&command.program]).all(|word| !word.contains('\0')));
    assert_eq!(CommandLine::parse(&command.to_string()).as_ref(), Ok(&command));
}
