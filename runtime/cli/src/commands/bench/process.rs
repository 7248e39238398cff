//! What the operating system knows of a process.

use std::mem::MaybeUninit;

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

/// Resident memory of a process, in megabytes.
pub fn resident_mb(process: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let kilobytes = line.split_whitespace().next().and_then(|value| value.parse::<f64>().ok());
    kilobytes.unwrap_or_default() * 1024.0 / 1e6
}

/// CPU time of a process so far in milliseconds, with the threads that have ended; zero if it is not there.
pub fn cpu_ms(process: u32) -> f64 {
    let mut clock = MaybeUninit::<libc::clockid_t>::uninit();
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both calls fill in what they are given a pointer to, and keep nothing of it. The clock is
    // read only if the first call says that it has filled it in.
    let found = unsafe {
        libc::clock_getcpuclockid(process.cast_signed(), clock.as_mut_ptr()) == 0
            && libc::clock_gettime(clock.assume_init(), &mut time) == 0
    };
    if found { time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6 } else { 0.0 }
}

/// How many entries a folder of a process has: `task` for threads, `fd` for open files.
pub fn entries(process: u32, folder: &str) -> usize {
    std::fs::read_dir(format!("/proc/{process}/{folder}")).map_or(0, |entries| entries.count())
}

/// The middle value.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
