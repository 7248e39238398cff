//! What the operating system knows of a process.

use std::path::PathBuf;

/// Private memory of a process in bytes: what it would free if it ended.
pub fn private_bytes(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let kilobytes: u64 = text
        .lines()
        .filter(|line| line.starts_with("Private_"))
        .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
        .sum();
    kilobytes * 1024
}

/// CPU time of all threads of a process so far, in milliseconds.
pub fn cpu_ms(process: u32) -> f64 {
    let threads =
        std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let nanoseconds: u64 = threads.filter_map(|thread| on_cpu(thread.path())).sum();
    nanoseconds as f64 / 1e6
}

fn on_cpu(thread: PathBuf) -> Option<u64> {
    let text = std::fs::read_to_string(thread.join("schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// The middle value.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
