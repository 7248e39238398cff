//! Whether it is worth while to look for a reply before going to sleep.
//!
//! Many handlers take less time than putting a thread to sleep and waking it does. Looking for the reply of one that takes
//! longer, or that gets no processor because of it, only costs. So what happened lately decides.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How long a caller looks for a reply: waking a thread takes up to 50 us on a virtual machine, and the handler some time of
/// its own.
pub const LOOK: Duration = Duration::from_micros(100);

/// Calls in a row without a look, at most. An extension that has become prompt is noticed after so many.
const MOST_PAUSED: u32 = 31;

/// How promptly one load of an extension has replied lately.
#[derive(Debug, Default)]
pub struct Promptness {
    /// Calls that are not looked for, after the next look that is in vain.
    pause: AtomicU32,
    /// How many of them are left.
    left: AtomicU32,
}

impl Promptness {
    /// Whether to look for the reply of the next call. Calls at the same time may disagree by a few; nothing depends on it.
    pub fn is_worth_a_look(&self) -> bool {
        let left = self.left.load(Relaxed);
        self.left.store(left.saturating_sub(1), Relaxed);
        left == 0
    }

    /// A look has found the reply, or not.
    pub fn looked(&self, found: bool) {
        let pause = if found { 0 } else { (self.pause.load(Relaxed) * 2 + 1).min(MOST_PAUSED) };
        self.pause.store(pause, Relaxed);
        self.left.store(pause, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many calls pass until the next look.
    fn paused(promptness: &Promptness) -> u32 {
        (0..=MOST_PAUSED + 1).take_while(|_| !promptness.is_worth_a_look()).count() as u32
    }

    #[test]
    fn looks_in_vain_become_rarer_and_one_that_finds_brings_them_back() {
        let promptness = Promptness::default();
        assert_eq!(paused(&promptness), 0);
        for expected in [1, 3, 7, 15, MOST_PAUSED, MOST_PAUSED] {
            promptness.looked(false);
            assert_eq!(paused(&promptness), expected);
        }
        promptness.looked(true);
        assert_eq!((paused(&promptness), paused(&promptness)), (0, 0));
    }
}
