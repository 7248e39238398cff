//! Identifiers for events, calls and requests.

use std::sync::LazyLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

/// Where this program's identifiers begin.
static BASE: LazyLock<u128> = LazyLock::new(|| uuid::Uuid::new_v4().as_u128());

static NEXT: AtomicU64 = AtomicU64::new(0);

/// The bits of a version 4 UUID that may count without leaving its version and variant.
const COUNTING: u128 = (1 << 62) - 1;

/// A new UUID. A stream of events needs tens of thousands a second, so they are counted up from one
/// random beginning instead of asking the system for randomness each time.
pub fn unique() -> String {
    let counted = u128::from(NEXT.fetch_add(1, Ordering::Relaxed));
    let low = BASE.wrapping_add(counted) & COUNTING;
    let id = (*BASE & !COUNTING) | low;
    let mut text = String::with_capacity(36);
    for place in (0..32).rev() {
        if matches!(place, 23 | 19 | 15 | 11) {
            text.push('-');
        }
        let digit = (id >> (place * 4)) as usize & 0xf;
        text.push(char::from(b"0123456789abcdef"[digit]));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn they_are_uuids_and_all_different() {
        let ids: HashSet<String> = (0..1000).map(|_| unique()).collect();
        assert_eq!(ids.len(), 1000);
        for id in ids {
            let parsed = uuid::Uuid::parse_str(&id).unwrap();
            assert_eq!(parsed.get_version_num(), 4);
            assert_eq!(parsed.to_string(), id);
        }
    }
}
