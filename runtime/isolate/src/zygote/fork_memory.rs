//! Makes V8's heap part of a fork.
//!
//! V8 is built to mark its heap `MADV_DONTFORK`, because most programs fork only to start another program. A fork of the
//! zygote would find the heap missing.

use std::ffi::c_void;

/// Takes the mark off every mapping that has it; returns how many there were.
pub fn include_heap() -> std::io::Result<usize> {
    let maps = std::fs::read_to_string("/proc/self/smaps")?;
    let mut included = 0;
    for (start, end) in excluded(&maps) {
        // SAFETY: the mapping is this process's, and the advice changes nothing of it but what a fork gets.
        if unsafe { libc::madvise(start as *mut c_void, end - start, libc::MADV_DOFORK) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        included += 1;
    }
    Ok(included)
}

/// The mappings that a fork would not have. `dc` stands for "do not copy on fork".
fn excluded(maps: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut range = None;
    for line in maps.lines() {
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            if flags.split_whitespace().any(|flag| flag == "dc") {
                found.extend(range);
            }
        } else if let Some((start, end)) =
            line.split_whitespace().next().and_then(|word| word.split_once('-'))
            && let (Ok(start), Ok(end)) =
                (usize::from_str_radix(start, 16), usize::from_str_radix(end, 16))
        {
            range = Some((start, end));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mappings_that_are_marked_are_found() {
        let maps = "1000-2000 rw-p 00000000 00:00 0 \nSize: 4 kB\nVmFlags: rd wr mr mw me dc ac\n\
            3000-5000 rw-p 00000000 00:00 0   [heap]\nVmFlags: rd wr mr mw me ac\n";
        assert_eq!(excluded(maps), [(0x1000, 0x2000)]);
    }
}
