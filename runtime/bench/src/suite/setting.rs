//! Where and with what is measured.

use super::report::Setting;
use crate::node_host;
use crate::node_host::NodeHost;
use crate::tenon::Tenon;

/// This machine and these programs, now.
pub fn setting(tenon: &Tenon, node: Option<&NodeHost>, repetitions: usize) -> Setting {
    Setting {
        date: chrono::Utc::now().format("%Y-%m-%d %H:%M").to_string(),
        seconds: 0.0,
        processor: field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned()),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory_gb: memory_gb(),
        system: system(),
        load_before: load(),
        tenon: env!("CARGO_PKG_VERSION").to_owned(),
        engine: tenon.engine.name.clone(),
        engine_version: tenon.engine.version.clone(),
        node: node.map(|node| node.version.clone()),
        sdk: node.map(|_| node_host::SDK.to_owned()),
        repetitions,
    }
}

/// What stands after a name and a colon in one of the kernel's files.
fn field(file: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn memory_gb() -> f64 {
    let kilobytes = field("/proc/meminfo", "MemTotal")
        .and_then(|value| value.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.unwrap_or(f64::NAN) * 1024.0 / 1e9
}

fn system() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let name = std::fs::read_to_string("/etc/os-release").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
        Some(line.trim_matches('"').to_owned())
    });
    format!("{}, Linux {}", name.unwrap_or_else(|| std::env::consts::OS.to_owned()), kernel.trim())
}

fn load() -> f64 {
    std::fs::read_to_string("/proc/loadavg")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse().ok())
        .unwrap_or(f64::NAN)
}
