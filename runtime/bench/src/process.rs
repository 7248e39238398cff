//! What the operating system knows of a process.

use std::mem::MaybeUninit;

/// What a process holds of the machine's memory, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// What it would free if it ended: `Private_Clean` and `Private_Dirty`.
    pub private: u64,
    /// The same and its share of what it has in common with others. The sum over processes counts every page once.
    pub proportional: u64,
    /// The kernel's tables of its pages, which no other figure contains.
    pub page_tables: u64,
    /// Memory of its own making that is resident, shared with forks or not.
    pub anonymous: u64,
}

impl Memory {
    /// Of a process, now; nothing of one that is not there. The kernel shows the mappings of a process that is not
    /// dumpable, such as the zygote, to root alone; for others all its anonymous memory counts, which is no less.
    pub fn of(process: u32) -> Self {
        let read = |file| std::fs::read_to_string(format!("/proc/{process}/{file}"));
        let status = read("status").unwrap_or_default();
        let anonymous = kilobytes(&status, "RssAnon:");
        let (private, proportional) = match read("smaps_rollup") {
            Ok(text) => (kilobytes(&text, "Private_"), kilobytes(&text, "Pss:")),
            Err(_) => (anonymous, anonymous),
        };
        Self { private, proportional, page_tables: kilobytes(&status, "VmPTE:"), anonymous }
    }

    /// All that would not be there without it, as far as it can be told.
    pub fn whole(self) -> u64 {
        self.proportional + self.page_tables
    }
}

/// The sum of all lines that begin so, in bytes.
fn kilobytes(text: &str, name: &str) -> u64 {
    let lines = text.lines().filter(|line| line.starts_with(name));
    let value = |line: &str| line.split_whitespace().nth(1)?.parse::<u64>().ok();
    lines.filter_map(value).sum::<u64>() * 1024
}

/// Private memory of a process in megabytes: what it would free if it ended.
pub fn private_mb(process: u32) -> f64 {
    Memory::of(process).private as f64 / 1e6
}

/// Proportional memory of a process and its page tables, in megabytes.
pub fn whole_mb(process: u32) -> f64 {
    Memory::of(process).whole() as f64 / 1e6
}

/// Children of the given processes that have ended and that nobody has waited for.
pub fn zombies(parents: &[u32]) -> usize {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_one = |entry: &std::fs::DirEntry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        is_zombie_of(&stat, parents)
    };
    processes.filter(is_one).count()
}

/// Whether this line of `/proc/PID/stat` is of such a child. The name before the state may contain anything.
fn is_zombie_of(stat: &str, parents: &[u32]) -> bool {
    let Some((_, rest)) = stat.rsplit_once(") ") else { return false };
    let mut fields = rest.split(' ');
    let is_dead = fields.next() == Some("Z");
    let parent = fields.next().and_then(|parent| parent.parse().ok());
    is_dead && parent.is_some_and(|parent| parents.contains(&parent))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_begin_alike_are_added() {
        let text = "Pss:   7 kB\nPss_Anon: 5 kB\nPrivate_Clean: 1 kB\nPrivate_Dirty:    2 kB\n";
        assert_eq!((kilobytes(text, "Private_"), kilobytes(text, "Pss:")), (3 * 1024, 7 * 1024));
    }

    #[test]
    fn this_process_holds_memory_and_one_that_is_not_there_holds_none() {
        let ours = Memory::of(std::process::id());
        assert!(ours.private > 0 && ours.page_tables > 0 && ours.anonymous > 0, "{ours:?}");
        assert!(ours.proportional >= ours.private, "{ours:?}");
        assert_eq!(Memory::of(u32::MAX), Memory::default());
    }

    #[test]
    fn a_child_nobody_waited_for_is_a_zombie_whatever_it_is_called() {
        let line = |state| format!("12 (a) Z 7 (b)) {state} 34 12 12 0");
        assert!(is_zombie_of(&line("Z"), &[33, 34]));
        assert!(!is_zombie_of(&line("Z"), &[7, 12]));
        assert!(!is_zombie_of(&line("S"), &[34]));
    }
}
